"""What every line must do, as one check that any implementation can be put through.

    await check_line(lambda: MyLine(...))

Each rule gets a line of its own, opens it, plays a little noiseless audio and hangs up; together they take about four
seconds of the line's time. What is checked is what a call relies on: order, the meaning of played reports and marks,
that nothing which was cleared is heard of again as played, that keys leave the line as it was, and one end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from callwright.audio.formats import FRAME_MS
from callwright.core.ports import PlayedReports, PressesKeys
from callwright.ids import ItemId, MarkId

if TYPE_CHECKING:
    from callwright.core.ports import Line
    from callwright.ids import Ms

_EARLY_MS: Ms = 200  # what a device may have taken ahead of its loudspeaker
_POLL_MS: Ms = 10


async def check_line(make_line: Callable[[], Line], *, patience_ms: Ms = 3000) -> None:
    """Put lines from ``make_line``, which are not yet open, through every rule, on the running loop.

    ``patience_ms`` bounds the wait for a report: at least the line's whole lag and one second. Raises AssertionError
    that names the rule which was broken.
    """
    for rule in _RULES:
        line = make_line()
        witness = _Witness(line, patience_ms)
        await line.open(witness)
        await rule(line, witness)
        await line.hang_up()
        if witness.broken:
            raise AssertionError(witness.broken[0])


class _Witness:
    """A sink that plays into its line, keeps what the line reports, and notes every rule that a report breaks."""

    def __init__(self, line: Line, patience_ms: Ms) -> None:
        self.broken: list[str] = []
        self.frames = 0
        self.marks: dict[MarkId, float] = {}
        """When each mark came back (loop time, s)."""
        self.played: dict[tuple[ItemId, int], Ms] = {}
        self.ends: list[str] = []
        self._line = line
        self._patience_ms = patience_ms
        self._handed: dict[tuple[ItemId, int], Ms] = {}
        self._asked: list[MarkId] = []
        self._loop = asyncio.get_running_loop()

    # --- what a line calls

    def on_frame(self, frame: bytes) -> None:
        expected = self._line.input_format.frame_bytes
        self.hold(len(frame) == expected, f"a frame is {FRAME_MS} ms: expected {expected} bytes; got {len(frame)}")
        self._note()
        self.frames += 1

    def on_played(self, item_id: ItemId, generation: int, played_ms: Ms) -> None:
        key = (item_id, generation)
        before, handed = self.played.get(key, 0), self._handed.get(key, 0)
        self.hold(self._line.reports is PlayedReports.PULLED, "only a line with pulled reports reports what it played")
        self.hold(played_ms >= before, f"played reports never fall: {item_id} had {before} ms and now {played_ms} ms")
        self.hold(
            played_ms <= handed,
            f"no more is played than was handed over: {item_id} had {handed} ms, {played_ms} ms are reported",
        )
        self._note()
        self.played[key] = played_ms

    def on_mark(self, mark_id: MarkId) -> None:
        self.hold(mark_id in self._asked, f"only marks that were asked for come back: got {mark_id!r}")
        self.hold(mark_id not in self.marks, f"a mark comes back once: got {mark_id!r} again")
        self._note()
        self.marks[mark_id] = self._loop.time()

    def on_closed(self, by: str, reason: str) -> None:
        self._note()
        self.ends.append(by)

    # --- what a rule does

    def play(self, item: str, ms: Ms, generation: int = 0) -> None:
        """Play silence as a part of an item and, on a line with marks, ask for one of the item's name behind it."""
        key = (ItemId(item), generation)
        self._handed[key] = self._handed.get(key, 0) + ms
        self._line.play(*key, self._line.output_format.silence(ms))
        self.mark(item)

    def mark(self, name: str) -> None:
        if self._line.reports is PlayedReports.MARKS:
            self._asked.append(MarkId(name))
            self._line.mark(MarkId(name))

    def is_played(self, item: str, generation: int = 0) -> bool:
        """Whether the line reported all of an item as played: by its mark, or by what it pulled."""
        key = (ItemId(item), generation)
        if self._line.reports is PlayedReports.MARKS:
            return MarkId(item) in self.marks
        return self.played.get(key, 0) == self._handed[key]

    async def expect(self, condition: Callable[[], bool], rule: str) -> None:
        """Wait for a condition; it is ``rule`` that is broken when it does not come."""
        for _ in range(0, self._patience_ms, _POLL_MS):
            if condition():
                return
            await pause(_POLL_MS)
        self.hold(condition(), f"{rule}: not seen within {self._patience_ms} ms")

    def hold(self, condition: bool, rule: str) -> None:
        """Note the rule as broken unless the condition holds."""
        if not condition:
            self.broken.append(rule)

    def _note(self) -> None:
        self.hold(not self.ends, "nothing is reported after the end")


