"""Card numbers taken out of what is kept: runs of 13 to 19 digits that pass the check digit, but for the last four.

```
{"card": "4111 1111 1111 1111"}        {"card": "**** **** **** 1111"}
four one one one, 1111 1111 1111       * * * * * * *
order 4417, call 555 0134              order 4417, call 555 0134
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Final

from callwright.claims.masking import LONG_DIGITS, MASK, long_numbers
from callwright.claims.numbers import readings
from callwright.claims.words import tokens_of

CARD_DIGITS: Final = range(LONG_DIGITS, 20)
"""How many digits a card number has."""
KEPT: Final = 4
READINGS_MAX: Final = 256
"""So many readings of a spoken number are tried; one that has more is taken for a card's."""

_RUN = re.compile(r"\d(?:[ .\-]?\d){12,}")
_GROUP = re.compile(r"\d+")
_COUNTED = re.compile(
    r"\d|\b(?:zero|o|oh|nought|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty"
    r"|forty|fourty|fifty|sixty|seventy|eighty|ninety|double|triple|treble|hundred|thousand)\b",
    re.IGNORECASE,
)
_MOST = 3
"""So many digits one word makes at most where it stands among others."""


def is_card_number(digits: str) -> bool:
    """Whether digits are as many as a card number's, and their check digit is right."""
    if len(digits) not in CARD_DIGITS:
        return False
    doubled = "0246813579"
    total = sum(int(doubled[int(digit)] if at % 2 else digit) for at, digit in enumerate(reversed(digits)))
    return total % 10 == 0


def without_cards(text: str) -> str:
    """A text whose card numbers in figures are masked, all but their last four; any other text comes back as it is."""
    return _RUN.sub(lambda run: _masked(run[0]), text)


def without_spoken_cards(texts: Sequence[str]) -> list[str]:
    """Texts that follow each other, as the turns of a call, without card numbers in figures or words.

    One may go on from a text to the next. A spoken one is masked word by word, and whole.
    """
    texts = [without_cards(text) for text in texts]
    if sum(_MOST - 2 * match[0].isdigit() for text in texts for match in _COUNTED.finditer(text)) < LONG_DIGITS:
        return texts
    split = [text.split() for text in texts]
    words = [word for part in split for word in part]
    hidden = dict.fromkeys(_spoken(" ".join(words)))
    if not hidden:
        return texts
    flat = iter(MASK if number in hidden else word for number, word in enumerate(words))
    return [" ".join(next(flat) for _ in part) for part in split]


def _masked(run: str) -> str:
    """A run of digits with its card numbers masked; they begin and end where its groups do."""
    groups = [group.span() for group in _GROUP.finditer(run)]
    text = list(run)
    for first, (start, _) in enumerate(groups):
        for _, end in groups[first:]:
            places = [at for at in range(start, end) if run[at].isdigit()]
            if len(places) >= CARD_DIGITS.stop:
                break
            if is_card_number("".join(run[at] for at in places)):
                for at in places[:-KEPT]:
                    text[at] = MASK
    return "".join(text)


def _spoken(text: str) -> Iterator[int]:
    """The words of card numbers in a text."""
    tokens = tokens_of(text)
    for rows in long_numbers(tokens):
        parts = [readings(tuple(token.text for token in tokens[row.start : row.end])) or ("",) for row in rows]
        tried = list(islice(("".join(reading) for reading in product(*parts)), READINGS_MAX))
        if len(tried) == READINGS_MAX or any(map(_holds_a_card, tried)):
            yield from (token.word for row in rows for token in tokens[row.start : row.end])


def _holds_a_card(digits: str) -> bool:
    starts = range(len(digits) - LONG_DIGITS + 1)
    return any(is_card_number(digits[start : start + length]) for start in starts for length in CARD_DIGITS)
