"""Which reply a client's audio is part of is found by its samples, whatever the client does with them."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.audio.formats import PCM
from callwright.audio.g711 import pcmu_decode, pcmu_encode
from callwright.audio.resample import Resampler, resample
from callwright.ids import ItemId
from callwright.sim.program.streamed import NOBODY, StreamedReplies
from callwright.sim.record import EarSpan
from callwright.sim.speech import RATE_HZ, Speech

HZ = 24_000
FIRST, SECOND = ItemId("first"), ItemId("second")
Placed = tuple[ItemId, int, int, int]
"""An item, where in it something began and ended, and where that was heard; in ms."""


@cache
def said(line_id: str) -> PCM:
    speech = Speech.load(Path(str(resources.files("callwright.apps.hotel"))) / "speech")
    return resample(speech[line_id].pcm, RATE_HZ, HZ)


def silence(ms: int) -> PCM:
    return np.zeros(ms * HZ // 1000, np.int16)


def part(samples: PCM, from_ms: int, to_ms: int) -> PCM:
    return samples[from_ms * HZ // 1000 : to_ms * HZ // 1000]


def tone(ms: int) -> PCM:
    return (8000 * np.sin(np.arange(ms * HZ // 1000) * 2 * np.pi * 440 / HZ)).astype(np.int16)


def heard(replies: StreamedReplies, samples: PCM, pieces: list[int] | None = None) -> list[Placed]:
    """Hand samples to a line that plays them at once, in pieces of these sizes; what was heard of which reply."""
    handed: dict[ItemId, int] = {}
    ear: list[EarSpan] = []
    at = number = 0
    while at < len(samples):
        size = (pieces or [480])[number % len(pieces or [480])]
        for name, named in replies.handed(samples[at : at + size]):
            begin = handed.get(name, 0)
            handed[name] = begin + len(named)
            ear.append(EarSpan(name, begin * 1000 // HZ, handed[name] * 1000 // HZ, at * 1000 // HZ))
            at += len(named)
        number += 1
    return [(span.item_id, span.from_ms, span.to_ms, span.at_ms) for span in replies.spans(ear)]


def both() -> StreamedReplies:
    replies = StreamedReplies(HZ)
    replies.streamed(FIRST, said("check-in-bring"))
    replies.streamed(SECOND, said("parking"))
    return replies


def near(found: list[Placed], wanted: list[Placed], within_ms: int = 2) -> bool:
    """Whether two courses are the same, the beginnings and ends of their spans to within so much."""
    return [each[0] for each in found] == [each[0] for each in wanted] and all(
        abs(one - other) <= within_ms
        for each, expected in zip(found, wanted, strict=True)
        for one, other in zip(each[1:], expected[1:], strict=True)
    )


def telephoned(samples: PCM) -> PCM:
    """Half as loud, by way of a telephone's 8 kHz and μ-law, in pieces of 20 ms."""
    down, up = Resampler(HZ, 8_000), Resampler(8_000, HZ)
    frames = [(samples[at : at + 480] * 0.5).astype(np.int16) for at in range(0, len(samples), 480)]
    return np.concatenate([up.process(pcmu_decode(pcmu_encode(down.process(frame)))) for frame in frames])


@settings(max_examples=30)
@given(st.lists(st.integers(100, 5_000), min_size=1, max_size=4))
def test_however_it_is_cut_into_pieces_a_reply_is_found_to_the_frame(pieces: list[int]) -> None:
    line = np.concatenate((silence(200), part(said("check-in-bring"), 0, 500), silence(310), said("parking")[:12_000]))
    wanted = [(FIRST, 0, 500, 200), (SECOND, 0, 500, 1_010)]
    replies = both()
    assert near(heard(replies, line, pieces), wanted, within_ms=21)
    assert replies.strange_ms <= 20


@pytest.mark.parametrize("length_ms", [701, 707, 713])
def test_a_reply_right_behind_another_is_heard_from_its_first_sample(length_ms: int) -> None:
    """No frame begins with it."""
    whole = said("pool")
    begins = int(np.flatnonzero(np.abs(whole) > 300)[0])
    line = np.concatenate((part(said("check-in-bring"), 0, length_ms), whole[begins:]))
    replies = StreamedReplies(HZ)
    replies.streamed(FIRST, said("check-in-bring"))
    replies.streamed(SECOND, whole[begins:])
    found = [each for each in heard(replies, line) if each[0] == SECOND]
    (_, from_ms, _, at_ms), (_, _, to_ms, _) = found[0], found[-1]
    assert from_ms <= 5
    assert at_ms - from_ms == pytest.approx(length_ms, abs=10)
    assert to_ms == pytest.approx(len(whole[begins:]) * 1000 // HZ, abs=10)


def test_what_was_left_out_was_not_heard() -> None:
    """A client that dropped half a second goes on in the reply where it goes on."""
    whole = said("check-in-bring")
    line = np.concatenate((part(whole, 0, 1_000), part(whole, 1_500, 2_500)))
    assert near(heard(both(), line), [(FIRST, 0, 1_000, 0), (FIRST, 1_500, 2_500, 1_000)], within_ms=40)


def test_a_pause_of_the_clients_is_nobodys() -> None:
    whole = said("check-in-bring")
    line = np.concatenate((part(whole, 0, 500), silence(400), part(whole, 500, 2_000)))
    first, *_, last = found = heard(both(), line)
    assert near([first], [(FIRST, 0, 500, 0)])
    assert all(at_ms >= 900 for _, _, _, at_ms in found[1:])
    assert near([last], [(FIRST, last[3] - 400, 2_000, last[3])])
    assert last[3] < 960


def test_another_level_rate_and_encoding_hide_nothing() -> None:
    """The filters are 6 ms late in all."""
    line = np.concatenate((telephoned(part(said("check-in-bring"), 0, 2_000)), silence(300), said("parking")))
    (first, second) = heard(both(), line)
    assert near([second], [(SECOND, 0, len(said("parking")) * 1000 // HZ, 2_300)], within_ms=21)
    item_id, from_ms, to_ms, at_ms = first
    assert (item_id, to_ms) == (FIRST, pytest.approx(1_994, abs=8))
    assert at_ms - from_ms == pytest.approx(6, abs=1)
    assert from_ms < 100


def test_sounds_of_the_clients_own_are_no_reply() -> None:
    line = np.concatenate((tone(500), part(said("parking"), 0, 1_000), tone(500)))
    replies = both()
    assert near(heard(replies, line), [(SECOND, 0, 1_000, 500)], within_ms=40)
    assert replies.strange_ms == pytest.approx(1_000, abs=60)
    assert heard(both(), tone(2_000)) == []


def test_of_two_replies_that_sound_the_same_it_is_the_one_that_comes_next() -> None:
    replies = StreamedReplies(HZ)
    replies.streamed(FIRST, said("parking"))
    replies.streamed(SECOND, said("parking"))
    line = np.concatenate((part(said("parking"), 0, 1_500), silence(300), part(said("parking"), 0, 2_000)))
    assert near(heard(replies, line), [(FIRST, 0, 1_500, 0), (SECOND, 0, 2_000, 1_800)], within_ms=21)


def test_a_reply_that_is_still_being_streamed_is_named_as_it_comes() -> None:
    replies = StreamedReplies(HZ)
    names = []
    for at_ms in range(0, 2_000, 200):
        replies.streamed(FIRST, part(said("parking"), at_ms, at_ms + 200))
        names += [name for name, _ in replies.handed(part(said("parking"), at_ms, at_ms + 200))]
    assert set(names) == {FIRST}
    assert [name for name, _ in replies.handed(tone(1_000))][-1] == NOBODY