async def pause(ms: Ms) -> None:
    """Let the line run for so long."""
    await asyncio.sleep(ms / 1000)


async def _time_to_play(witness: _Witness, item: str, ms: Ms, generation: int = 0) -> Ms:
    """Play an item, wait until it is reported as played, and tell how long that took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    witness.play(item, ms, generation)
    await witness.expect(lambda: witness.is_played(item, generation), "all that is handed over is reported as played")
    return round((loop.time() - began) * 1000)


async def _frames_come_at_pace(line: Line, witness: _Witness) -> None:
    await witness.expect(lambda: witness.frames > 0, "the caller's frames begin when the line is open")
    begun = witness.frames
    await pause(400)
    per_second = (witness.frames - begun) * 2.5
    witness.hold(40 <= per_second <= 60, f"a frame of the caller comes every {FRAME_MS} ms: got {per_second} a second")


async def _audio_plays_in_order(line: Line, witness: _Witness) -> None:
    witness.play("first", 200)
    took_ms = await _time_to_play(witness, "second", 100)
    witness.hold(witness.is_played("first"), "audio plays, and marks come back, in the order of handing over")
    witness.hold(took_ms >= 300 - _EARLY_MS, f"audio takes its time: 300 ms were reported as played after {took_ms} ms")
    witness.hold(list(witness.marks) in ([], ["first", "second"]), "marks come back in their order")


async def _an_end_shorter_than_a_frame_is_played(line: Line, witness: _Witness) -> None:
    witness.play("short", FRAME_MS + FRAME_MS // 4)
    await witness.expect(lambda: witness.is_played("short"), "the end of an item plays even if it fills no frame")


async def _a_mark_on_an_idle_line_comes_back(line: Line, witness: _Witness) -> None:
    witness.mark("idle")
    if line.reports is PlayedReports.MARKS:
        await witness.expect(lambda: MarkId("idle") in witness.marks, "a mark behind nothing comes back at once")


async def _cleared_audio_is_gone(line: Line, witness: _Witness) -> None:
    lag_ms = await _time_to_play(witness, "probe", 20)
    witness.play("old", 2000)
    await pause(300)
    line.clear()
    old = (ItemId("old"), 0)
    played_ms = witness.played.get(old, 0)
    took_ms = await _time_to_play(witness, "new", 100, generation=1)
    witness.hold(witness.played.get(old, 0) <= played_ms + _EARLY_MS, "nothing that was cleared is reported as played")
    witness.hold(took_ms <= lag_ms + 1000, f"audio behind a clear does not wait for what was cleared: {took_ms} ms")
    returned = witness.marks.get(MarkId("old"))
    await pause(2000)
    witness.hold(
        witness.marks.get(MarkId("old")) == returned,
        "a mark whose audio was cleared comes back at once or never, not when it would have been reached",
    )


async def _a_clear_of_nothing_is_harmless(line: Line, witness: _Witness) -> None:
    line.clear()
    witness.play("after", 60)
    await witness.expect(lambda: witness.is_played("after"), "a clear of nothing drops nothing that comes later")


async def _keys_leave_the_line_as_it_was(line: Line, witness: _Witness) -> None:
    if not isinstance(line, PressesKeys):
        return
    await _time_to_play(witness, "before", 60)
    pressing = asyncio.ensure_future(line.press_keys("12"))
    await witness.expect(pressing.done, "a line that has its own way to press keys tells when they are out")
    if pressing.cancel():
        return
    pressing.result()
    begun = witness.frames
    await _time_to_play(witness, "after", 60)
    await witness.expect(lambda: witness.frames > begun, "the caller's frames go on behind keys")


async def _the_end_comes_once(line: Line, witness: _Witness) -> None:
    witness.play("cut", 1000)
    await pause(100)
    await line.hang_up()
    await line.hang_up()
    line.play(ItemId("late"), 0, line.output_format.silence(FRAME_MS))
    line.clear()
    await pause(100)
    witness.hold(witness.ends == ["agent"], f"a line that we hang up ends once, by the agent: got {witness.ends}")


_Rule = Callable[["Line", _Witness], Awaitable[None]]
_RULES: tuple[_Rule, ...] = (
    _frames_come_at_pace,
    _audio_plays_in_order,
    _an_end_shorter_than_a_frame_is_played,
    _a_mark_on_an_idle_line_comes_back,
    _cleared_audio_is_gone,
    _a_clear_of_nothing_is_harmless,
    _keys_leave_the_line_as_it_was,
    _the_end_comes_once,
)
