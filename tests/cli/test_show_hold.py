"""What people look at of a call on hold says where it was, what was pressed, and what was said to nobody."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.measure.far_ends import AGAIN, KEY, PERSON, QUEUE, VOICEMAIL, far_call, rests, speaks
from tests.measure.records import SPEECH, Laid

from callwright.cli.show_hold import far_lane, far_legend, hold, waiting, who_spoke
from callwright.core.hold import HoldSummary, Phase, PhaseSince
from callwright.measure.far import FarSide, find_far_side
from callwright.measure.figures import measure_call
from callwright.measure.hearing import hear_call
from callwright.measure.hold import hold_summary
from callwright.sim.record import CallRecord, FarSpan


def far_of(record: CallRecord) -> FarSide:
    far = find_far_side(record)
    assert far is not None
    return far


def test_the_lane_of_the_far_end_shows_its_kinds_and_keys_and_explains_those_that_occur() -> None:
    far = far_of(far_call())
    assert far_lane(far, 1_000, 65) == "rrrrmmmmm2aa" + "~" * 13 + "aaa" + "~" * 12 + "·P····" + "~" * 8 + "·PPPPP·····"
    assert far_legend(far) == "r ringing   m menu   a announcement   ~ music   P person   2 key"


def test_a_person_is_told_from_a_machine() -> None:
    assert [who_spoke(far_of(far_call()), at_ms) for at_ms in (4_000, PERSON.started_ms)] == ["machine", "person"]


def test_the_lines_below_a_call_tell_phases_keys_the_waiting_and_what_it_costs() -> None:
    record = replace(far_call(replies=[speaks(42_500)]), result="ready after two")
    *told, result = [line.plain for line in hold(record, far_of(record), measure_call(record, SPEECH))]
    assert result == "Result: ready after two"
    assert told[0] == "line    0:00 ringing, 0:04 menu, 0:10 queue, 0:41 person, 0:46 on hold again, 0:55 person"
    assert told[1].startswith("keys    2, 0.99")
    assert told[1].endswith(" s after the menu")
    assert told[3] == "cost    connected for 64.50 s, 0.0215 USD and tokens"


def test_what_the_client_says_of_it_stands_beside_the_truth_and_the_result_last() -> None:
    said = HoldSummary("2", 31_000, 543, False, (PhaseSince(Phase.RINGING, 0), PhaseSince(Phase.QUEUE, 9_400)))
    record = replace(far_call(), hold=said, result="ready after two")
    told = [line.plain for line in hold(record, far_of(record), measure_call(record, SPEECH))]
    assert told[1] == "client  0:00 ringing, 0:09 queue"
    assert told[-1] == "Result: ready after two"
    as_json = hold_summary(hear_call(record, SPEECH))
    assert as_json is not None
    assert as_json["result"] == "ready after two"
    assert json.loads(json.dumps(as_json["client"]))["phases"][1] == {"phase": "queue", "since_ms": 9_400}


def test_a_call_without_a_result_says_why_it_ended() -> None:
    record = replace(far_call(), ended_because="gave up after 60 s on hold")
    *_, last = hold(record, far_of(record), measure_call(record, SPEECH))
    assert last.plain == "Result: none; gave up after 60 s on hold"


@pytest.mark.parametrize(("at_ms", "told"), [(13_400, "recorded whole"), (11_000, "58% of it recorded")])
def test_a_message_is_told_with_what_the_voicemail_has_of_it(at_ms: int, told: str) -> None:
    record = far_call(VOICEMAIL, [speaks(at_ms, "goodbye", "end_call")], [])
    lines = [line.plain for line in hold(record, far_of(record), measure_call(record, SPEECH))]
    assert lines[-3] == f"message {told}"


@pytest.mark.parametrize(
    ("spans", "replies", "told"),
    [
        (
            (*QUEUE, *AGAIN),
            [speaks(42_500)],
            "from key to person, nothing said while nobody was there, the person answ",
        ),
        ((*QUEUE, PERSON), [speaks(30_000)], "spoke 1 time while nobody was there, a person reached and not answered"),
        (QUEUE, [], "nothing said while nobody was there, no person reached"),
    ],
)
def test_the_waiting_is_told_with_what_was_said_to_nobody(
    spans: tuple[FarSpan, ...], replies: list[Laid], told: str
) -> None:
    assert told in waiting(far_of(far_call(spans, replies))).plain


def test_the_same_is_there_as_json() -> None:
    told = hold_summary(hear_call(far_call(replies=[speaks(15_000), speaks(42_500)]), SPEECH))
    assert told is not None
    assert (told["keys_pressed"], told["seconds_connected"], told["cost_usd"]) == (KEY[0], 64.5, 0.0215)
    assert told["seconds_on_hold"] == pytest.approx(41 - 9.3, abs=0.2)
    assert len(told["spoke_on_hold"]) == 1
    assert told["phases"][1] == {"name": "menu", "start_ms": 4_000, "end_ms": 9_400}
    busy = hold_summary(hear_call(far_call([rests("busy", 0, 5_000)], keys=[]), SPEECH))
    assert busy is not None
    assert (busy["keys_pressed"], busy["seconds_on_hold"], busy["answered_after_ms"]) == ("", None, None)
    elsewhere = hold_summary(hear_call(replace(far_call(), server="openai"), SPEECH))
    assert elsewhere is not None
    assert elsewhere["cost_usd"] is None, "a provider that takes nothing for time"
