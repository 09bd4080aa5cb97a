"""What came of a call, in sentences: what went wrong, the worst first, or that nothing did."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callwright.measure.figures import CallFigures
    from callwright.sim.record import CallRecord

MISDONE = ("duplicate_effects", "missing_effects", "untold_at_hangup", "false_claims_heard")
"""The figures of which each is 0 where what was asked for was done once, and told as it is."""


def what_went_wrong(record: CallRecord, figures: CallFigures) -> tuple[str, ...]:
    """One sentence for each kind of thing that went wrong; none where nothing did."""
    return (
        *_misdone(figures),
        *_misled(figures),
        *_lost(record, figures),
        *_mistaken(figures),
        *_misbelieved(record, figures),
    )


def what_went_right(record: CallRecord, figures: CallFigures) -> str:
    """What can be said of a call in which nothing went wrong."""
    right = "Client and server believe what the caller heard, and nothing else."
    if "unheard_words_in_transcript" in figures.unjudged:
        right = "The server believes what the caller heard, and nothing else; the client does not tell."
    if "unheard_words_in_history" in figures.unjudged:
        right = "The client believes what the caller heard, and nothing else; of the server that is not known."
    if record.far is not None:
        right += " Nothing was said while nobody was there."
    if any(farewell.is_whole for farewell in figures.farewells[-1:]):
        is_read = "pickup_lost_words" not in figures.unjudged
        right += " No word of the caller's was lost, and he heard" if is_read else " He heard"
        right += " the whole goodbye."
    if record.book:
        right += " What was done was done once, and he heard the outcome."
    return right


def seconds(ms: float) -> str:
    """A length as it is told."""
    return f"{ms / 1000:.2f} s"


def words(count: float) -> str:
    """So many words."""
    return _count(count, "word") if count else "no words"


def _misdone(figures: CallFigures) -> Iterator[str]:
    """What went wrong with what was to be done on the world, and with the telling of it."""
    twice, missing, untold, false = (sum(figures.values.get(name, ())) for name in MISDONE)
    if twice:
        yield f"The provider's book holds {_count(twice, 'effect')} too many."
    if missing:
        yield f"The provider's book lacks {_count(missing, 'effect')} that the caller asked for."
    if untold:
        yield f"The caller never heard what became of {_count(untold, 'effect')}."
    if false:
        yield f"He was told {_count(false, 'time')} what was not so."


def _misled(figures: CallFigures) -> Iterator[str]:
    """What was said to nobody, or not in time."""
    if count := sum(figures.values.get("spoke_on_hold", ())):
        yield f"The agent spoke {_count(count, 'time')} while nobody was there."
    if count := sum(figures.values.get("keys_only_claimed", ())):
        yield f"It said {_count(count, 'time')} that it pressed a key, and the far end heard none."
    for share in figures.values.get("message_share", ()):
        if share < 1:
            yield f"The voicemail has {share:.0%} of the message."


def _lost(record: CallRecord, figures: CallFigures) -> Iterator[str]:
    """What did not get across at the edges of the call."""
    if count := sum(figures.values.get("pickup_lost_words", ())):
        yield f"The model never heard {words(count)} of the caller's."
    for farewell in figures.farewells[-1:] if record.ended_by == "agent" else ():
        if not farewell.is_whole:
            yield f"The caller heard {seconds(farewell.heard_ms)} of a goodbye of {seconds(farewell.whole_ms)}."
    if sum(figures.values.get("late_talk_over", ())):
        yield "He was hung up on while he spoke."


def _mistaken(figures: CallFigures) -> Iterator[str]:
    """What of the agent's own voice came back and was taken for the caller's."""
    cut, turns = (sum(figures.values.get(name, ())) for name in ("echo_self_interrupts", "own_voice_as_caller"))
    if cut or turns:
        what = f"{_count(turns, 'turn')} of the caller's are its own words"
        yield f"Its own voice cut the agent off {_count(cut, 'time')}, and {what}."


def _misbelieved(record: CallRecord, figures: CallFigures) -> Iterator[str]:
    """What client and server have wrong of what was heard."""
    unheard, in_history, missing = (
        sum(figures.values.get(name, ()))
        for name in ("unheard_words_in_transcript", "unheard_words_in_history", "heard_words_missing")
    )
    if unheard or in_history:
        who = f"{record.client}'s record holds {words(unheard)} that the caller never heard"
        yield f"{who}; the server's history {words(in_history)}."
    elif missing:
        yield f"{record.client}'s record lacks {words(missing)} that the caller heard."


def _count(count: float, noun: str) -> str:
    return f"{count:g} {noun}{'s' * (count != 1)}"
