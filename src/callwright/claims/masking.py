"""Long numbers taken out of text, however they are spelled: a card number in words is a card number.

```
["My card is four one one one, 1111", "1111 one one one one."]
["My card is * * * * *",              "* * * * *"]
```
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callwright.claims.numbers import Row, rows_of
from callwright.claims.words import Token, tokens_of

LONG_DIGITS = 13
"""Card numbers have from 13 digits on; a telephone number has fewer."""
GAP_WORDS = 2
"""So many other words may stand between the parts of one number: "and then", "um"."""
KEPT_DIGITS = 4
MASK = "*"


def masked(texts: Sequence[str], keep_last4: bool = False) -> list[str]:
    """Texts that follow each other, with every number of `LONG_DIGITS` digits or more masked word by word.

    Texts are the deltas of a reply or the turns of a call, in order: a number may go on from one to the next, over
    punctuation and up to `GAP_WORDS` other words. ``keep_last4`` leaves the last words of a number, where they hold
    four digits and no more. Blanks come out single. A row of short numbers that is as long is masked too.
    """
    split = [text.split() for text in texts]
    words = [word for part in split for word in part]
    tokens = tokens_of(" ".join(words))
    hidden: set[int] = set()
    for rows in long_numbers(tokens):
        shown = _last_four(rows, tokens) if keep_last4 else ()
        hidden.update(token.word for row in rows for token in tokens[row.start : row.end])
        hidden.difference_update(shown)
    flat = iter(MASK if number in hidden else word for number, word in enumerate(words))
    return [" ".join(next(flat) for _ in part) for part in split]


def long_numbers(tokens: Sequence[Token]) -> Iterator[list[Row]]:
    """Rows of number words that make one long number each."""
    open_rows: list[Row] = []
    for row in rows_of(tokens):
        between = tokens[open_rows[-1].end : row.start] if open_rows else ()
        if sum(token.text[0].isalnum() for token in between) > GAP_WORDS:
            if sum(part.digits for part in open_rows) >= LONG_DIGITS:
                yield open_rows
            open_rows = []
        open_rows.append(row)
    if sum(part.digits for part in open_rows) >= LONG_DIGITS:
        yield open_rows


def _last_four(rows: Sequence[Row], tokens: Sequence[Token]) -> list[int]:
    """The words at the end of a number that hold its last four digits and no others, if there are such."""
    tail = [token for row in rows for token in tokens[row.start : row.end]]
    for start in range(len(tail) - 1, -1, -1):
        digits = sum(row.digits for row in rows_of(tail[start:]))
        if digits == KEPT_DIGITS:
            before = {token.word for token in tail[:start]}
            return [token.word for token in tail[start:] if token.word not in before]
        if digits > KEPT_DIGITS:
            break
    return []
