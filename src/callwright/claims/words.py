"""A heard text as tokens: lower case, contractions written out, every token with the word that it came from.

```
"I haven't sent $32.00--"   i have not sent $ 32.00        cut
```

Words are counted as blanks divide the text, from 0, since that is how heard words carry their times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from unicodedata import normalize

from callwright.errors import UsageError
from callwright.ids import Ms

CUT_MARGIN_MS: Ms = 200
"""A word of a cut reply counts as heard only where it ended so long before the cut."""

STOP = "."
"""The token of all that ends a sentence; a question mark stays what it is."""

_TOKEN = re.compile(
    r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|[^\W\d_]+(?:'[^\W\d_]+)*"
    r"|[$£€¥#]|\.{2,}|[.,;:?!\"\u3002\u0964\u061f]|[\u2013\u2014]|-{2,}|^-$"
)
_STANDS_FOR = {
    ";": STOP,
    "!": STOP,
    "\u3002": STOP,
    "\u0964": STOP,
    "\u061f": "?",
    "..": STOP,
    "...": STOP,
    ":": ",",
    "\u2013": ",",
    "\u2014": ",",
    "-": ",",
}
_CUT = re.compile(r"(?:[-\u2013\u2014\u2026]|\.\.\.)[\"')\]]*\s*$")
_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "`": "'", "\u201c": '"', "\u201d": '"'})
_ENDINGS = {"s": "is", "ve": "have", "ll": "will", "re": "are", "m": "am", "d": "would"}
_WHOLE = {
    "can't": ("can", "not"),
    "cannot": ("can", "not"),
    "won't": ("will", "not"),
    "shan't": ("shall", "not"),
    "ain't": ("is", "not"),
    "let's": ("let", "us"),
    "gonna": ("going", "to"),
    "wanna": ("want", "to"),
    "cant": ("can", "not"),
    "wont": ("will", "not"),
    "ive": ("i", "have"),
    "weve": ("we", "have"),
    "thats": ("that", "is"),
    "canceled": ("cancelled",),
    "canceling": ("cancelling",),
}
_NEGATED = re.compile(r"(do|does|did|is|are|was|were|has|have|had|could|would|should|might|must|need)n'?t")


_TITLES = ("mr.", "mrs.", "ms.", "dr.")
"""Their dot ends no sentence."""


class Token(NamedTuple):
    """One token, and the number of the word that it was found in."""

    text: str
    word: int


@dataclass(frozen=True, slots=True)
class Heard:
    """What was heard of a reply.

    ``cut`` says that there was more to it than ``text``. ``ends_ms`` are the ends of its words (as blanks divide the
    text) and ``played_ms`` is how much was played, both in ms from the beginning of the reply; where they are known,
    the words of a cut reply count up to `CUT_MARGIN_MS` before the cut. A text that is heard whole needs neither.

    Raises:
        UsageError: there are times, but not one for each word.
    """

    text: str
    cut: bool = False
    ends_ms: tuple[Ms, ...] = ()
    played_ms: Ms | None = None

    def __post_init__(self) -> None:
        count = len(self.text.split())
        if self.ends_ms and len(self.ends_ms) != count:
            raise UsageError(f"ends_ms: {len(self.ends_ms)} times for {count} words; expected one each")

    @property
    def is_cut(self) -> bool:
        """Whether it was cut off, by word or by the dash or dots that it ends with."""
        return self.cut or _CUT.search(self.text) is not None

    @property
    def is_timed(self) -> bool:
        """Whether it is known when each word was played."""
        return bool(self.ends_ms) and self.played_ms is not None

    @property
    def certain(self) -> str:
        """The words that were heard for certain, with single blanks."""
        words = self.text.split()
        if self.is_cut and self.ends_ms and self.played_ms is not None:
            latest = self.played_ms - CUT_MARGIN_MS
            words = [word for word, end in zip(words, self.ends_ms, strict=True) if end <= latest]
        return " ".join(words)


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text, in order. Sentences end in ``.`` or ``?``; a dash or a colon is a comma."""
    return [Token(part, number) for number, word in enumerate(text.split()) for part in _parts(word)]


def plain(text: str) -> list[str]:
    """The words and numbers of a text, as they are compared: no punctuation, contractions written out."""
    return [token.text for token in tokens_of(text) if token.text[0].isalnum()]


@lru_cache(maxsize=4096)
def _parts(word: str) -> tuple[str, ...]:
    folded = normalize("NFKC", word.translate(_QUOTES)).lower()
    if folded in _TITLES:
        return (folded[:-1],)
    return tuple(part for found in _TOKEN.findall(folded) for part in _written_out(found))


def _written_out(token: str) -> tuple[str, ...]:
    """A token without contractions; unknown apostrophes divide a word."""
    if token in _WHOLE:
        return _WHOLE[token]
    if negated := _NEGATED.fullmatch(token):
        return (negated[1], "not")
    if "'" in token:
        head, *rest = token.split("'")
        return (head, *(_ENDINGS.get(ending, ending) for ending in rest))
    if token.startswith("--"):
        return (",",)
    return (STOP,) if token.startswith("..") else (_STANDS_FOR.get(token, token),)
