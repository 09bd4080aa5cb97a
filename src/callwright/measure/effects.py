"""What was done on the world, and what the caller heard of it: the provider's book held against his ear.

```
book   pending ---------- succeeded ........................... the truth, from here on
ear         "It is done."           "The refund of ... is done."|
             false claim            ^ heard, every field        | time to truth
```

No table of a client's is looked at: its book-keeping is what is being measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from callwright.claims.facts import ClaimFacts, Milestone, Said, Span, Verdict
from callwright.claims.matcher import claimed, judge
from callwright.claims.words import Heard
from callwright.measure.metric import Aim, Elsewhere, Metric
from callwright.sim.models import ToolRequested

if TYPE_CHECKING:
    from callwright.ids import Ms
    from callwright.measure.hearing import HeardCall, Reply
    from callwright.measure.metric import Values
    from callwright.sim.record import Effect

_MILESTONES = {
    "pending": Milestone.ACCEPTED,
    "succeeded": Milestone.CONFIRMED,
    "failed": Milestone.FAILED,
    "cancelled": Milestone.CANCELLED,
    "reversed": Milestone.REVERSED,
}
_OUTCOMES = {Said.DONE: "succeeded", Said.FAILED: "failed", Said.CANCELLED: "cancelled", Said.REVERSED: "reversed"}
_NOT_SO = (Verdict.MISMATCH, Verdict.CONTRADICTED)


def live_effects(book: tuple[Effect, ...]) -> tuple[Effect, ...]:
    """What the book holds in the end: each effect that was made and not undone, as it is."""
    return tuple(effect for effect in _latest(book).values() if effect.is_live)


def _latest(book: tuple[Effect, ...], at_ms: float = float("inf")) -> dict[str, Effect]:
    """Each effect as it was at an instant, by its id."""
    return {effect.effect_id: effect for effect in book if effect.at_ms <= at_ms}


def _facts(effect: Effect) -> ClaimFacts:
    """An effect as it may be told; a card is known by its last digits."""
    return ClaimFacts(
        effect.kind,
        _MILESTONES[effect.status],
        ("subject",) if effect.amount_minor is None else ("amount", "card"),
        effect.amount_minor,
        effect.currency,
        last4=effect.destination.rpartition(":")[2],
        subject=effect.subject,
    )


def _heard(reply: Reply) -> Heard:
    return Heard(reply.heard, cut=reply.was_cut)


def _replies(call: HeardCall) -> Iterator[tuple[Reply, Ms]]:
    """The replies of which anything was heard, each with its last audible instant."""
    for reply in call.replies:
        if reply.heard and reply.played.last_audible_ms is not None:
            yield reply, reply.played.last_audible_ms


def _key_word_ms(reply: Reply, claim: Span) -> Ms:
    """When the last word of a claim began at the ear: what it says has to be so by then."""
    return reply.began_ms(claim[1] - 1)


def _told_ms(call: HeardCall, effect: Effect) -> Ms | None:
    """The end of the first reply that told an effect as it is, with every field, since it is so."""
    facts = _facts(effect)
    for reply, at in _replies(call):
        match = judge(_heard(reply), facts)
        if match.verdict is Verdict.TOLD and _key_word_ms(reply, match.spans["claim"]) >= effect.at_ms:
            return at
    return None


def _owed(call: HeardCall) -> list[Effect]:
    """The effects whose outcome the caller is to hear: all but those that another one of the same thing replaced."""
    latest = _latest(call.record.book).values()
    live = [effect.subject for effect in latest if effect.is_live]
    return [effect for effect in latest if effect.status != "cancelled" or effect.subject not in live]


def _is_false(call: HeardCall, reply: Reply) -> bool:
    """Whether a reply claims an outcome that the book did not hold when the last word of the claim was heard."""
    text = _heard(reply)
    book = call.record.book
    facts = list(map(_facts, _latest(book).values())) or [ClaimFacts("refund", Milestone.CONFIRMED)]
    claim = next((claim for claim in (claimed(text, each) for each in facts) if claim.said in _OUTCOMES), None)
    if claim is None:
        return False
    effects = list(_latest(book, _key_word_ms(reply, claim.span)).values())
    so = [effect for effect in effects if effect.status == _OUTCOMES[claim.said]]
    if claim.said in (Said.FAILED, Said.CANCELLED) and not so:
        return any(effect.is_live for effect in effects)
    return all(judge(text, _facts(effect)).verdict in _NOT_SO for effect in so)


def _if_acting(call: HeardCall, count: int) -> Values:
    return (count,) if call.record.action_tools else ()


def _duplicates(call: HeardCall) -> Values:
    live = live_effects(call.record.book)
    return _if_acting(call, len(live) - len({(effect.kind, effect.subject, effect.slot) for effect in live}))


def _missing(call: HeardCall) -> Values:
    if call.record.effects_expected is None:
        return ()
    missing = Counter(call.record.effects_expected) - Counter(effect.text for effect in live_effects(call.record.book))
    return (missing.total(),)


def untold_effects(call: HeardCall) -> list[Effect]:
    """Those of which the caller did not hear the outcome in this call."""
    return [effect for effect in _owed(call) if _told_ms(call, effect) is None]


def false_claims(call: HeardCall) -> list[Reply]:
    """The replies that were heard to say what was not so."""
    return [reply for reply, _ in _replies(call) if _is_false(call, reply)]


def _untold(call: HeardCall) -> Values:
    return _if_acting(call, len(untold_effects(call)))


def _lost(call: HeardCall) -> Values:
    owed_outside = call.record.outbox
    lost = [each for each in untold_effects(call) if (each.kind, each.subject, each.slot) not in owed_outside]
    return _if_acting(call, len(lost))


def _false(call: HeardCall) -> Values:
    return _if_acting(call, len(false_claims(call)))


def _corrections(call: HeardCall) -> Values:
    false = [at for reply, at in _replies(call) if _is_false(call, reply)]
    truths = [_told_ms(call, effect) for effect in _owed(call)]
    return _if_acting(call, sum(any(truth is not None and truth > at for truth in truths) for at in false))


def _asks(call: HeardCall) -> Values:
    names = call.record.action_tools
    asked = sum(isinstance(item, ToolRequested) and item.name in names for item in call.record.history)
    things = {(effect.kind, effect.subject, effect.slot) for effect in call.record.book}
    return (asked / len(things),) if things else ()


def _time_to_truth(call: HeardCall) -> Values:
    told = [(_told_ms(call, effect), effect) for effect in _owed(call) if effect.status != "pending"]
    return [at_ms - max(effect.at_ms, 0) for at_ms, effect in told if at_ms is not None]


_NO_ACTIONS = "the agent has no actions"
_NO_EFFECTS = "nothing came to the provider's book"

EFFECT_METRICS = (
    Metric(
        "duplicate_effects",
        "effects",
        "Effects in the provider's book that were made and not undone, beyond one for each thing acted on.",
        "the book once all is settled",
        _duplicates,
        _NO_ACTIONS,
        elsewhere=Elsewhere.SAME,
    ),
    Metric(
        "missing_effects",
        "effects",
        "Effects that the scenario expects and the provider's book does not hold.",
        "the book once all is settled",
        _missing,
        "the scenario expects no effects",
        elsewhere=Elsewhere.SAME,
    ),
    Metric(
        "untold_at_hangup",
        "effects",
        "Effects in the provider's book of which the caller did not hear the outcome, with amount and card, after it"
        " was so. One that was stopped for another of the same thing does not count.",
        "sum over the book; what settles after the call is untold",
        _untold,
        _NO_ACTIONS,
        elsewhere=Elsewhere.DOUBTED,
    ),
    Metric(
        "outcomes_lost",
        "effects",
        "Of those, the ones that the client's own record does not owe outside its calls either (the outbox).",
        "sum over the untold effects, once all is settled",
        _lost,
        _NO_ACTIONS,
        elsewhere=Elsewhere.DOUBTED,
    ),
    Metric(
        "false_claims_heard",
        "replies",
        "Replies heard to say that it was done, failed, stopped or came back when the provider's book said otherwise as"
        " the last word of that began, or held it with another amount or card.",
        "sum over the call's audible replies",
        _false,
        _NO_ACTIONS,
        elsewhere=Elsewhere.DOUBTED,
    ),
    Metric(
        "corrections_heard",
        "replies",
        "Of those, the ones behind which the outcome was heard as it is.",
        "sum over the false claims heard",
        _corrections,
        _NO_ACTIONS,
        elsewhere=Elsewhere.DOUBTED,
    ),
    Metric(
        "asks_per_operation",
        "calls",
        "Calls of tools that act, for each thing acted on.",
        "per call with at least one effect in the provider's book",
        _asks,
        _NO_EFFECTS,
        aim=Aim.NEITHER,
        elsewhere=Elsewhere.WIRE,
    ),
    Metric(
        "time_to_truth_ms",
        "ms",
        "From the outcome's entry in the provider's book to the end of the first reply that told it with amount and"
        " card. One that was there before the call counts from its start.",
        "per effect whose outcome was heard",
        _time_to_truth,
        "no outcome was heard",
        elsewhere=Elsewhere.DOUBTED,
    ),
)
