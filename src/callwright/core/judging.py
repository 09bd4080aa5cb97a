"""What the caller heard of a reply, weighed against the record: was he told, and was he told wrongly?

Only words that were heard count. Of a reply that was cut, those within a margin of the cut do not: where the server
told the text, the words lie along what was played by their lengths; where the text is our own estimate, it is short
enough already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from callwright.claims.facts import ClaimFacts, Milestone, Said, Verdict
from callwright.claims.matcher import claimed, judge
from callwright.claims.sentences import is_rendered
from callwright.claims.words import Heard
from callwright.core.estimate import ends_ms
from callwright.core.events import FactChanged
from callwright.core.transcript import Source, Turn

SUPPORTED: Mapping[Milestone, tuple[Said, ...]] = {
    Milestone.PROPOSED: (Said.FAILED,),
    Milestone.REQUESTED: (Said.FAILED,),
    Milestone.RUNNING: (),
    Milestone.ACCEPTED: (),
    Milestone.CONFIRMED: (Said.DONE,),
    Milestone.FAILED: (Said.FAILED,),
    Milestone.UNKNOWN: (),
    Milestone.CANCELLED: (Said.CANCELLED, Said.FAILED),
    Milestone.REVERSED: (Said.REVERSED, Said.FAILED),
}
"""Which outcomes a sentence may claim ("it was not sent" is Said.FAILED: true of what nobody has sent yet)."""
TOLD_BY: Mapping[Said, Milestone] = {
    Said.DONE: Milestone.CONFIRMED,
    Said.FAILED: Milestone.FAILED,
    Said.CANCELLED: Milestone.CANCELLED,
    Said.REVERSED: Milestone.REVERSED,
}
"""The claims that must be supported, with the milestone that each of them tells."""


def heard_of(turn: Turn) -> Heard:
    """What was heard of a reply for certain."""
    if turn.source is Source.WHOLE:
        return Heard(turn.heard)
    if turn.source in (Source.RETRIEVED, Source.ALIGNED) and turn.cut_ms is not None:
        return Heard(turn.heard, cut=True, ends_ms=ends_ms(turn.heard, turn.cut_ms), played_ms=turn.cut_ms)
    return Heard(turn.heard, cut=True)


def tells(heard: Heard, fact: FactChanged, locale: str) -> bool:
    """Whether somebody who heard this was told: by the record's own sentence, or by words that say the same."""
    return is_rendered(heard, fact.sentence) or judge(heard, fact.facts, locale).verdict is Verdict.TOLD


def names_subject(heard: Heard, fact: FactChanged, locale: str) -> bool:
    """Whether it was told by a sentence that also names what it is about."""
    return "subject" in judge(heard, fact.facts, locale).affirmed


def wrong_claims(
    heard: Heard, began_with: Mapping[str, FactChanged], now: Mapping[str, FactChanged], locale: str
) -> dict[str, Said]:
    """What a heard reply claims wrongly, by operation: neither as the record was when it began, nor as it is now.

    A right outcome with another amount or card than the record's is a wrong claim, unless another operation has those.

    A claim that names no operation is about whichever it is true of: an earlier call's operation excuses no claim about
    one of this call, unless it is the only one.
    """
    claims = {op_id: claimed(heard, fact.facts, locale).said for op_id, fact in now.items()}
    right = [op_id for op_id, said in claims.items() if _is_supported(said, began_with.get(op_id), now[op_id])]
    wrong = {}
    for op_id, said in claims.items():
        if said not in TOLD_BY or op_id in right:
            continue
        excuses = [now[other] for other in right if claims[other] is said]
        is_excused = any(other.is_ours or not now[op_id].is_ours for other in excuses)
        excuses_named = any(_names_it(heard, other.facts, said, locale) for other in excuses)
        if not is_excused or (not excuses_named and _names_it(heard, now[op_id].facts, said, locale)):
            wrong[op_id] = said
    if not any(_names_it(heard, now[op_id].facts, claims[op_id], locale) for op_id in right):
        for op_id in right:
            facts = [each[op_id].facts for each in (began_with, now) if op_id in each]
            if all(_names_another(heard, each, claims[op_id], locale) for each in facts):
                wrong[op_id] = claims[op_id]
    return wrong


def first_told(heard: Heard, facts: Sequence[FactChanged], locale: str) -> list[FactChanged]:
    """Which of these facts were told: one sentence that names no subject tells one operation, the first of them."""
    told = [fact for fact in facts if tells(heard, fact, locale)]
    named = [fact for fact in told if names_subject(heard, fact, locale)]
    unnamed: list[FactChanged] = []
    for fact in told:
        if fact not in named and not any(_is_alike(fact, other) for other in (*unnamed, *named)):
            unnamed.append(fact)
    return [fact for fact in told if fact in named or fact in unnamed]


def _is_supported(said: Said, began_with: FactChanged | None, now: FactChanged) -> bool:
    return any(said in SUPPORTED[fact.facts.milestone] for fact in (began_with, now) if fact is not None)


def _names_it(heard: Heard, facts: ClaimFacts, said: Said, locale: str) -> bool:
    """Whether a claim has all that must be heard of an operation, in whatever words; only known ones tell it."""
    match = judge(heard, replace(facts, milestone=TOLD_BY[said]), locale)
    named = match.affirmed if match.verdict in (Verdict.TOLD, Verdict.PARTIAL) else ()
    return bool(facts.must_hear) and all(name in named for name in facts.must_hear)


def _names_another(heard: Heard, facts: ClaimFacts, said: Said, locale: str) -> bool:
    return judge(heard, replace(facts, milestone=TOLD_BY[said]), locale).verdict is Verdict.MISMATCH


def _is_alike(fact: FactChanged, other: FactChanged) -> bool:
    """Whether one sentence could tell either: nothing that was heard tells them apart."""
    return replace(fact.facts, subject="", must_hear=()) == replace(other.facts, subject="", must_hear=())
