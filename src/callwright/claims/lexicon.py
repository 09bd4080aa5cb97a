"""What a kind of action is called when people speak of it: the words of each kind, as data.

A phrase is words with single blanks; ``...`` stands for up to eight words between ("sent ... back"). Words that can be
said of anything ("done", "gone through") are not listed here: they are the same for every kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from callwright.errors import UsageError


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words for one kind of action, in lower case.

    ``nouns`` name it ("refund"); ``done`` say on their own that it was done ("refunded"); ``moved`` say so only where
    no other thing is spoken of ("sent ... back", which a form can be too); ``doing`` say that it is under way;
    ``base`` are verbs as they stand behind "will", "did" and "not".
    """

    nouns: tuple[str, ...]
    done: tuple[str, ...]
    base: tuple[str, ...]
    moved: tuple[str, ...] = ()
    doing: tuple[str, ...] = ()


REFUND = Lexicon(
    nouns=("refund", "refunds", "reimbursement", "repayment", "money"),
    done=("refunded", "reimbursed", "reversed the ... charge", "reversed the charge", "reversed the payment"),
    base=(
        *("refund", "reimburse", "issue", "credit", "return", "repay"),
        *("send ... back", "put ... back", "give ... back"),
    ),
    moved=(
        *(
            "sent ... back",
            "put ... back",
            "paid ... back",
            "wired ... back",
            "gave ... back",
            "given ... back",
            "handed ... back",
            "gave you a refund",
            "gave you a full refund",
            "given you a refund",
            "given you a full refund",
            "landed back",
            "pushed ... back",
            "popped ... back",
            "dropped ... back",
            "transferred ... back",
        ),
        *(
            "went back",
            "gone back",
            "went to",
            "credited",
            "returned",
            "issued",
            "repaid",
            "paid to",
            "posted to",
            "put through",
        ),
        *("is back on", "is back in", "got your ... back", "got the ... back", "are back on", "put the refund through"),
    ),
    doing=(
        *("refunding", "reimbursing", "returning", "crediting", "issuing", "going back"),
        *("sending ... back", "putting ... back", "paying ... back"),
    ),
)
CANCELLATION = Lexicon(
    nouns=("cancellation", "order", "booking", "reservation", "appointment", "subscription"),
    done=("cancelled", "called off"),
    base=("cancel", "call off"),
    doing=("cancelling", "calling off"),
)
BOOKING = Lexicon(
    nouns=("booking", "reservation", "appointment"),
    done=("booked", "reserved", "rebooked"),
    base=("book", "reserve", "rebook", "schedule"),
    moved=("scheduled", "rescheduled", "confirmed"),
    doing=("booking you", "reserving"),
)
LEXICONS = {"refund": REFUND, "cancel": CANCELLATION, "cancellation": CANCELLATION, "booking": BOOKING}
"""The kinds whose words are known; an action of another kind brings its own `Lexicon`."""


def lexicon_of(kind: str) -> Lexicon:
    """The words of a kind: its own, or those of its first word ("cancel order").

    Raises:
        UsageError: nothing is known of the kind.
    """
    found = LEXICONS.get(kind) or LEXICONS.get(kind.replace("_", " ").split(" ", maxsplit=1)[0])
    if found is None:
        known = ", ".join(LEXICONS)
        raise UsageError(f"kind {kind!r}: no words are known for it; give a Lexicon, or use one of {known}")
    return found


def any_of(phrases: Iterable[str]) -> str:
    """A pattern for any of several phrases and the blank before; one that can never match where there are none."""
    parts = [re.escape(phrase).replace(r"\ \.\.\.\ ", r"(?: \S+){0,8}? ").replace(r"\ ", " ") for phrase in phrases]
    return rf" (?:{'|'.join(parts)})\b" if parts else r"(?!)"


@dataclass(frozen=True, slots=True)
class Patterns:
    """A `Lexicon` made ready for searching."""

    nouns: re.Pattern[str]
    named: re.Pattern[str]
    """The nouns, also before another one: "refund request"."""
    own: re.Pattern[str]
    moved: re.Pattern[str]
    doing: re.Pattern[str]
    base: re.Pattern[str]


_NOT_BEFORE = (
    r"(?! (?:forms?|requests?|policy|process|desk|team|department|page|e ?mail|label|application|claim|code|number"
    r"|receipt)\b)"
)
_BASE_ANY = ("go through", "complete", "finish", "succeed", "process", "work out", "do", "make", "finalize", "finalise")
_VERB_BEHIND = (
    r" (?P<before>not|never|to|will|would|can|could|shall|should|may|might|must|let me|let us|please|go ahead and|did"
    r"|did (?:i|we|it|the \w+))"
    r"(?: (?:now|just|also|already|then|still|yet|be able to|have to|actually|you|your|\w+ly))*?"
)


@lru_cache(maxsize=256)
def patterns_of(words: Lexicon) -> Patterns:
    """The patterns of a lexicon, made once."""
    return Patterns(
        re.compile(any_of(words.nouns) + _NOT_BEFORE),
        re.compile(any_of(words.nouns)),
        re.compile(any_of(words.done)),
        re.compile(any_of(words.moved)),
        re.compile(any_of(words.doing)),
        re.compile(_VERB_BEHIND + any_of((*words.base, *_BASE_ANY))),
    )
