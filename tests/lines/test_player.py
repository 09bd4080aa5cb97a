"""What waits to be played: nothing is lost on the way, what was taken is told, and how much waits is bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.audio.formats import FRAME_MS, PCM16_24K, PCMU_8K
from callwright.errors import AudioFormatError, LineFailed
from callwright.ids import ItemId
from callwright.lines.player import WAITING_MS_MAX, Player

A, B = ItemId("a"), ItemId("b")


class Told(list[tuple[str, int, int]]):
    def report(self, item_id: ItemId, generation: int, played_ms: int) -> None:
        self.append((item_id, generation, played_ms))


@given(st.lists(st.tuples(st.sampled_from([A, B]), st.binary(max_size=700)), max_size=12), st.integers(0, 30))
def test_what_was_put_is_taken_in_order_whole_and_filled_up_with_silence(
    pieces: list[tuple[ItemId, bytes]], extra: int
) -> None:
    told = Told()
    player = Player(PCMU_8K, told.report)
    for item_id, audio in pieces:
        player.put(item_id, 0, audio)
    whole = b"".join(audio for _, audio in pieces)
    assert player.waiting_ms == PCMU_8K.ms_of(len(whole))
    frames = [player.take() for _ in range(len(whole) // PCMU_8K.frame_bytes + 1 + extra)]
    assert all(len(frame) == PCMU_8K.frame_bytes for frame in frames)
    assert b"".join(frames) == whole.ljust(len(frames) * PCMU_8K.frame_bytes, b"\xff")
    assert player.waiting_ms == 0
    for item in (A, B):
        reports = [played_ms for item_id, _, played_ms in told if item_id == item]
        assert reports == sorted(reports)
        put = sum(len(audio) for item_id, audio in pieces if item_id == item)
        assert (reports or [0])[-1] == PCMU_8K.ms_of(put)


def test_a_frame_that_holds_the_end_of_one_item_and_the_beginning_of_the_next_reports_both() -> None:
    told = Told()
    player = Player(PCMU_8K, told.report)
    player.put(A, 0, bytes(8 * 30))
    player.put(B, 0, bytes(8 * 30))
    for _ in range(3):
        player.take()
    assert told == [(A, 0, 20), (A, 0, 30), (B, 0, 10), (B, 0, 30)]


def test_after_a_clear_nothing_waits_and_lengths_begin_anew() -> None:
    told = Told()
    player = Player(PCMU_8K, told.report)
    player.put(A, 0, bytes(8 * 100))
    player.take()
    player.clear()
    assert player.take() == PCMU_8K.silence(FRAME_MS)
    player.put(A, 1, bytes(8 * 40))
    player.take()
    assert told == [(A, 0, 20), (A, 1, 20)]


def test_a_line_that_stalls_fails_aloud_at_the_bound_and_drops_nothing() -> None:
    """What waits is bounded; the audio up to there is all still there."""
    player = Player(PCM16_24K, Told().report)
    second = bytes(PCM16_24K.bytes_for_ms(1_000))
    for _ in range(WAITING_MS_MAX // 1_000):
        player.put(A, 0, second)
    with pytest.raises(LineFailed, match="stalled: 300000 ms"):
        player.put(A, 0, bytes(2))
    assert player.waiting_ms == WAITING_MS_MAX
    player.take()
    player.put(A, 0, bytes(PCM16_24K.frame_bytes))


def test_a_part_of_a_sample_is_refused() -> None:
    with pytest.raises(AudioFormatError):
        Player(PCM16_24K, Told().report).put(A, 0, bytes(3))
