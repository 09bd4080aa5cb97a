"""Keys of the telephone for the tools of one call: asked for here, pressed when the core says so, answered when out.

A line that has a way of its own to press keys is asked to (a carrier's call control, see ``core.ports.PressesKeys``).
Every other one is handed tones behind what it plays, as an item that is nobody's reply: its reports are taken here and
never reach the core's playout.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from callwright.audio.dtmf import checked_keys, tones
from callwright.core import events as on
from callwright.core.commands import AnswerKeys, KeysFate, PressKeys
from callwright.core.playout import ROUNDING_MS
from callwright.core.ports import Line, PlayedReports, PressesKeys
from callwright.declare.tools import Facts
from callwright.errors import Refuse, UsageError
from callwright.ids import ItemId, MarkId, Ms, ToolCallId
from callwright.runtime.downlink import Downlink
from callwright.runtime.problems import Whole

ITEM: Final = "keys "
"""Keys that are played as tones are an item, and have a mark, whose names begin with this: no id of a server's does."""

_log = logging.getLogger(__name__)

_NOT_PRESSED: Final[Mapping[KeysFate, str]] = {
    KeysFate.FAILED: "the line could not press the keys; none of them may have been heard",
    KeysFate.ENDED: "the line has ended; no key was pressed",
}


class Keypad:
    """The keypad of one call."""

    def __init__(
        self, line: Line, down: Downlink, *, handle: Callable[[on.Event], None], note: Callable[[str], None]
    ) -> None:
        """``handle`` tells the core, ``note`` is told why a line could not press keys."""
        self._line = line
        self._own_way = line if isinstance(line, PressesKeys) else None
        self._down = down
        self._handle = handle
        self._note = note
        self._asked: deque[asyncio.Future[KeysFate]] = deque()
        """Who waits for his keys, in order."""
        self._is_over = False
        self._count = 0
        self._tones: tuple[str, Ms] | None = None
        """The tones that the line plays: name and length; None while it plays none."""
        self._pressing: asyncio.Task[None] | None = None
        """The line's own way of pressing, while it is under way."""
        self.commands: Mapping[type, Callable[[Any], None]] = {PressKeys: self._begin, AnswerKeys: self._answer}
        """What is carried out here."""

    async def press(self, keys: str, tool_call_id: ToolCallId) -> Facts:
        """Press keys, when the agent is silent; returns when they are out. Raises Refuse, worded for the model."""
        try:
            checked = checked_keys(keys)
        except UsageError as problem:
            raise Refuse(str(problem)) from None
        if self._is_over:
            raise Refuse(_NOT_PRESSED[KeysFate.ENDED])
        answer: asyncio.Future[KeysFate] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        self._handle(on.KeysRequested(tool_call_id, checked))
        fate = await answer
        if fate in _NOT_PRESSED:
            raise Refuse(_NOT_PRESSED[fate])
        return {"pressed": checked} if fate is KeysFate.PRESSED else {"pressed": checked, "confirmed": False}

    def _begin(self, command: PressKeys) -> None:
        """Press keys now."""
        if self._own_way is not None:
            self._pressing = asyncio.get_running_loop().create_task(self._press(self._own_way, command.keys))
            return
        self._count += 1
        name, output = f"{ITEM}{self._count}", self._line.output_format
        samples = tones(command.keys, output.rate_hz)
        self._tones = name, len(samples) * 1000 // output.rate_hz
        self._down.press(ItemId(name), samples)
        if self._line.reports is PlayedReports.MARKS:
            self._line.mark(MarkId(name))

    def played(self, item_id: ItemId, played_ms: Ms) -> bool:
        """Take a report of a pulled line; false if it is not about keys."""
        if not item_id.startswith(ITEM):
            return False
        if self._tones and item_id == self._tones[0] and played_ms >= self._tones[1] - ROUNDING_MS:
            self._out()
        return True

    def returned(self, mark_id: MarkId) -> bool:
        """Take a mark that came back; false if it is not about keys."""
        if not mark_id.startswith(ITEM):
            return False
        if self._tones and mark_id == self._tones[0]:
            self._out()
        return True

    def _answer(self, command: AnswerKeys) -> None:
        """Tell whoever asked first what became of his keys."""
        self._tones = None
        if self._pressing and command.fate is KeysFate.UNCONFIRMED:
            self._pressing.cancel()
        waiting = self._asked.popleft()
        if not waiting.done():
            waiting.set_result(command.fate)

    def shut(self) -> None:
        """The line has ended: nothing is pressed any more."""
        self._is_over = True

    async def close(self) -> None:
        """End what is under way; idempotent."""
        self.shut()
        if self._pressing:
            self._pressing.cancel()
            await asyncio.gather(self._pressing, return_exceptions=True)

    def _out(self) -> None:
        self._tones = None
        self._handle(on.KeysPressed())

    async def _press(self, own_way: PressesKeys, keys: str) -> None:
        try:
            await own_way.press_keys(keys)
        except Exception as problem:  # a carrier's client may raise anything; the call goes on, and the model is told
            self._note(f"the line could not press keys ({type(problem).__name__})")
            _log.debug("the line could not press keys\n%s", Whole(problem))
            self._handle(on.KeysPressed(has_failed=True))
        else:
            self._handle(on.KeysPressed())
