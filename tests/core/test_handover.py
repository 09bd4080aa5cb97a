"""A call outlives its session: when another one is opened, how often, and in which form it is told of the call."""

from __future__ import annotations

import pytest
from tests.core.machines import every_cue, every_state, snapshot, written_rows

from callwright.core.handover import (
    HANDOVER,
    HOPELESS_CODES,
    LAST_MS,
    MARGIN_MS,
    PAUSES_MS,
    PROOF_MS,
    Cue,
    Handover,
    Stage,
)
from callwright.errors import IllegalTransition
from callwright.ids import Ms

ROWS = """
OPENING READY -> STEADY
OPENING RESTORED -> PROVING
OPENING LOST -> OPENING
OPENING HOPELESS -> GIVEN_UP
STEADY NEAR -> DUE
STEADY LOST -> OPENING
STEADY HOPELESS -> GIVEN_UP
DUE LET_GO -> OPENING
DUE LOST -> OPENING
DUE HOPELESS -> GIVEN_UP
PROVING PROVEN -> STEADY
PROVING LOST -> OPENING
PROVING HOPELESS -> GIVEN_UP
"""
HOUR_MS = 3_600_000
PAIRS = [(stage, cue) for stage in every_state(HANDOVER) for cue in every_cue(HANDOVER)]


def test_rows():
    assert written_rows(HANDOVER) == ROWS.split("\n")[1:-1]


@pytest.mark.parametrize(("stage", "cue"), PAIRS, ids=lambda value: value.name)
def test_a_cue_is_followed_or_raises_and_changes_nothing(stage: Stage, cue: Cue):
    handover = Handover(None)
    handover.stage = stage
    before = snapshot(handover)
    if (stage, cue) in HANDOVER.rows:
        handover._move(cue)
        assert handover.stage is HANDOVER.rows[stage, cue]
    else:
        with pytest.raises(IllegalTransition):
            handover._move(cue)
        assert snapshot(handover) == before


# --- a session's time ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("longest_ms", "near_ms", "last_ms"), [(HOUR_MS, HOUR_MS - MARGIN_MS, HOUR_MS - LAST_MS), (60_000, 45_000, 55_000)]
)
def test_c107_a_session_is_let_go_in_the_first_quiet_moment_near_its_end_or_shortly_before_it(
    longest_ms: Ms, near_ms: Ms, last_ms: Ms
):
    quiet, busy = Handover(longest_ms), Handover(longest_ms)
    for handover in (quiet, busy):
        handover.opens(0)
        handover.ready(300)
        assert handover.next_deadline_ms() == near_ms
        assert not handover.look(near_ms - 1, is_quiet=True)
    assert quiet.look(near_ms, is_quiet=True)
    assert not busy.look(near_ms, is_quiet=False)
    assert busy.next_deadline_ms() == last_ms
    assert not busy.look(last_ms - 1, is_quiet=False)
    assert busy.look(last_ms, is_quiet=False)


def test_a_session_without_a_known_limit_is_never_let_go():
    handover = Handover(None)
    handover.opens(0)
    handover.ready(300)
    assert handover.next_deadline_ms() is None
    assert not handover.look(10 * HOUR_MS, is_quiet=True)


# --- tries -----------------------------------------------------------------------------------------------------------


def test_c111_three_tries_with_growing_pauses_and_then_none():
    handover = Handover(None)
    assert [handover.opens(0)] == [0]
    for pause_ms in PAUSES_MS[1:]:
        assert handover.lost(is_final=False) is None
        assert handover.opens(0) == pause_ms
    assert handover.lost(is_final=False) == "3 tries brought no session that lasts"
    assert handover.stage is Stage.GIVEN_UP


@pytest.mark.parametrize("code", HOPELESS_CODES)
def test_c111_what_another_session_would_meet_too_ends_the_tries_at_once(code: str):
    handover = Handover(None)
    handover.opens(0)
    handover.refused(code)
    assert handover.closed(1006) == code


@pytest.mark.parametrize(("code", "goes_on"), [(1006, True), (4410, True), (4408, True), (1011, True), (1000, False)])
def test_only_a_close_that_means_it_ends_the_tries(code: int, goes_on: bool):
    handover = Handover(None)
    handover.opens(0)
    handover.ready(300)
    assert (handover.closed(code) is None) is goes_on


def test_a_session_that_lasts_gives_all_tries_back_and_one_that_does_not_counts():
    handover = Handover(None)
    for now_ms in (0, 20_000):  # the first one has nothing to prove, the second lasts
        assert handover.opens(now_ms) == 0
        handover.ready(now_ms)
        handover.look(now_ms + PROOF_MS, is_quiet=True)
        assert handover.closed(1006) is None
    assert handover.opens(40_000) == PAUSES_MS[0]
    for pause_ms in PAUSES_MS[1:]:
        handover.ready(40_000)
        handover.look(40_000 + PROOF_MS - 1, is_quiet=True)
        assert handover.closed(1006) is None
        assert handover.opens(40_000) == pause_ms
    handover.ready(40_000)
    assert handover.closed(1006) is not None


@pytest.mark.parametrize(("codes", "forms"), [((1007,), "RS"), ((1006,), "RR"), ((1006, 1006), "RRS")])
def test_c108_a_history_that_may_be_to_blame_is_not_told_again_item_by_item(codes: tuple[int, ...], forms: str):
    handover = Handover(None)
    handover.opens(0)
    handover.ready(0)
    handover.closed(1006)
    told = ""
    for code in (*codes, None):
        handover.opens(0)
        told += handover.form.name[0]
        handover.ready(0)
        if code is not None:
            assert handover.closed(code) is None
    assert told == forms
