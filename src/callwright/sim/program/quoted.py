"""What a program said, as people and reports may read it: printable, short, without a key and a card's number.

```
"\\x1b[2Jkey q1QhMy...\\r"    "?[2Jkey ***?"
"aaaaaaaaaa...zzzz"          "aaaa ... zzzz"
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from callwright.claims.cards import without_cards

HIDDEN: Final = "***"
_BETWEEN: Final = " ... "


def quoted(text: str, most: int, secrets: Sequence[str] = ()) -> str:
    """A text of others' of at most so many characters; of a longer one its beginning and its end.

    What is not printable stands as "?", so that no terminal does what it says; of a card's number the last four digits
    stand, and of ``secrets`` nothing.
    """
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    text = without_cards("".join(each if each.isprintable() else " " if each == "\t" else "?" for each in text))
    if len(text) <= most:
        return text
    half = (most - len(_BETWEEN)) // 2
    return f"{text[:half]}{_BETWEEN}{text[-half:]}"
