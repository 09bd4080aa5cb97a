"""What the model is told of an operation: its state, the one sentence that may be said, and what is to be done.

A note is JSON, worded from the record alone: no provider's prose, no card's token, and nothing that the model has said
itself.

```
{"fact": "refund of order:4417", "version": 4, "state": "confirmed", "say": "The refund of 32 dollars ... is done.",
 "must_hear": ["amount", "card"], "next": "Tell the caller this in your next reply, in these words."}
```
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from callwright.claims.facts import OUTCOMES, Milestone, Said
from callwright.core.events import Consent, FactChanged

TELL = "Tell the caller this in your next reply, in these words."
UNDER_WAY = (
    "There is no outcome yet. If the caller asks, say this and no more; never say that it is done or has failed."
)
ASK_FOR_A_YES = (
    "Nothing is done before the caller's yes. Read exactly these terms back to the caller and ask whether to go ahead; "
    "end with that question, and wait for a plain yes."
)
SPELL_IT = " Names that must be heard are spelled letter by letter now: R-E-I-D."
NEEDS_LEAVE = "Nothing is done before somebody has allowed it. If the caller asks, say this and no more."
EARLIER = "This is from an earlier call. If it comes up, say this and no more."
AGAIN = "The caller has not heard this. Tell the caller now, in these words, before anything else."
END_IT = json.dumps(
    {"call": "still open", "next": "Nothing is left to tell. Say goodbye and end the call, in one reply."}
)
"""What the model is told when its goodbye was taken back, and what it was taken back for is through."""


def give_up_of(waited_s: int) -> str:
    """What the model is told when it has waited on hold for as long as it may."""
    then = "Nobody has come. Say briefly that you cannot wait any longer, and end the call, in one reply."
    return json.dumps({"call": "on hold", "waited": f"{waited_s} s", "next": then})


_WRONGLY: Mapping[Said, str] = {
    Said.DONE: "is done",
    Said.FAILED: "did not go through",
    Said.CANCELLED: "was stopped",
    Said.REVERSED: "came back",
}
_SAYS: Mapping[Milestone, Said] = {
    Milestone.CONFIRMED: Said.DONE,
    Milestone.FAILED: Said.FAILED,
    Milestone.CANCELLED: Said.CANCELLED,
    Milestone.REVERSED: Said.REVERSED,
}
OTHER_TERMS = "You have named another amount or card than the record's"


def note_of(fact: FactChanged) -> str:
    """What the model is told when a fact has changed."""
    return _note(fact, _next(fact))


def reminder_of(fact: FactChanged) -> str:
    """What the model is told when a reply was to tell a fact, and the caller did not hear it."""
    return _note(fact, AGAIN)


def correction_of(fact: FactChanged, said: Said) -> str:
    """What the model is told when the caller heard something that the record does not support."""
    is_other = _SAYS.get(fact.facts.milestone) is said
    wrongly = OTHER_TERMS if is_other else f"You have said that it {_WRONGLY.get(said, 'is otherwise')}"
    return _note(fact, f"{wrongly}. That is wrong: tell the caller so now, and then say this.")


def _next(fact: FactChanged) -> str:
    if not fact.is_ours:
        return EARLIER
    if fact.facts.milestone in OUTCOMES:
        return TELL
    if fact.facts.milestone is Milestone.PROPOSED:
        return f"{ASK_FOR_A_YES}{_spelling(fact, fact.consent)}" if fact.consent else NEEDS_LEAVE
    return UNDER_WAY


def _spelling(fact: FactChanged, consent: Consent) -> str:
    has_names = any(name in fact.facts.must_hear for name, _ in fact.facts.texts)
    return SPELL_IT if consent.is_anew and has_names else ""


def _note(fact: FactChanged, then: str) -> str:
    facts = fact.facts
    what = f"{facts.kind.replace('_', ' ')} of {facts.subject}" if facts.subject else facts.kind.replace("_", " ")
    return json.dumps(
        {
            "fact": what,
            "version": fact.version,
            "state": facts.milestone.value,
            "say": fact.sentence,
            "must_hear": list(facts.must_hear),
            "next": then,
        }
    )
