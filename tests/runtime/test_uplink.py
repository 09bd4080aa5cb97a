"""Nothing that the caller says is lost or overtaken while the session is not ready, up to a bound."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.audio.formats import FRAME_MS
from callwright.core.unheard import KEPT_MS, QUIET_KEPT_MS
from callwright.errors import UsageError
from callwright.ids import Ms
from callwright.runtime.uplink import HOLD_MS, Uplink
from callwright.wire.codec import encode_append

HELD_FRAMES = HOLD_MS // FRAME_MS


class Sent(list[bytes]):
    def send(self, message: bytes) -> None:
        self.append(message)


def frames(count: int, first: int = 0) -> list[bytes]:
    return [number.to_bytes(4, "big") for number in range(first, first + count)]


@given(held=st.integers(0, 2 * HELD_FRAMES), live=st.integers(0, 100))
def test_what_was_held_goes_first_and_in_order(held: int, live: int) -> None:
    uplink, sent = Uplink(), Sent()
    given_frames = frames(held + live)
    for frame in given_frames[:held]:
        uplink.frame(frame)
    assert uplink.held_ms == min(held, HELD_FRAMES) * FRAME_MS
    uplink.open(sent, 0)
    for frame in given_frames[held:]:
        uplink.frame(frame)
    lost = max(held - HELD_FRAMES, 0)
    assert sent == [encode_append(frame) for frame in given_frames[lost:]]
    assert (uplink.frames, uplink.held_ms) == (held + live, 0)
    assert uplink.held_sent_ms == (held - lost) * FRAME_MS
    assert uplink.sent_ms == (held - lost + live) * FRAME_MS
    assert uplink.lost_ms == lost * FRAME_MS


def test_c046_the_hold_is_5_s_and_the_oldest_is_dropped_and_counted() -> None:
    assert HOLD_MS == 5_000
    uplink, sent = Uplink(), Sent()
    for frame in frames(HELD_FRAMES + 3):
        uplink.frame(frame)
    uplink.open(sent, 0)
    assert sent[0] == encode_append(frames(1, first=3)[0])
    assert uplink.lost_ms == 60


@pytest.mark.parametrize("kept_ms", [QUIET_KEPT_MS, KEPT_MS])
def test_a_frame_that_was_sent_is_kept_for_as_long_as_it_may_be_wanted(kept_ms: Ms) -> None:
    """Neither one that was held nor one that went straight through: an hour has 180,000."""
    uplink, sent = Uplink(), Sent()
    uplink.kept_ms = KEPT_MS  # a turn is open, and later it may not be
    given_frames = frames(20)
    before = [sys.getrefcount(frame) for frame in given_frames]
    for frame in given_frames[:10]:
        uplink.frame(frame)
    uplink.open(sent, 0)
    for frame in given_frames[10:]:
        uplink.frame(frame)
    later = frames(kept_ms // FRAME_MS, 20)
    for frame in later[:-1]:
        uplink.frame(frame)
    assert sys.getrefcount(given_frames[-1]) == before[-1] + 1
    uplink.kept_ms = kept_ms
    uplink.frame(later[-1])
    del frame
    assert [sys.getrefcount(frame) for frame in given_frames] == before


@pytest.mark.parametrize(("resend_ms", "resent"), [(0, 0), (1_000, 50), (60_000, 100)])
def test_a_session_that_follows_another_one_hears_the_end_of_what_that_heard_and_all_that_came_since(
    resend_ms: int, resent: int
) -> None:
    """In order, and without a gap; what is heard again takes no room of what is held."""
    uplink, first, second = Uplink(200), Sent(), Sent()
    before, between, after = frames(100), frames(10, first=100), frames(5, first=110)
    uplink.open(first, 0)
    for frame in before:
        uplink.frame(frame)
    uplink.hold(resend_ms)
    for frame in between:
        uplink.frame(frame)
    uplink.hold(1_000)  # a second try: what is held is held already
    uplink.open(second, 2_200)
    for frame in after:
        uplink.frame(frame)
    assert first == [encode_append(frame) for frame in before]
    assert second == [encode_append(frame) for frame in [*before, *between, *after][100 - resent :]]
    assert (uplink.lost_ms, uplink.opened_at_ms) == (0, 0)


def test_what_does_not_fit_while_a_session_is_waited_for_is_lost_and_counted() -> None:
    uplink, sent = Uplink(200), Sent()
    uplink.open(Sent(), 0)
    uplink.hold(0)
    for frame in frames(13):
        uplink.frame(frame)
    uplink.open(sent, 0)
    assert sent == [encode_append(frame) for frame in frames(10, first=3)]
    assert (uplink.lost_ms, uplink.lost_before_ms) == (60, 0)


def test_an_uplink_that_is_closed_sends_nothing() -> None:
    uplink = Uplink()
    uplink.frame(b"\x00")
    assert (uplink.sent_ms, uplink.held_sent_ms, uplink.held_ms) == (0, 0, 20)


@given(held=st.integers(0, 20), live=st.integers(0, 5), late=st.integers(1, 5))
def test_after_the_end_nothing_is_sent_or_held(held: int, live: int, late: int) -> None:
    uplink, sent = Uplink(), Sent()
    given_frames = frames(held + live + late)
    for frame in given_frames[:held]:
        uplink.frame(frame)
    if live:
        uplink.open(sent, 0)
    for frame in given_frames[held : held + live]:
        uplink.frame(frame)
    uplink.shut()
    for frame in given_frames[held + live :]:
        uplink.frame(frame)
    assert sent == [encode_append(frame) for frame in given_frames[: held + live if live else 0]]
    assert (uplink.held_ms, uplink.frames) == (0, held + live + late)


@pytest.mark.parametrize(("connect_ms", "lost_frames"), [(1_500, 0), (1_900, 0), (2_600, 0), (4_900, 0), (6_500, 75)])
def test_c046_what_a_slow_connection_costs(connect_ms: int, lost_frames: int) -> None:
    uplink, sent = Uplink(5_000), Sent()
    for frame in frames(connect_ms // FRAME_MS):
        uplink.frame(frame)
    uplink.open(sent, connect_ms)
    assert uplink.lost_ms == lost_frames * FRAME_MS
    assert sent[0] == encode_append(frames(1, first=lost_frames)[0])


def test_a_hold_is_at_least_nothing() -> None:
    with pytest.raises(UsageError, match="hold_ms is -1"):
        Uplink(-1)
    uplink, sent = Uplink(0), Sent()
    uplink.frame(b"\x00")
    uplink.open(sent, 0)
    assert (sent, uplink.lost_ms) == ([], FRAME_MS)
