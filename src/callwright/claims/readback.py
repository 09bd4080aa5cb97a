"""Consent by read-back: was the question heard with every parameter, and was the answer a plain yes?

Text only. Whose voice it was, and whether the yes came after the question's end, is for others to know.

```
agent   "That's 32 dollars, to your Visa ending in 4242. Shall I go ahead?"   is_read_back
caller  "Yes, please."                       YES
caller  "Yes, but to the Mastercard."        CHANGE
caller  "No, wait."                          NO
caller  "Yes? I mean, which card was that?"  OTHER
```
"""

from __future__ import annotations

import re
from enum import StrEnum

from callwright.claims import triggers
from callwright.claims.clauses import read
from callwright.claims.facts import ClaimFacts, Said
from callwright.claims.fields import Fields, Found
from callwright.claims.matcher import claimed
from callwright.claims.words import STOP, Heard, tokens_of


class Answer(StrEnum):
    """What a caller's answer to a read-back is. Only ``YES`` is consent."""

    YES = "yes"
    NO = "no"
    CHANGE = "change"
    """A yes to something else than was read back."""
    OTHER = "other"
    """Anything else: a question, a murmur, another topic."""


_YES = (
    r"(?:yes|yeah|yep|yup|sure|correct|right|exactly|absolutely|definitely|certainly|of course|okay|ok|go ahead|do it"
    r"|please do|please|perfect|great|fine|i agree|i confirm|confirmed|agreed|sounds good|that works"
    r"|(?:that|it) is (?:right|correct|fine|good|perfect|it|okay|ok)|all (?:right|good|correct)|you can"
    r"|(?:please )?(?:go ahead|do that|do it|do so)(?: with (?:it|that))?|(?:i )?would like that|make it so)"
)
_POLITE = (
    r"(?:please|thanks|thank you(?: (?:so|very) much)?|now|then|and|um|uh|er|well|oh|so|just|very|that|yes|sir|ma am"
    r"|madam|will be|would be|is)"
)
_PLAIN_YES = re.compile(rf"^(?:{_POLITE} )*{_YES}(?: (?:{_YES}|{_POLITE}))*$")
_ONLY_POLITE = re.compile(rf"^{_POLITE}(?: {_POLITE})*$")
_NO = re.compile(
    r"^(?:(?:um|uh|er|well|oh|so|please|sorry|okay|ok) )*(?:no|nope|nah|not|never|stop|do not|cancel|leave it|forget it"
    r"|hold on|wait|hang on|wrong|that is (?:not|wrong)|it is (?:not|wrong)|i do not|i would rather not|never mind"
    r"|rather not)\b"
)
_LIKE_A_YES = re.compile(rf"\b{_YES}\b")
_MURMUR = re.compile(
    r"^(?:(?:please|thanks|thank you|um|uh|er|well|oh|so|now|then|and|just|very|that|is|right|okay|ok|fine"
    r"|great|perfect)(?: |$))+$"
)


def is_read_back(heard: Heard, facts: ClaimFacts, *, spelled: bool = False) -> bool:
    """Whether a reply asked for consent, and named every field that must be heard, rightly.

    It must have been heard to its end, end with a question that is not "anything else?", and not say that all is done.
    ``spelled`` wants texts that must be heard letter by letter: Reid and Reed sound alike.
    """
    reading = read(heard)
    if not reading.clauses or heard.is_cut or not heard.certain.rstrip('" ').endswith("?"):
        return False
    if triggers.PARTING.match(reading.clauses[-1].text) or claimed(heard, facts).said is not Said.NOTHING:
        return False
    fields = Fields(reading, facts)
    found = fields.look(reading.clauses)
    if any(state is Found.WRONG for state, _ in found.values()):
        return False
    texts = [value for name, value in facts.texts if name in facts.must_hear] if spelled else []
    if not all(fields.is_spelled(reading.clauses, value) for value in texts if not value.isdecimal()):
        return False
    return all(found[name][0] is Found.AFFIRMED for name in facts.must_hear)


def answered(text: str) -> Answer:
    """What a caller's answer is, by its words alone.

    A yes must be all that is said: with a number, a card, or a "but", it is a change or something else. A no anywhere
    is no yes. A bare "okay" or "right" is a listener's murmur as often as consent, so it is none.
    """
    tokens = [token.text for token in tokens_of(text)]
    asks = "?" in tokens
    parts = [part.strip() for part in re.split(r"[.,?\"]", " ".join(tokens)) if part.strip()]
    if not parts:
        return Answer.OTHER
    if any(_NO.search(part) for part in parts) or any(word in tokens for word in ("not", "no", "never")):
        return Answer.NO
    if asks:
        return Answer.OTHER
    whole = " ".join(parts)
    if all(map(_MURMUR.match, parts)):
        return Answer.OTHER
    if all(_PLAIN_YES.match(part) or _ONLY_POLITE.match(part) for part in parts):
        return Answer.YES
    return Answer.CHANGE if _LIKE_A_YES.search(whole) and STOP not in whole else Answer.OTHER
