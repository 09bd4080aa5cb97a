"""The conformance suite passes both simulated lines, and fails a line for each rule that it breaks."""

import asyncio
from collections.abc import Callable

import pytest

from callwright.core.ports import LineSink
from callwright.ids import ItemId, MarkId
from callwright.sim.caller import ScriptedCaller
from callwright.sim.line import LineKind, LineSettings, SimulatedLine
from callwright.sim.vloop import run_virtual
from callwright.testing.lines import check_line

PHONE = LineSettings(LineKind.PHONE)
SPEAKER = LineSettings(LineKind.SPEAKER)


def silent(settings: LineSettings) -> ScriptedCaller:
    return ScriptedCaller((), {}, settings.stream_format.rate_hz)


@pytest.mark.parametrize(
    "settings",
    [
        PHONE,
        SPEAKER,
        LineSettings(LineKind.PHONE, hidden_lag_ms=1500),
        LineSettings(LineKind.SPEAKER, hidden_lag_ms=1500),
        LineSettings(LineKind.PHONE, fixed_lag_ms=300),
        LineSettings(LineKind.SPEAKER, fixed_lag_ms=300),
        LineSettings(LineKind.PHONE, clear_returns_marks=False),
    ],
)
def test_simulated_lines_keep_every_rule(settings: LineSettings) -> None:
    run_virtual(check_line(lambda: SimulatedLine(settings, silent(settings)), patience_ms=4000))


class LateFrames(SimulatedLine):
    async def open(self, sink: LineSink) -> None:
        await super().open(sink)
        sink.on_frame(b"short")


class Jumbled(SimulatedLine):
    """Plays what comes later first."""

    def mark(self, mark_id: MarkId) -> None:
        asyncio.get_running_loop().call_later(0.5 if mark_id == "first" else 0.2, self._return_mark, mark_id)


class Hasty(SimulatedLine):
    """Returns marks at once, as if nothing took time."""

    def mark(self, mark_id: MarkId) -> None:
        asyncio.get_running_loop().call_soon(self._return_mark, mark_id)


class Twice(SimulatedLine):
    def _return_mark(self, mark_id: MarkId) -> None:
        super()._return_mark(mark_id)
        super()._return_mark(mark_id)


class Deaf(SimulatedLine):
    """Never clears."""

    def clear(self) -> None:
        pass


class Forgetful(SimulatedLine):
    """Holds on to a mark after its audio was cleared, and returns it when it would have been reached."""

    def clear(self) -> None:
        marks = self._outbox.clear()
        for mark_id in marks:
            asyncio.get_running_loop().call_later(1.7, self._return_mark, mark_id)


class Boastful(SimulatedLine):
    """Counts what it was handed as played."""

    def play(self, item_id: ItemId, generation: int, audio: bytes) -> None:
        super().play(item_id, generation, audio)
        if self._sink:
            self._sink.on_played(item_id, generation, self.output_format.ms_of(len(audio)) + 1)


class Endless(SimulatedLine):
    """Tells its end each time that it is hung up."""

    async def hang_up(self) -> None:
        sink = self._sink or self._last
        self._sink, self._last = None, sink
        sink.on_closed("agent", "hung up")

    _last: LineSink


class Presses(SimulatedLine):
    """Its carrier presses keys, and begins the stream anew for it."""

    async def press_keys(self, keys: str) -> None:
        self._timer.cancel()
        await asyncio.sleep(0.5)
        self._timer = asyncio.get_running_loop().call_soon(self._tick)


class HangsOnKeys(SimulatedLine):
    async def press_keys(self, keys: str) -> None:
        await asyncio.sleep(3_600)


class DeadAfterKeys(SimulatedLine):
    async def press_keys(self, keys: str) -> None:
        self._timer.cancel()


def test_c066_a_line_with_its_own_way_to_press_keys_may_begin_its_stream_anew() -> None:
    run_virtual(check_line(lambda: Presses(PHONE, silent(PHONE))))


@pytest.mark.parametrize(
    ("line", "settings", "rule"),
    [
        (LateFrames, PHONE, "a frame is 20 ms: expected 160 bytes; got 5"),
        (Jumbled, PHONE, "in the order of handing over"),
        (Hasty, PHONE, "audio takes its time"),
        (Twice, PHONE, "a mark comes back once"),
        (Deaf, PHONE, "does not wait for what was cleared"),
        (Deaf, SPEAKER, "does not wait for what was cleared|nothing that was cleared"),
        (Forgetful, PHONE, "at once or never"),
        (Boastful, SPEAKER, "no more is played than was handed over"),
        (Boastful, PHONE, "only a line with pulled reports"),
        (HangsOnKeys, PHONE, "tells when they are out"),
        (DeadAfterKeys, PHONE, "all that is handed over is reported as played"),
        (Endless, PHONE, "ends once|nothing is reported after the end"),
    ],
)
def test_a_line_that_breaks_a_rule_is_told_which(
    line: Callable[[LineSettings, ScriptedCaller], SimulatedLine], settings: LineSettings, rule: str
) -> None:
    with pytest.raises(AssertionError, match=rule):
        run_virtual(check_line(lambda: line(settings, silent(settings))))


def test_a_line_that_loses_marks_fails_by_name_c001() -> None:
    lossy = LineSettings(LineKind.PHONE, lose_marks=(1, 2))
    with pytest.raises(AssertionError, match="all that is handed over is reported as played: not seen within 3000 ms"):
        run_virtual(check_line(lambda: SimulatedLine(lossy, silent(lossy))))
