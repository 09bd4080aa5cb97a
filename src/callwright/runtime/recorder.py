"""A line whose call is recorded: it stands between the line and the call, and keeps what passes.

Left is the far end, as it was received; right is the agent, at the instants at which he was heard (``played``). Both
lie on the clock of the line, which its frames count:

```
far end    |frame|frame|frame| ...        one frame is 20 ms, however late it came; silence where none comes for 500 ms
agent               |~~~ heard ~~~|       placed as the line reports it, at most 2 s later
written    one second in a block .......| 2 s behind
```

What may be kept is the agent's ``recording`` policy, seen in the call's `Kept`: the file begins with the frame behind
which words begin to be kept, and is deleted where they are dropped. Where that never began, there is no file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Final

from callwright.audio.formats import FRAME_MS
from callwright.core.ports import PressesKeys
from callwright.errors import UsageError
from callwright.runtime.kept import Kept
from callwright.runtime.played import PlayedAudio
from callwright.runtime.tape import Block, StereoFile, Tape

if TYPE_CHECKING:
    from callwright.audio.formats import AudioFormat
    from callwright.core.ports import Line, LineSink, PlayedReports
    from callwright.ids import ItemId, MarkId, Ms

BLOCK_MS: Final[Ms] = 1_000
BEHIND_MS: Final[Ms] = 2_000
"""A mark that is later than that counts as lost."""
GAP_MS: Final[Ms] = 500
"""A far end that sends nothing for longer is silent; up to here its frames are late."""


class _State(Enum):
    WITHHELD = auto()
    """Nothing may be kept yet."""
    RUNNING = auto()
    COMPLETE = auto()
    """At its end, or at that of what could be written."""
    GONE = auto()
    """Dropped."""


class Recorder:
    """A `Line` as the call sees it, and its sink as the line does; see `recorder_of`. ``obey`` comes first."""

    def __init__(self, line: Line, path: Path) -> None:
        """Raises UsageError where there is a file already, or no directory for it."""
        if path.exists():
            raise UsageError(f"{path} exists: a recording replaces nothing; choose another file")
        if not path.parent.is_dir():
            raise UsageError(f"{path.parent} is no directory: make it, or record elsewhere")
        self._line = line
        self._path = path
        self._played = PlayedAudio(line.output_format.bytes_per_ms)
        self._state = _State.WITHHELD
        self._sink: LineSink
        self._kept = Kept(is_kept=False)
        self._note: Callable[[str], object] = str
        self._tape: Tape | None = None
        self._far: list[bytes] = []
        """Frames that are in no block yet."""
        self._far_ms: Ms = 0
        """Where they end: the line's clock."""
        self._frame_at_ms: Ms = 0
        """When the last frame came, on the loop's clock."""
        self._filled_ms: Ms = 0
        """Silence that was put behind it."""

    def obey(self, kept: Kept, note: Callable[[str], object]) -> None:
        """Record while ``kept`` keeps words; ``note`` is told what goes wrong."""
        self._kept, self._note = kept, note

    # The line, as the call sees it

    @property
    def input_format(self) -> AudioFormat:
        """The line's own."""
        return self._line.input_format

    @property
    def output_format(self) -> AudioFormat:
        """The line's own."""
        return self._line.output_format

    @property
    def reports(self) -> PlayedReports:
        """The line's own."""
        return self._line.reports

    @property
    def latency_ms(self) -> Ms:
        """The line's own."""
        return self._line.latency_ms

    @property
    def reaches_person(self) -> bool:
        """As the line tells; one that does not tell may reach a person."""
        return bool(getattr(self._line, "reaches_person", True))

    async def open(self, sink: LineSink) -> None:
        """Open the line. Raises as it does."""
        self._sink = sink
        self._frame_at_ms = _loop_ms()
        await self._line.open(self)

    def play(self, item_id: ItemId, generation: int, audio: bytes) -> None:
        """Hand audio to the line. Raises as it does."""
        self._played.hand_over(item_id, generation, audio, self._ear_ms())
        self._line.play(item_id, generation, audio)

    def mark(self, mark_id: MarkId) -> None:
        """Hand a mark to the line."""
        self._played.mark(mark_id)
        self._line.mark(mark_id)

    def clear(self) -> None:
        """Clear the line; what comes back of it after this is of nothing that was heard."""
        self._played.cleared(self._ear_ms())
        self._line.clear()

    async def hang_up(self) -> None:
        """End the line."""
        await self._line.hang_up()

    # The call, as the line sees it

    def on_frame(self, frame: bytes) -> None:
        """The far end's next 20 ms."""
        self._look()
        self._fill_gap()
        self._take(frame)
        self._frame_at_ms, self._filled_ms = _loop_ms(), 0
        self._sink.on_frame(frame)

    def on_played(self, item_id: ItemId, generation: int, played_ms: Ms) -> None:
        """The line took audio."""
        self._played.pulled(item_id, generation, played_ms, self._ear_ms())
        self._sink.on_played(item_id, generation, played_ms)

    def on_mark(self, mark_id: MarkId) -> None:
        """A mark came back."""
        self._played.returned(mark_id, self._ear_ms())
        self._sink.on_mark(mark_id)

    def on_closed(self, by: str, reason: str) -> None:
        """The line ended."""
        self._complete()
        self._sink.on_closed(by, reason)

    # The recording

    async def __aenter__(self) -> Recorder:
        return self

    async def __aexit__(self, *_: object) -> None:
        """The call is over: what was recorded is on the disk when this returns."""
        self._complete()
        self._look()
        if self._state is _State.WITHHELD:
            self._note("there is no recording: nothing of this call may be kept")
        if self._tape is not None:
            await self._tape.close()

    def _now_ms(self) -> Ms:
        """The line's clock."""
        self._fill_gap()
        return self._far_ms + min(_loop_ms() - self._frame_at_ms - self._filled_ms, FRAME_MS)

    def _ear_ms(self) -> Ms:
        return self._now_ms() + self._line.latency_ms

    def _fill_gap(self) -> None:
        """Put silence where no frame has come for too long, up to the one that may be on its way."""
        gap_ms = _loop_ms() - self._frame_at_ms
        while gap_ms > GAP_MS and gap_ms - self._filled_ms >= 2 * FRAME_MS:
            self._take(self._line.input_format.silence(FRAME_MS))
            self._filled_ms += FRAME_MS

    def _take(self, frame: bytes) -> None:
        self._far_ms += FRAME_MS
        if self._state is _State.RUNNING:
            self._far.append(frame)
            if len(self._far) * FRAME_MS == BEHIND_MS + BLOCK_MS:
                self._write(BLOCK_MS)
        else:
            self._played.take(self._far_ms - BEHIND_MS)

    def _look(self) -> None:
        """Do as the policy says now."""
        match self._state, self._kept.is_kept:
            case _State.WITHHELD, True:
                self._state = _State.RUNNING
                self._played.take(self._far_ms)
                file = StereoFile(self._path, self._line.input_format, self._line.output_format)
                self._tape = Tape(file, self._failed)
            case _State.RUNNING | _State.COMPLETE, False:
                self._state = _State.GONE
                self._far.clear()
                if self._tape is not None:
                    self._tape.drop()

    def _write(self, ms: Ms) -> None:
        """Hand the oldest ``ms`` of both sides to the tape."""
        start_ms = self._far_ms - len(self._far) * FRAME_MS
        count = ms // FRAME_MS
        far, self._far = self._far[:count], self._far[count:]
        start = start_ms * self._line.output_format.bytes_per_ms
        agent = [(at - start, audio) for at, audio in self._played.take(start_ms + ms)]
        if self._tape is not None:
            self._tape.add(Block(far, agent))

    def _complete(self) -> None:
        """The line has ended: nothing that waits is heard any more; what was heard is written to its last sample."""
        if self._state is not _State.RUNNING:
            return
        now_ms = self._now_ms()
        self._played.cleared(self._ear_ms())
        while self._far_ms < min(self._played.end_ms, now_ms):
            self._far_ms += FRAME_MS
            self._far.append(self._line.input_format.silence(FRAME_MS))
        while self._far:
            self._write(min(BLOCK_MS, len(self._far) * FRAME_MS))
        self._state = _State.COMPLETE

    def _failed(self, why: str) -> None:
        self._state = _State.COMPLETE
        self._far.clear()
        self._note(f"the recording ends before the call: {why}")


class _KeyRecorder(Recorder):
    """Records a line that presses keys its own way: they are not in what it is handed."""

    async def press_keys(self, keys: str) -> None:
        """As the line does."""
        assert isinstance(self._line, PressesKeys)
        await self._line.press_keys(keys)


def recorder_of(line: Line, path: Path) -> Recorder:
    """What records this line, and can do what it can. Raises as `Recorder`."""
    return (_KeyRecorder if isinstance(line, PressesKeys) else Recorder)(line, path)


def _loop_ms() -> Ms:
    return round(asyncio.get_running_loop().time() * 1000)
