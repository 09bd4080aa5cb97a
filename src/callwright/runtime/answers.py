"""What the model is told of a wish that an action be done: the output of the tool call, worded from the record alone.

An output is JSON in the form of the notes that follow it: the state, the one sentence that may be said, and what to do
``next``. It holds no card's token, no key, no text of a provider's, and nothing that the model has said itself.

```
{"asked": "created", "fact": "refund of order:4417", "state": "running",
 "say": "The refund of 32 dollars ... is being processed; there is no result yet.",
 "next": "It is under way. ... never say that it is done or has failed."}
```
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from callwright.claims.spelling import spelled
from callwright.declare.actions import Authority
from callwright.declare.tools import Facts
from callwright.ledger.asking import Answer, Verdict
from callwright.ledger.saying import OUTCOMES, FactChanged, what

UNDER_WAY: Final = (
    "It is under way, and you will be told the outcome. If the caller asks meanwhile, say this and no more; "
    "never say that it is done or has failed."
)
TELL: Final = "Tell the caller this, in these words."
NOT_DONE: Final = "Nothing was done. Tell the caller why; do not say that it was done, or that it will be."
DOUBTFUL: Final = (
    "Tell the caller that you cannot tell right now whether this was noted. Do not say that it is done, "
    "that it failed, or that you will try again."
)

_NEXT: Final[Mapping[Verdict, str]] = {
    Verdict.REPLAYED: "It was done before, and nothing was done again. Tell the caller this, in these words.",
    Verdict.AMEND_BLOCKED: (
        "The first one is on its way and cannot be stopped, so the change was not made. Tell the caller that, and this."
    ),
    Verdict.CONFLICT: (
        "It was done before with other terms, and that cannot be changed here. What was asked for now was not done. "
        "Tell the caller that, and this."
    ),
    Verdict.TOO_LATE: "It cannot be withdrawn any more. Tell the caller that, and this.",
    Verdict.WITHDRAWING: "The provider is asked to stop it, and you will be told whether that was possible. Say this.",
    Verdict.WITHDRAWN: "It is withdrawn. Tell the caller this, in these words.",
}
"""What the verdict itself calls for; where it does not, the state decides."""

_REASONS: Final[Mapping[str, str]] = {
    "not_theirs": "it is not this caller's",
    "destination_fixed": "the money can only go back to where it came from",
    "over_cap": "together with what was done before it would be more than is allowed",
    "reversed": "it was done once and came back, so a person has to look at it first",
    "needs_person": "a person has to agree to it",
}


def facts_of(fact: FactChanged | None) -> Facts:
    """What a tool may tell of an operation; the state ``none`` where the caller has none."""
    if fact is None:
        return {"state": "none", "say": "There is no record of that.", "next": "Nothing was asked for."}
    then = TELL if fact.milestone in OUTCOMES else UNDER_WAY
    return {"fact": _name(fact), "state": fact.milestone, "say": fact.sentence, "next": then}


def output_of(answer: Answer, fact: FactChanged | None) -> tuple[str, bool]:
    """The output for an answer, and whether the agent is to speak about it now; ``fact`` is what holds by now."""
    if answer.verdict is Verdict.REFUSED:
        reason = _REASONS.get(answer.reason, "it is not possible")
        return _text({**_asked(answer), **_known(fact), "why": reason, "next": NOT_DONE}), True
    if fact is None:
        return _text({**_asked(answer), "next": DOUBTFUL}), True
    if answer.verdict is Verdict.NEEDS_CONSENT:
        return _text({**_asked(answer), **_known(fact), **_consent(fact)}), True
    is_outcome = fact.milestone in OUTCOMES
    then = _NEXT.get(answer.verdict) or (TELL if is_outcome else UNDER_WAY)
    return _text({**_asked(answer), **_known(fact), "next": then}), answer.verdict in _NEXT or is_outcome


def withdrawn(answer: Answer) -> Facts:
    """What a tool may tell of a wish to withdraw."""
    return {**_asked(answer), **_known(answer.fact), "next": _NEXT.get(answer.verdict, NOT_DONE)}


def refused_by_the_app(reason: str) -> str:
    """The output where an action's function refused."""
    return _text({"asked": "refused", "why": reason, "next": NOT_DONE})


def not_asked(why: str) -> str:
    """The output where nothing came to the ledger, for a reason that is not the caller's."""
    return _text({"asked": "failed", "why": why, "next": NOT_DONE})


def in_doubt() -> str:
    """The output where it is not known whether the ledger has noted the wish."""
    return _text({"asked": "unknown", "next": DOUBTFUL})


def _asked(answer: Answer) -> dict[str, object]:
    return {"asked": answer.verdict.value}


def _known(fact: FactChanged | None) -> dict[str, object]:
    if fact is None:
        return {}
    return {"fact": _name(fact), "state": fact.milestone, "say": fact.sentence}


def _consent(fact: FactChanged) -> dict[str, object]:
    if fact.authority is not Authority.CALLER:
        return {"next": "Nothing is done before a person has allowed it. Tell the caller this, and no more."}
    named = what(fact.kind, fact.terms, fact.must_hear, spelled if fact.rev > 1 else str)
    return {
        "read_back": f"That is a {named}. Shall I go ahead?",
        "next": "Nothing is done before the caller's yes. Say the read_back in these words, and wait for a plain yes.",
    }


def _name(fact: FactChanged) -> str:
    return f"{fact.kind.replace('_', ' ')} of {fact.terms.subject}"


def _text(output: Mapping[str, object]) -> str:
    return msgspec.json.encode(output).decode()
