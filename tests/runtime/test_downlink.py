"""Reply audio reaches the line as one conversion per item: no byte, no sample and no tail is lost on the way."""

from __future__ import annotations

import gc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.audio.formats import PCM, PCM16_16K, PCM16_24K, PCMA_8K, PCMU_8K, AudioFormat, Encoding
from callwright.audio.g711 import pcma_encode, pcmu_encode
from callwright.audio.resample import Resampler, resample
from callwright.core.ports import LineSink, PlayedReports
from callwright.ids import ItemId, MarkId
from callwright.runtime.downlink import Downlink

A, B = ItemId("a"), ItemId("b")
FORMATS = (PCMU_8K, PCMA_8K, PCM16_16K, PCM16_24K)


class Handed:
    """A line that keeps what it is handed, by item and generation."""

    reports = PlayedReports.MARKS
    latency_ms = 0
    reaches_person = False

    def __init__(self, output_format: AudioFormat) -> None:
        self.input_format = self.output_format = output_format
        self.log: list[tuple[str, int, bytes]] = []

    def of(self, item_id: ItemId) -> bytes:
        return b"".join(audio for item, _, audio in self.log if item == item_id)

    async def open(self, sink: LineSink) -> None:
        raise NotImplementedError

    def play(self, item_id: ItemId, generation: int, audio: bytes) -> None:
        self.log.append((item_id, generation, audio))

    def mark(self, mark_id: MarkId) -> None:
        raise NotImplementedError

    def clear(self) -> None:
        self.log.append(("clear", 0, b""))

    async def hang_up(self) -> None:
        raise NotImplementedError


def sweep(samples: int = 24_000, seed: int = 0) -> PCM:
    """A rising tone, int16 mono 24 kHz."""
    at = np.arange(samples) / 24_000 + seed
    return (12_000 * np.sin(2 * np.pi * (200 + 600 * at) * at)).astype(np.int16)


def converted(source: PCM, to: AudioFormat) -> bytes:
    """The whole recording at once, as a file would be converted."""
    samples = resample(source, 24_000, to.rate_hz)
    match to.encoding:
        case Encoding.PCMU:
            return pcmu_encode(samples)
        case Encoding.PCMA:
            return pcma_encode(samples)
    return samples.tobytes()


def feed(down: Downlink, item_id: ItemId, audio: bytes, generation: int = 0) -> int:
    """One delta, as the core passes it on: taken, and then played in full."""
    samples = down.take(item_id, audio)
    if samples:
        down.play(item_id, generation, samples)
    return samples


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """The data in pieces of these sizes, again and again."""
    edges = [0]
    while edges[-1] < len(data):
        edges.append(edges[-1] + sizes[len(edges) % len(sizes)])
    return [data[start:end] for start, end in pairwise(edges)]


@pytest.mark.parametrize("line_format", FORMATS, ids=lambda each: f"{each.encoding.value} {each.rate_hz}")
def test_c118_an_item_in_pieces_is_the_item_converted_at_once(line_format: AudioFormat) -> None:
    """200 ms deltas, whatever the pauses between them: the state of the conversion is the item's."""
    line, source = Handed(line_format), sweep()
    down = Downlink(line, PCM16_24K)
    for piece in cut(source.tobytes(), [9_600]):
        feed(down, A, piece)
    down.finish(A, 0)
    assert line.of(A) == converted(source, line_format)


@pytest.mark.parametrize("line_format", FORMATS, ids=lambda each: f"{each.encoding.value} {each.rate_hz}")
def test_c122_odd_bytes_shift_nothing(line_format: AudioFormat) -> None:
    """Deltas cut anywhere; an item that ends on half a sample leaves the next one alone."""
    line, source = Handed(line_format), sweep()
    down = Downlink(line, PCM16_24K)
    counted = sum(feed(down, A, piece) for piece in cut(source.tobytes() + b"\x7f", [1, 3, 4_799, 4_801]))
    assert down.finish(A, 0) == 1
    for piece in cut(source.tobytes(), [4_801, 1, 3]):
        feed(down, B, piece)
    assert down.finish(B, 0) == 0
    assert counted == len(source)
    assert line.of(A) == line.of(B) == converted(source, line_format)


