"""An agent that calls listens first: it begins only where the line has been quiet for as long as it was told."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.drive import R1, Call, audio, ended, speaks, stops
from tests.core.machines import written_rows

from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.lull import SILENCE_MS
from callwright.core.opening import OPENING, Opening
from callwright.core.outgoing import Outgoing
from callwright.core.plan import Can
from callwright.ids import ItemId, Ms

ROWS = """
UNHEARD HEARD -> LISTENING
LISTENING BEGUN -> DONE
LISTENING QUIET -> DONE
"""
LIMIT_MS = 6_000


def test_rows():
    assert written_rows(OPENING) == ROWS.split("\n")[1:-1]


def listening(opens_after_ms: Ms | None = LIMIT_MS) -> Call:
    return Call(opens_after_ms=opens_after_ms)


def test_c068_a_line_on_which_nobody_says_anything_is_spoken_to_at_the_limit_and_asked_once():
    call = listening()
    call.at(LIMIT_MS - 1)
    assert call.done(do.RequestReply) == []
    call.at(LIMIT_MS, on.ResponseStarted(R1), audio(R1, ItemId("i"), 500), ended(R1))
    call.at(60_000)
    assert len(call.done(do.RequestReply)) == 1
    assert len(call.done(do.UnwatchCaller)) == 1, "nobody listens to how loud it is any more"


def test_c068_who_is_greeted_by_the_callee_waits_for_the_server_s_reply():
    call = listening()
    call.at(1_000, speaks())
    call.at(2_500, stops())
    call.at(3_000, on.ResponseStarted(R1), audio(R1, ItemId("i"), 500), ended(R1))
    call.at(60_000)
    assert call.done(do.RequestReply) == []


@pytest.mark.parametrize("lost_ms", [0, 1_500])
def test_ringing_is_no_reason_to_speak_and_lost_ringing_is_none_either(lost_ms):
    """2 s on, 4 s off; what came before the session was ready may have been no more than that."""
    call = listening()
    if lost_ms:
        call.at(0, on.FirstWordsLost(lost_ms))
    for began_ms in range(1_000, 60_000, 6_000):
        call.at(began_ms, on.CallerLoud(True))
        call.at(began_ms + 2_000, on.CallerLoud(False))
    assert call.done(do.RequestReply) == []
    call.at(57_000 + LIMIT_MS)
    assert len(call.done(do.RequestReply)) == 1


def test_an_agent_that_takes_calls_never_begins_but_asks_about_words_that_were_lost():
    call = listening(None)
    call.at(600_000)
    assert call.log == []
    call.at(600_000, on.FirstWordsLost(900))
    call.at(600_000 + SILENCE_MS)
    assert len(call.done(do.RequestReply)) == 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9_000), st.booleans()), max_size=8))
def test_it_begins_exactly_where_the_line_was_first_quiet_for_so_long(changes):
    opening, now_ms, quiet_since_ms, is_loud = Opening(Outgoing(Can(0)), LIMIT_MS), 0, 0, False
    begins_ms = []

    def look_until(end_ms: Ms) -> None:
        deadline_ms = opening.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= end_ms and opening.look(deadline_ms, has_begun=False):
            begins_ms.append(deadline_ms)

    opening.look(0, has_begun=False)
    wanted_ms = None
    for gap_ms, louder in [*changes, (30_000, False), (30_000, False)]:
        if wanted_ms is None and not is_loud and now_ms + gap_ms >= quiet_since_ms + LIMIT_MS:
            wanted_ms = quiet_since_ms + LIMIT_MS
        look_until(now_ms + gap_ms)
        now_ms += gap_ms
        if is_loud and not louder:
            quiet_since_ms = now_ms
        is_loud = louder
        opening.caller_loud(is_loud=louder)
        opening.look(now_ms, has_begun=False)
    assert begins_ms == [wanted_ms]
    assert opening.next_deadline_ms() is None
