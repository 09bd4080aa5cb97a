"""A refund that is spoken into at any instant, whatever the provider does: it is made once, and the caller is told.

A part of the sweep of ``scripts/sweep_refund.py``, and ways to get the telling wrong that it has to see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
from scripts.sweep_refund import PROVIDERS, SPOKEN, STEP_MS, Point, Row, case_of, main, played, replay, span_of

from callwright.claims import matcher
from callwright.claims.facts import Milestone, Said
from callwright.claims.words import Heard
from callwright.core import judging, telling
from callwright.core.events import SpeechStarted
from callwright.core.session import Session
from callwright.core.telling import Tellings
from callwright.core.told import Told
from callwright.ids import Ms
from callwright.ledger import asking, saying
from callwright.runtime.dispatcher import Dispatcher
from callwright.sim.quick.judging import judged

Patch = pytest.MonkeyPatch


@pytest.mark.parametrize("fault", PROVIDERS)
def test_whenever_the_caller_speaks_into_a_refund_every_invariant_holds(fault: str) -> None:
    """Each provider has other instants, habits and lines."""
    number = list(PROVIDERS).index(fault)
    from_ms, _ = span_of(fault, 5 * number)
    for at, says in enumerate(SPOKEN):
        point = Point(fault, says, from_ms + (100 * (at % 5) + 15 * number) * STEP_MS, 5 * number + at)
        swept = Row(fault, says)
        swept.add(point, played(point))
        assert swept.counts["fired"] == 1
        assert swept.broken == [], replay(point)


def told_by_the_last_four_digits(patch: Patch) -> None:
    for module in (judging, telling):
        patch.setattr(module, "tells", lambda heard, fact, locale: fact.facts.last4 in heard.text)


def a_cut_is_ignored(patch: Patch) -> None:
    patch.setattr(telling, "heard_of", lambda turn: Heard(turn.written))


def a_barge_in_cancels_what_is_under_way(patch: Patch) -> None:
    tended: dict[asyncio.Task[None], None] = {}
    real_tend = Dispatcher._tend

    def tend(self: Dispatcher, op_id: str) -> None:
        real_tend(self, op_id)
        tended[self._tended[op_id]] = None

    patch.setattr(Dispatcher, "_tend", tend)
    _when_the_caller_speaks(patch, lambda session: [task.cancel() for task in tended])


def what_was_sent_is_never_stopped(patch: Patch) -> None:
    patch.setattr(asking, "UNDER_WAY", ())


def what_was_stopped_is_told_as_failed(patch: Patch) -> None:
    patch.setitem(saying.SENTENCES, "cancelled", saying.SENTENCES["failed"])
    patch.setitem(matcher._TELLS, Milestone.CANCELLED, Said.FAILED)


def nothing_is_put_right(patch: Patch) -> None:
    patch.setattr(Told, "contradicted", lambda self, op_id, said: None)


def no_reply_is_asked_for_where_the_caller_spoke(patch: Patch) -> None:
    silenced: dict[Tellings, None] = {}
    wants_reply = Tellings.wants_reply

    def silence(session: Session) -> None:
        if session.asking.telling.outstanding():
            silenced[session.asking.telling] = None

    def unless_silenced(self: Tellings, *, in_turn: bool = False) -> bool:
        return self not in silenced and wants_reply(self, in_turn=in_turn)

    patch.setattr(Tellings, "wants_reply", unless_silenced)
    _when_the_caller_speaks(patch, silence)


def _when_the_caller_speaks(patch: Patch, do: Callable[[Session], object]) -> None:
    real = Session._speech_started

    def started(self: Session, event: SpeechStarted, now_ms: Ms) -> None:
        do(self)
        real(self, event, now_ms)

    patch.setattr(Session, "_speech_started", started)


CAUGHT: Mapping[Callable[[Patch], None], tuple[Point, str]] = {
    told_by_the_last_four_digits: (Point("none", "never-mind", 12_140, 0), "I16"),
    a_cut_is_ignored: (Point("none", "never-mind", 11_000, 0), "I16"),
    a_barge_in_cancels_what_is_under_way: (Point("none", "did-it", 4_400, 0), "I19"),
    what_was_sent_is_never_stopped: (Point("none", "never-mind", 2_940, 0), "EFFECT"),
    what_was_stopped_is_told_as_failed: (Point("none", "never-mind", 2_940, 0), "I19"),
    nothing_is_put_right: (Point("none", "did-it", 14_580, 25), "I15"),
    no_reply_is_asked_for_where_the_caller_spoke: (Point("none", "did-it", 4_400, 0), "I22"),
}
"""Each mutant with a point at which it breaks an invariant, and which."""


@pytest.mark.parametrize("mutant", CAUGHT, ids=lambda mutant: mutant.__name__)
def test_the_sweep_sees_a_telling_that_is_wrong(monkeypatch: Patch, mutant: Callable[[Patch], None]) -> None:
    point, invariant = CAUGHT[mutant]
    assert judged(played(point), case_of(point)) == []
    mutant(monkeypatch)
    broken = judged(played(point), case_of(point))
    assert any(what.startswith(invariant) for what in broken), broken


def test_a_point_is_played_again_by_the_command_that_is_printed_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    point = Point("F3 lost-reply", "other-card", 5_420, 7)
    assert replay(point) == 'python scripts/sweep_refund.py --play "F3 lost-reply" other-card 5420 7'
    assert main(["--play", *map(str, point)]) == 0
    assert "every invariant holds" in capsys.readouterr().out