@given(sizes=st.lists(st.integers(0, 3_000), min_size=1, max_size=8).filter(any))
def test_c122_however_it_is_cut(sizes: list[int]) -> None:
    line, source = Handed(PCMU_8K), sweep(4_000)
    down = Downlink(line, PCM16_24K)
    for piece in cut(source.tobytes(), sizes):
        feed(down, A, piece)
    down.finish(A, 0)
    assert line.of(A) == converted(source, PCMU_8K)


def test_c021_lengths_are_the_models_samples_whatever_the_line_takes() -> None:
    for line_format in FORMATS:
        assert Downlink(Handed(line_format), PCM16_24K).take(A, bytes(9_600)) == 4_800


def test_c118_an_item_that_begins_before_the_last_one_was_finished_takes_none_of_it() -> None:
    """The first audio of B tells the core that A is through: A's tail goes to the line, before any of B."""
    line, one, other = Handed(PCMU_8K), sweep(4_801), sweep(4_801, seed=1)
    down = Downlink(line, PCM16_24K)
    feed(down, A, one.tobytes())
    samples = down.take(B, other.tobytes())
    down.finish(A, 0)
    down.play(B, 0, samples)
    down.finish(B, 0)
    assert line.of(A) == converted(one, PCMU_8K)
    assert line.of(B) == converted(other, PCMU_8K)
    assert [item for item, _, _ in line.log] == [A, A, B, B]


def test_c014_late_audio_of_a_cut_item_leaves_the_present_one_alone() -> None:
    line, source = Handed(PCMU_8K), sweep()
    down = Downlink(line, PCM16_24K)
    feed(down, A, sweep(seed=1).tobytes())
    down.clear()
    first, second = source.tobytes()[:9_601], source.tobytes()[9_601:]
    feed(down, B, first, 1)
    down.take(A, b"\x01" * 4_801)  # the core drops it
    feed(down, B, second, 1)
    down.finish(B, 1)
    assert line.of(B) == converted(source, PCMU_8K)


def test_a_piece_may_be_played_in_two_parts() -> None:
    """The core asks for a mark behind the first 20 ms of an item."""
    line, source = Handed(PCMU_8K), sweep(4_800)
    down = Downlink(line, PCM16_24K)
    samples = down.take(A, source.tobytes())
    down.play(A, 3, 480)
    down.play(A, 3, samples - 480)
    down.finish(A, 3)
    assert line.of(A) == converted(source, PCMU_8K)
    assert {generation for _, generation, _ in line.log} == {3}


def test_late_audio_behind_a_finished_item_is_a_conversion_of_its_own() -> None:
    line, source = Handed(PCMU_8K), sweep(4_800)
    down = Downlink(line, PCM16_24K)
    for _ in range(2):
        feed(down, A, source.tobytes())
        down.finish(A, 0)
    assert line.of(A) == 2 * converted(source, PCMU_8K)


def test_a_finished_item_is_forgotten() -> None:
    """A long call has hundreds of items, and a filter for each would stay."""
    down = Downlink(Handed(PCMU_8K), PCM16_24K)
    before = resamplers()
    feed(down, A, bytes(4_801))
    assert resamplers() == before + 1
    down.finish(A, 0)
    for number in range(100):
        item_id = ItemId(f"item {number}")
        feed(down, item_id, bytes(4_801))
        down.finish(item_id, 0)
    assert resamplers() == before


def resamplers() -> int:
    return sum(type(each) is Resampler for each in gc.get_objects())


def test_nothing_is_handed_on_where_there_is_nothing() -> None:
    line = Handed(PCMU_8K)
    down = Downlink(line, PCM16_24K)
    assert feed(down, A, b"") == 0
    assert feed(down, A, b"\x01") == 0
    down.finish(A, 0)
    assert line.log == []


def test_a_clear_empties_the_line_and_what_is_in_conversion() -> None:
    line, source = Handed(PCMU_8K), sweep(4_800)
    down = Downlink(line, PCM16_24K)
    feed(down, A, source.tobytes()[:-1])
    down.clear()
    feed(down, A, source.tobytes(), 1)
    down.finish(A, 1)
    clear = [item for item, _, _ in line.log].index("clear")
    assert b"".join(audio for _, _, audio in line.log[clear:]) == converted(source, PCMU_8K)
