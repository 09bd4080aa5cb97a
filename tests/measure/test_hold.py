"""What is measured of a call that waits on hold: speech while nobody is there, keys, and how a person is met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.measure.far_ends import (
    AGAIN,
    BEEP_MS,
    GREETING,
    KEY,
    MENU,
    PERSON,
    QUEUE,
    RINGING,
    VOICEMAIL,
    far_call,
    rests,
    says,
    speaks,
)
from tests.measure.records import SPEECH, Laid, record_of, said

from callwright.ids import ItemId, Ms
from callwright.measure.far import Phase, find_far_side
from callwright.measure.figures import figures_of, measure_call
from callwright.measure.hearing import hear_call
from callwright.measure.hold import HOLD_METRICS
from callwright.measure.moments import instants
from callwright.measure.verdict import judge
from callwright.sim.models import CallerSaid, Clip
from callwright.sim.record import CallRecord, FarSpan
from callwright.sim.scenario import Expectations


def values(record: CallRecord, name: str) -> list[float] | None:
    found = measure_call(record, SPEECH).values.get(name)
    return None if found is None else list(found)


def sound(line_id: str, at_ms: Ms) -> tuple[Ms, Ms]:
    """The first and the last audible instant of a line that is said from ``at_ms`` on."""
    (turn,) = hear_call(record_of([], [said(line_id, at_ms)]), {**SPEECH}).turns
    return turn.onset_ms, turn.end_ms


def voice(reply: Laid) -> tuple[Ms, Ms]:
    """The same of a reply."""
    (heard,) = hear_call(record_of([reply]), SPEECH).replies
    first_ms, last_ms = heard.played.first_audible_ms, heard.played.last_audible_ms
    assert first_ms is not None
    assert last_ms is not None
    return first_ms, last_ms


# --- speech while nobody is there


def test_an_agent_that_keeps_quiet_on_hold_did_not_speak_though_its_key_sounded() -> None:
    record = far_call(replies=[speaks(42_500), speaks(57_000, "goodbye")])
    assert values(record, "spoke_on_hold") == [0]
    assert values(record, "menu_talked_over") == [0]
    assert values(record, "keys_pressed") == [1]
    assert values(record, "keys_not_alone") == [0]


@pytest.mark.parametrize("at_ms", [2_000, 5_000, 8_700, 10_200, 15_000, 26_000, 30_000, 48_000])
def test_speech_over_ringing_menus_announcements_and_music_is_counted(at_ms: Ms) -> None:
    """And so is what falls into a pause between them."""
    assert values(far_call(replies=[speaks(at_ms)]), "spoke_on_hold") == [1]


def test_a_pause_makes_two_of_one() -> None:
    twice = [speaks(15_000), speaks(15_000 + speaks(0).made.audio_ms + 1_000)]
    assert values(far_call(replies=twice), "spoke_on_hold") == [2]
    assert values(far_call(replies=[Laid(twice[0].clips, 15_000, breaks=[(500, 200)])]), "spoke_on_hold") == [1]


def test_a_word_that_a_person_no_longer_hears_is_not_spoken_on_hold_unless_it_goes_on() -> None:
    """The agent cannot know at once that the music has begun."""
    last_ms = voice(speaks(0))[1]
    assert values(far_call(replies=[speaks(47_000 - last_ms)]), "spoke_on_hold") == [0]
    assert values(far_call(replies=[speaks(47_000 - last_ms + 20)]), "spoke_on_hold") == [1]


def test_what_a_person_is_told_is_not_spoken_on_hold_whatever_came_before() -> None:
    assert values(far_call([PERSON], [speaks(42_500)], []), "spoke_on_hold") == [0]
    assert values(far_call([*QUEUE, PERSON], [speaks(40_200)]), "spoke_on_hold") == [0]


def test_c060_a_menu_is_talked_over_while_it_speaks_and_while_it_waits_for_a_key() -> None:
    record = far_call(replies=[speaks(4_200), speaks(8_400), speaks(15_000)])
    assert values(record, "menu_talked_over") == [2]
    assert values(record, "spoke_on_hold") == [3]
    assert values(far_call([PERSON], [], []), "menu_talked_over") is None


# --- keys


def test_c060_a_key_with_speech_within_a_fifth_of_a_second_is_not_alone() -> None:
    last_ms = voice(speaks(0))[1]
    assert values(far_call(replies=[speaks(9_300 - 190 - last_ms)]), "keys_not_alone") == [1]
    assert values(far_call(replies=[speaks(9_300 - 210 - last_ms)]), "keys_not_alone") == [0]
    assert values(far_call(replies=[speaks(9_200)]), "keys_not_alone") == [1]


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("Please wait, I am pressing two for you.", 1),
        ("So I'll press 2 and then we wait.", 1),
        ("I have pressed one, thank you, goodbye now.", 0),
        ("Should one press two, or wait for you?", 0),
    ],
)
def test_c061_a_key_that_is_only_claimed_is_told_with_its_time(text: str, claims: int) -> None:
    record = far_call(replies=[speaks(20_000, "pool")], keys=[("1", 25_000)])
    (item,) = record.spoken
    words = tuple(replace(was, text=word) for was, word in zip(item.words, text.split(), strict=True))
    call = hear_call(replace(record, spoken=(replace(item, words=words),)), SPEECH)
    assert list(figures_of(call).values["keys_only_claimed"]) == [claims]
    assert all(20_000 < at_ms < 23_000 for at_ms in instants(call, "keys_only_claimed"))
    assert len(instants(call, "keys_only_claimed")) == claims


def test_a_key_comes_so_long_after_the_last_sample_of_what_the_menu_says() -> None:
    assert values(far_call(), "key_after_ms") == [9_300 - sound(MENU, 4_000)[1]]
    assert values(far_call(keys=[("2", 6_000)]), "key_after_ms") == [6_000 - sound(MENU, 4_000)[1]]
    assert values(far_call(keys=[]), "key_after_ms") is None


def test_of_each_menu_the_first_key_counts() -> None:
    """A menu that is spoken again is answered again; a second key is none of a second menu."""
    again = [says("menu", MENU, 4_000), says("menu", MENU, 12_000), PERSON]
    keys = [("1", 9_000), ("2", 9_200), ("2", 17_500)]
    ends = [sound(MENU, at_ms)[1] for at_ms in (4_000, 12_000)]
    assert values(far_call(again, keys=keys), "key_after_ms") == [9_000 - ends[0], 17_500 - ends[1]]
    assert values(far_call(again, keys=keys), "keys_pressed") == [3]


# --- the person


def test_one_is_on_hold_from_the_last_key_to_a_person_s_first_word() -> None:
    first_ms = sound(GREETING, PERSON.started_ms)[0]
    assert values(far_call(), "seconds_on_hold") == [(first_ms - 9_300) / 1000]
    wrong_first = far_call(keys=[("1", 8_800), KEY, ("0", 56_000)])
    assert values(wrong_first, "seconds_on_hold") == [(first_ms - 9_300) / 1000]


def test_a_person_is_answered_from_the_end_of_the_greeting_on() -> None:
    end_ms = sound(GREETING, PERSON.started_ms)[1]
    answer, _ = voice(speaks(42_500))
    assert values(far_call(replies=[speaks(42_500)]), "answered_after_ms") == [answer - end_ms]


def test_c068_an_answer_that_falls_into_the_greeting_came_too_early() -> None:
    (early,) = values(far_call(replies=[speaks(41_300)]), "answered_after_ms") or [0]
    assert early < 0


def test_what_was_said_before_the_greeting_is_no_answer_to_it() -> None:
    record = far_call(replies=[speaks(30_000), speaks(42_500)])
    assert values(record, "answered_after_ms") == values(far_call(replies=[speaks(42_500)]), "answered_after_ms")


@pytest.mark.parametrize("replies", [[], [speaks(15_000)]])
def test_who_reaches_no_person_is_not_scored_and_told_why(replies: list[Laid]) -> None:
    """A missing answer is no quick one."""
    figures = figures_of(hear_call(far_call(QUEUE, replies), SPEECH))
    assert "answered_after_ms" not in figures.values
    assert figures.values["seconds_on_hold"] == ((40_000 - 9_300) / 1000,), "one waited to the end of the music"
    verdict = judge(figures, Expectations({"answered_after_ms": 1_200, "spoke_on_hold": 1}, {}, (), (), None))
    assert verdict.not_scored == ("answered_after_ms",)
    assert verdict.failed[0].got.startswith("not measured (no person was reached")
    assert verdict.passed == ("spoke_on_hold",)


def test_a_person_hears_the_notice_so_long_after_his_greeting() -> None:
    notice = Laid((Clip("notice"),), 42_500)
    told = replace(far_call(replies=[notice]), ai_notice=SPEECH["notice"].text)
    end_ms = sound(GREETING, PERSON.started_ms)[1]
    (after_ms,) = values(told, "introduced_after_ms") or [0]
    assert after_ms == pytest.approx(voice(notice)[0] - end_ms, abs=60)
    to_the_queue = replace(far_call(replies=[Laid((Clip("notice"),), 15_000)]), ai_notice=SPEECH["notice"].text)
    assert values(to_the_queue, "introduced_after_ms") is None
    assert values(to_the_queue, "ai_notice_heard") == [1]


def test_only_what_a_person_says_is_a_turn_that_wants_an_answer() -> None:
    heard = hear_call(far_call(replies=[speaks(42_500), speaks(60_500)]), SPEECH)
    assert [turn.line.line_id for turn in heard.turns] == [GREETING, "ask-pool"]
    assert list(figures_of(heard).values["response_rate"]) == [1]


# --- a voicemail


def message(at_ms: Ms) -> CallRecord:
    return far_call(VOICEMAIL, [speaks(at_ms, "goodbye", "end_call")], [])


def test_c063_c065_a_message_behind_the_beep_is_whole_and_nothing_came_before() -> None:
    record = message(BEEP_MS + 400)
    assert values(record, "message_share") == [1]
    assert values(record, "spoke_before_beep_ms") == [0]
    assert values(record, "spoke_on_hold") == [0]
    assert values(record, "answered_after_ms") is None


def test_c063_a_message_that_begins_in_the_greeting_is_not_whole() -> None:
    first_ms, last_ms = voice(speaks(11_000, "goodbye"))
    record = message(11_000)
    before_ms = BEEP_MS - first_ms
    (share,) = values(record, "message_share") or [0]
    assert share == pytest.approx(1 - before_ms / (last_ms - first_ms), abs=0.01)
    assert values(record, "spoke_before_beep_ms") == [before_ms]
    assert values(record, "spoke_on_hold") == [1]


def test_a_call_without_a_voicemail_left_no_message() -> None:
    record = far_call(replies=[speaks(42_500, "goodbye", "end_call")])
    assert values(record, "message_share") is None
    assert values(record, "spoke_before_beep_ms") is None


# --- the call


def test_a_turn_that_is_nothing_but_music_is_counted_where_there_was_some() -> None:
    record = far_call()
    music = replace(record, history=(*record.history, CallerSaid(ItemId("music"), "[music]")))
    assert (values(record, "music_turns"), values(music, "music_turns")) == ([0], [1])
    assert values(far_call([PERSON], keys=[]), "music_turns") is None


def test_a_call_that_the_agent_takes_has_no_figures_of_hold() -> None:
    measured = measure_call(record_of([speaks(6_000)], [said(MENU, 400)]), SPEECH).values
    assert [metric.name for metric in HOLD_METRICS if metric.name in measured] == []


@pytest.mark.parametrize(
    ("spans", "names"),
    [
        ((*QUEUE, *AGAIN), ["ringing", "menu", "queue", "person", "on hold again", "person"]),
        (VOICEMAIL, ["ringing", "voicemail"]),
        ((RINGING, rests("busy", 4_000, 9_000)), ["ringing", "busy"]),
        ((*VOICEMAIL[:3], *QUEUE[4:]), ["ringing", "queue"]),
    ],
)
def test_the_phases_of_a_call_are_what_its_far_end_did(spans: Sequence[FarSpan], names: list[str]) -> None:
    far = find_far_side(far_call(spans))
    assert far is not None
    assert [phase.name for phase in far.phases] == names
    assert far.phases[0] == Phase("ringing", 0, 4_000)
