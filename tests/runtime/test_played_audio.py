"""What a line tells of its playing puts every byte where it was heard, and what nobody heard nowhere."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.ids import ItemId, MarkId, Ms
from callwright.runtime.played import MARK_SLACK_MS, PULL_SLACK_MS, PlayedAudio

A, B = ItemId("a"), ItemId("b")


def audio(ms: Ms, first: int = 1) -> bytes:
    """One byte a millisecond, counted up."""
    return bytes((first + n) % 256 for n in range(ms))


def placed(played: PlayedAudio, until_ms: Ms = 10_000) -> list[tuple[int, bytes]]:
    """Where what runs on without a break begins, and what it is."""
    runs: list[tuple[int, bytes]] = []
    for start, piece in played.take(until_ms):
        if runs and runs[-1][0] + len(runs[-1][1]) == start:
            runs[-1] = (runs[-1][0], runs[-1][1] + bytes(piece))
        else:
            runs.append((start, bytes(piece)))
    return runs


def test_what_a_line_pulls_plays_from_then_on() -> None:
    played = PlayedAudio(1)
    played.hand_over(A, 0, audio(50), 0)
    for at_ms, taken_ms in ((100, 20), (120, 40), (140, 50)):
        played.pulled(A, 0, taken_ms, at_ms)
    played.hand_over(B, 0, audio(20), 200)
    played.pulled(B, 0, 20, 200)
    assert placed(played) == [(100, audio(50)), (200, audio(20))]


def test_uneven_reports_of_a_pulled_line_break_no_word() -> None:
    played = PlayedAudio(1)
    played.hand_over(A, 0, audio(80), 0)
    for at_ms, taken_ms in ((100, 20), (120 + PULL_SLACK_MS - 1, 40), (140, 60), (155, 80)):
        played.pulled(A, 0, taken_ms, at_ms)
    assert placed(played) == [(100, audio(80))]


@pytest.mark.parametrize(("clear_ms", "heard_ms"), [(600, 20), (640, 60), (799, 219), (2_000, 220)])
def test_what_was_cleared_is_heard_up_to_the_clear_but_never_beyond_the_next_mark(clear_ms: Ms, heard_ms: Ms) -> None:
    played = PlayedAudio(1)
    for name, ms in (("m1", 20), ("m2", 200), ("m3", 200)):
        played.hand_over(A, 0, audio(ms), 0)
        played.mark(MarkId(name))
    played.returned(MarkId("m1"), 600)
    played.cleared(clear_ms)
    for name in ("m2", "m3"):
        played.returned(MarkId(name), clear_ms + 1)
    assert placed(played) == [(580, (audio(20) + audio(200))[:heard_ms])]


def test_a_late_mark_breaks_no_word() -> None:
    played = PlayedAudio(1)
    for name, ms in (("m1", 20), ("m2", 200), ("m3", 200)):
        played.hand_over(A, 0, audio(ms), 0)
        played.mark(MarkId(name))
    for name, at_ms in (("m1", 120), ("m2", 320 + MARK_SLACK_MS - 1), ("m3", 520)):
        played.returned(MarkId(name), at_ms)
    assert placed(played) == [(100, audio(20) + audio(200) * 2)]


def test_a_run_whose_marks_are_lost_goes_on_without_them() -> None:
    played = PlayedAudio(1)
    played.hand_over(A, 0, audio(100), 0)
    played.mark(MarkId("m1"))
    played.hand_over(A, 0, audio(100, 101), 50)
    played.mark(MarkId("lost"))
    played.returned(MarkId("m1"), 100)
    assert placed(played) == [(0, audio(200))]


def test_nothing_is_heard_of_a_line_that_returns_no_mark() -> None:
    played = PlayedAudio(1)
    played.hand_over(A, 0, audio(100), 0)
    played.mark(MarkId("m1"))
    assert placed(played) == []


class Carrier:
    """A line that plays a byte a millisecond and returns each mark at once; its own book is what must come out."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.queue: list[int | MarkId] = []
        self.ear: dict[int, int] = {}
        self.played = PlayedAudio(1)
        self.marks = itertools.count()
        self.item_id = ItemId("none")

    def run(self, ms: Ms) -> None:
        for _ in range(ms):
            self.return_marks()
            if self.queue:
                byte = self.queue.pop(0)
                assert isinstance(byte, int)
                self.ear[self.now_ms] = byte
            self.now_ms += 1
            self.return_marks()

    def return_marks(self) -> None:
        while self.queue and isinstance(self.queue[0], str):
            self.played.returned(MarkId(str(self.queue.pop(0))), self.now_ms)

    def say(self, item_id: ItemId, data: bytes) -> None:
        """Hand over audio with marks as the core asks for them: after the first 20 ms of a run, and at the end."""
        is_next = item_id != self.item_id or not self.queue
        self.item_id = item_id
        for part in (data[:20], data[20:]) if is_next else (data,):
            if part:
                self.played.hand_over(item_id, 0, part, self.now_ms)
                self.queue += part
                self.mark()

    def mark(self) -> None:
        mark_id = MarkId(f"m{next(self.marks)}")
        self.played.mark(mark_id)
        self.queue.append(mark_id)

    def clear(self) -> None:
        self.played.cleared(self.now_ms)
        self.queue.clear()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["say", "more"]), st.integers(1, 120)),
        st.tuples(st.just("run"), st.integers(1, 200)),
        st.tuples(st.just("take"), st.integers(20, 200)),
        st.just(("clear", 0)),
    ),
    max_size=15,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_every_byte_is_where_the_line_played_it(steps: list[tuple[str, Ms]]) -> None:
    """What is cleared before the first mark of its run may be missing: the client has not heard of it."""
    line, out, items, number, clears = Carrier(), [], 0, 0, 0
    for step, ms in steps:
        if step in ("say", "more"):
            items += step == "say" or not items
            line.say(ItemId(f"i{items}"), audio(ms, number))
            number += ms
        elif step == "run":
            line.run(ms)
        elif step == "take":
            out += line.played.take(max(0, line.now_ms - ms))
        else:
            line.clear()
            clears += 1
    line.run(len(line.queue))
    out += line.played.take(line.now_ms)
    heard = {start + n: byte for start, piece in out for n, byte in enumerate(piece)}
    assert len(heard) == sum(len(piece) for _, piece in out)
    assert heard.items() <= line.ear.items()
    assert len(line.ear) - len(heard) <= 20 * clears
