"""What a program does not tell is not judged, and what it does out of sight is not scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.measure.records import SPEECH, Laid, record_of, said

from callwright.measure.course import WordFate, course_of
from callwright.measure.figures import CallFigures, figures_of, measure_call
from callwright.measure.hearing import hear_call
from callwright.measure.outcome import what_went_right
from callwright.measure.verdict import Failure, Verdict, judge
from callwright.sim.models import Clip
from callwright.sim.record import CallRecord, Tells
from callwright.sim.scenario import Expectations

TRANSCRIPT = {"unheard_words_in_transcript", "heard_words_missing"}
RECORD = {"held_sent_ms", "outcomes_lost"}


def record(tells: Tells, *, transcript: str | None = None) -> CallRecord:
    """A reply that was cut after a second; a client that tells nothing has no transcript of it."""
    reply = Laid([Clip("parking")], 5_000, heard_ms=1_000, truncated_ms=1_000, transcript=transcript)
    made = record_of([reply], [said("ask-parking", 400)])
    return replace(made, tells=tells, turns=() if tells is Tells.NOTHING else made.turns)


def verdict(figures: CallFigures, most: Mapping[str, float], effects: tuple[str, ...] | None = None) -> Verdict:
    return judge(figures, Expectations(most, {}, (), (), None, effects))


@pytest.mark.parametrize(
    ("tells", "untold"), [(Tells.ALL, set()), (Tells.HEARD, RECORD), (Tells.NOTHING, RECORD | TRANSCRIPT)]
)
def test_what_the_client_does_not_tell_has_no_figure(tells: Tells, untold: set[str]) -> None:
    figures = measure_call(record(tells), SPEECH)
    assert figures.unjudged.keys() == untold
    assert not figures.values.keys() & untold
    assert figures.values["unheard_words_in_history"] == (0,)


def test_it_neither_holds_nor_fails_beside_what_is_judged() -> None:
    figures = measure_call(record(Tells.NOTHING), SPEECH)
    told = verdict(figures, {"heard_words_missing": 0, "unheard_words_in_history": 0})
    assert (told.passed, told.failed) == (("unheard_words_in_history",), ())
    assert [name for name, _ in told.not_judged] == ["heard_words_missing"]


def test_a_call_of_which_nothing_can_be_judged_is_not_scored() -> None:
    told = verdict(measure_call(record(Tells.NOTHING), SPEECH), {"heard_words_missing": 0})
    assert told.failed == (Failure("judged", "something that can be judged", "nothing", is_measured=False),)
    assert told.not_scored == ("judged",)
    assert verdict(measure_call(record(Tells.NOTHING), SPEECH), {}) == Verdict((), ())


def test_what_a_client_tells_is_judged() -> None:
    figures = measure_call(record(Tells.HEARD, transcript=SPEECH["parking"].text), SPEECH)
    assert sum(figures.values["unheard_words_in_transcript"]) > 3


def test_words_that_nobody_wrote_down_are_not_shown_as_missed() -> None:
    heard = hear_call(record(Tells.NOTHING), SPEECH)
    (reply,) = course_of(heard).spoken
    fates = {word.fate for word in reply.words}
    assert WordFate.HEARD in fates
    assert WordFate.MISSED not in fates
    assert figures_of(heard).replies[0].in_transcript is None
    assert what_went_right(heard.record, figures_of(heard)).endswith("the client does not tell.")


def test_what_was_done_where_nobody_sees_it_is_not_scored() -> None:
    acts = replace(record(Tells.ALL), action_tools=("issue_refund",), has_witness=False)
    figures = measure_call(acts, SPEECH)
    told = verdict(figures, {"duplicate_effects": 0}, ())
    assert told.not_scored == ("duplicate_effects", "effects")
    assert all("sent nothing to the stand-in provider" in failure.got for failure in told.failed)
    assert "false_claims_heard" not in figures.values
    seen = measure_call(replace(acts, has_witness=True), SPEECH)
    assert verdict(seen, {"duplicate_effects": 0}, ()) == Verdict(("duplicate_effects", "effects"), ())
    assert not measure_call(replace(acts, action_tools=()), SPEECH).unscored
