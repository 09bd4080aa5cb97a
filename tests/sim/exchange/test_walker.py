"""The walker goes through a tree by numbers: instants, whether the agent is heard, and keys."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.audio.dtmf import KEYS
from callwright.audio.formats import FRAME_MS
from callwright.ids import Ms
from callwright.sim.exchange.tree import HANG_UP, Awaits, HoldMusic, Node, Part, Sound, Tree, Wait
from callwright.sim.exchange.walker import MOVES, RINGS, Cue, Stage, Walker

LINE_MS: Ms = 2_000
HOLD_MS: Ms = 30_000


def says(line_id: str) -> Sound:
    return Sound("announcement", line_id)


def answer(waits_ms: Ms = 10_000) -> Wait:
    return Wait(Awaits.ANSWER, waits_ms)


RIVERSIDE = Tree(
    "menu",
    {
        "menu": Node(
            (says("for-hours"), says("for-prescriptions"), Wait(Awaits.KEY, 6_000, "menu")),
            "connecting",
            {"1": "hours", "2": "connecting"},
            rounds=3,
        ),
        "hours": Node((says("hours"),), "menu"),
        "connecting": Node((says("connecting"),), "queue"),
        "queue": Node((HoldMusic("music", 2), says("still-waiting"), HoldMusic("music", 2)), "sam"),
        "sam": Node(
            (
                *(says("greeting"), answer(), says("spell"), answer(), says("hold-on"), answer(3_000)),
                *(Sound("music", "music", 8_000), says("ready"), answer(), says("bye"), answer(3_000)),
            ),
            HANG_UP,
        ),
        "voicemail": Node(
            (
                *(says("leave-a"), Wait(Awaits.NOTHING, 900), says("message")),
                *(Sound("beep", "beep", 400), Wait(Awaits.NOTHING, 60_000, "recording")),
            ),
            HANG_UP,
        ),
        "refuser": Node((says("hello"), answer(), says("not-to-machines"), Wait(Awaits.NOTHING, 1_000)), HANG_UP),
        "nobody": Node((Sound("ringing", "ringing", 48_000),), HANG_UP),
    },
)
"""A tree like that of the pharmacy, all of whose lines last `LINE_MS`."""

Keys = Mapping[Ms, str]
Spans = Sequence[tuple[Ms, Ms]]
NO_KEYS: Keys = {}


def walk(
    answers: str, speaks: Spans = (), keys: Keys = NO_KEYS, *, rings: int = 0, until_ms: Ms = 600_000
) -> list[object]:
    """What came when, as ``(ms, line)``; a wait is told as None. The last entry is the end of the call."""
    walker = Walker(RIVERSIDE, answers, rings, HOLD_MS, lambda _line: LINE_MS)
    came: list[object] = []
    part: Part | None = None
    for now_ms in range(0, until_ms, FRAME_MS):
        is_audible = any(start <= now_ms < end for start, end in speaks)
        walker.step(now_ms, is_audible=is_audible, keys=keys.get(now_ms, ""))
        if walker.stage is Stage.OVER:
            return [*came, (now_ms, "over")]
        if walker.part is not part or walker.began_ms == now_ms:
            part = walker.part
            came.append((now_ms, None if isinstance(part, Wait) else part.line_id))
    return came


def sounds(came: Sequence[object]) -> list[object]:
    return [each for each in came if isinstance(each, tuple) and each[1] is not None]


# --- menus --------------------------------------------------------------------------------------------------------


def test_a_key_leads_out_of_a_menu_while_it_waits() -> None:
    came = walk("menu", keys={5_000: "2"}, until_ms=8_000)
    assert came == [
        (0, "for-hours"),
        (2_000, "for-prescriptions"),
        (4_000, None),
        (5_000, "connecting"),
        (7_000, "music"),
    ]


def test_a_key_leads_out_of_a_menu_while_it_speaks() -> None:
    assert walk("menu", keys={700: "2"}, until_ms=2_000) == [(0, "for-hours"), (700, "connecting")]


def test_a_menu_without_a_key_is_said_three_times_and_falls_through() -> None:
    came = sounds(walk("menu", until_ms=31_000))
    said = [
        (at, line)
        for n in range(3)
        for at, line in ((n * 10_000, "for-hours"), (n * 10_000 + 2_000, "for-prescriptions"))
    ]
    assert came == [*said, (30_000, "connecting")]


def test_a_key_that_leads_nowhere_begins_the_next_round_at_once() -> None:
    came = walk("menu", keys={1_000: "9", 2_000: "9", 3_000: "9"}, until_ms=4_000)
    assert came == [(0, "for-hours"), (1_000, "for-hours"), (2_000, "for-hours"), (3_000, "connecting")]


def test_a_wrong_choice_hears_the_hours_and_comes_back_to_a_whole_menu() -> None:
    came = sounds(walk("menu", keys={4_500: "1", 12_000: "2"}, until_ms=12_500))
    assert came == [
        *((0, "for-hours"), (2_000, "for-prescriptions"), (4_500, "hours")),
        *((6_500, "for-hours"), (8_500, "for-prescriptions"), (12_000, "connecting")),
    ]


def test_c060_a_key_that_comes_too_late_is_for_nobody() -> None:
    """C060: the menu waits so long and no longer; a key in the queue changes nothing."""
    late = walk("menu", keys={30_000 + 860: "2", 40_000: "1"}, until_ms=60_000)
    assert late == walk("menu", until_ms=60_000)


# --- queues and persons -------------------------------------------------------------------------------------------


def test_a_queue_plays_half_of_the_music_on_either_side_of_its_announcement() -> None:
    assert walk("queue", until_ms=33_000) == [
        (0, "music"),
        (15_000, "still-waiting"),
        (17_000, "music"),
        (32_000, "greeting"),
    ]


def test_a_person_goes_on_a_second_after_the_agent_has_fallen_silent() -> None:
    came = sounds(walk("sam", speaks=[(2_800, 4_000), (4_500, 6_000)], until_ms=7_500))
    assert came == [(0, "greeting"), (7_000, "spell")]


def test_a_person_goes_on_after_ten_seconds_without_an_answer_and_three_after_hold_on() -> None:
    came = sounds(walk("sam", until_ms=60_000))
    assert came == [
        *((0, "greeting"), (12_000, "spell"), (24_000, "hold-on"), (29_000, "music"), (37_000, "ready")),
        *((49_000, "bye"), (54_000, "over")),
    ]


def test_speech_over_a_persons_words_answers_nothing_unless_it_goes_on() -> None:
    over = sounds(walk("sam", speaks=[(500, 1_500)], until_ms=13_000))
    assert over == [(0, "greeting"), (12_000, "spell")]
    beyond = sounds(walk("sam", speaks=[(500, 2_500)], until_ms=4_000))
    assert beyond == [(0, "greeting"), (3_500, "spell")]


def test_c068_a_callee_greets_and_waits_for_the_agent() -> None:
    """C068: who opens on top of the greeting is not answered; who speaks behind it is."""
    assert sounds(walk("refuser", speaks=[(0, 1_900)], until_ms=5_000)) == [(0, "hello")]
    assert sounds(walk("refuser", speaks=[(2_900, 4_000)], until_ms=5_500)) == [
        (0, "hello"),
        (5_000, "not-to-machines"),
    ]


def test_a_person_who_talks_to_no_machine_hangs_up_after_the_disclosure() -> None:
    assert walk("refuser", speaks=[(3_000, 6_000)])[-1] == (10_000, "over")


# --- other ends ---------------------------------------------------------------------------------------------------


def test_c065_a_greeting_with_pauses_is_one_greeting_with_one_beep() -> None:
    """C065: it does not matter to a machine what is said into its pauses."""
    came = walk("voicemail", speaks=[(2_100, 2_700), (5_500, 9_000)])
    assert came == [
        *((0, "leave-a"), (2_000, None), (2_900, "message"), (4_900, "beep"), (5_300, None)),
        (65_300, "over"),
    ]


def test_it_rings_before_anything_answers() -> None:
    assert walk("menu", rings=2, until_ms=13_000) == [(0, "ringing"), (12_000, "for-hours")]


def test_nobody_answers() -> None:
    assert walk("nobody", speaks=[(0, 40_000)], keys={9_000: "2"}) == [(0, "ringing"), (48_000, "over")]


# --- always -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", [stage for stage in Stage if stage is not Stage.OVER])
def test_whatever_the_far_end_does_comes_to_an_end_by_itself(stage: Stage) -> None:
    assert (stage, Cue.ELAPSED) in MOVES


def test_nothing_moves_a_call_that_is_over() -> None:
    assert not [pair for pair in MOVES if pair[0] is Stage.OVER]


@settings(max_examples=12)
@given(
    answers=st.sampled_from(list(RIVERSIDE.nodes)),
    rings=st.integers(0, 2),
    hold_ms=st.sampled_from((0, 20, 30_000)),
    keys=st.dictionaries(st.integers(0, 3_000), st.text(KEYS, min_size=1, max_size=3), max_size=8),
    speaks=st.lists(st.tuples(st.integers(0, 60_000), st.integers(0, 9_000)), max_size=6),
)
def test_a_call_comes_to_an_end_whatever_is_heard(
    answers: str, rings: int, hold_ms: Ms, keys: dict[int, str], speaks: list[tuple[Ms, Ms]]
) -> None:
    """Keys in any order, speech at any time: a while after the last of either the far end has hung up."""
    walker = Walker(RIVERSIDE, answers, rings, hold_ms, lambda _line: LINE_MS)
    for frame in range(260_000 // FRAME_MS):
        now_ms = frame * FRAME_MS
        is_audible = any(start <= now_ms < start + length for start, length in speaks)
        walker.step(now_ms, is_audible=is_audible, keys=keys.get(frame, ""))
        if walker.stage is Stage.OVER:
            return
        assert walker.place in RIVERSIDE.nodes or walker.place == RINGS
        assert walker.began_ms <= now_ms
    raise AssertionError(f"still {walker.stage} in {walker.place}")
