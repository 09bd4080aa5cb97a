"""A session for free speech, with what runs its errands: one task each, on the running event loop.

What comes back goes into the session with the time at which it came. A reply that is dropped is closed where it stands;
at the end of the session all are. A recogniser that fails has heard nothing, and a thinker that fails says so to the
client; either is logged, without a word of what was said above ``DEBUG``.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING

from callwright.runtime.problems import Whole, kind_and_place
from callwright.sim.models import CallerSaid
from callwright.sim.server.errands import DropReply, Failed, HearWords, Made, MakeReply
from callwright.sim.server.memory import Restless

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from callwright.ids import Ms
    from callwright.sim.open.senses import Recogniser, Thinker
    from callwright.sim.server import ServerSession
    from callwright.sim.server.errands import Part

_log = logging.getLogger(__name__)


class OpenPeer(Restless):
    """A `Peer` around a session that has errands."""

    def __init__(self, session: ServerSession, recogniser: Recogniser, thinker: Thinker) -> None:
        self._session = session
        self._recogniser = recogniser
        self._thinker = thinker
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """What is under way, by the item or the response that it is for."""
        self._known: tuple[Ms, float] = (0, 0.0)  # the session's clock, and the loop's at that moment

    @property
    def closing(self) -> tuple[int, str] | None:
        """Close code and reason, once the session is over."""
        return self._session.closing

    def connect(self, now_ms: Ms) -> None:
        """The connection stands."""
        self._session.connect(now_ms)
        self._run(now_ms)

    def receive(self, data: bytes, now_ms: Ms) -> None:
        """A message of the client."""
        self._session.receive(data, now_ms)
        self._run(now_ms)

    def disconnect(self, now_ms: Ms) -> None:
        """The client closed the connection."""
        self._session.disconnect(now_ms)
        self._run(now_ms)

    def tick(self, now_ms: Ms) -> None:
        """Do what is due."""
        self._session.tick(now_ms)
        self._run(now_ms)

    def next_deadline_ms(self) -> Ms | None:
        """When ``tick`` is wanted next."""
        return self._session.next_deadline_ms()

    def outgoing(self) -> list[bytes]:
        """Messages for the client since the last time."""
        return self._session.outgoing()

    def _now_ms(self) -> Ms:
        at_ms, at_s = self._known
        return at_ms + round((asyncio.get_running_loop().time() - at_s) * 1000)

    def _run(self, now_ms: Ms) -> None:
        """Begin what the session asks for, and leave what it does not want any more."""
        self._known = now_ms, asyncio.get_running_loop().time()
        for errand in self._session.errands():
            match errand:
                case HearWords():
                    self._begin(errand.item_id, self._hear(errand))
                case MakeReply():
                    self._begin(errand.response_id, self._make(errand))
                case DropReply(response_id):
                    if task := self._tasks.get(response_id):
                        task.cancel()
        if self._session.closing is not None:
            for task in self._tasks.values():
                task.cancel()

    def _begin(self, name: str, work: Coroutine[None, None, None]) -> None:
        task = self._tasks[name] = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(lambda _done: self._tasks.pop(name))

    async def _hear(self, errand: HearWords) -> None:
        try:
            text = await self._recogniser.words(errand.audio)
        except Exception as problem:
            _log.error("the recogniser failed, the turn counts as one without words: %s", kind_and_place(problem))
            _log.debug("the recogniser failed\n%s", Whole(problem))
            text = ""
        now_ms = self._now_ms()
        self._session.take_words(errand.item_id, text.strip(), now_ms)
        self._run(now_ms)
        self.wake()

    async def _make(self, errand: MakeReply) -> None:
        try:
            if errand.by_client or not _is_wordless(errand):
                async with aclosing(self._thinker.reply(errand)) as parts:
                    async for part in parts:
                        self._take(errand.response_id, part)
                        if isinstance(part, Failed):
                            _log.warning("no reply: %s", part.message)
                            return
        except Exception as problem:
            _log.error("a reply could not be made: %s", kind_and_place(problem))
            _log.debug("a reply could not be made\n%s", Whole(problem))
            self._take(errand.response_id, Failed("server_error", "The server failed to make this reply."))
            return
        self._take(errand.response_id, Made())

    def _take(self, response_id: str, part: Part) -> None:
        now_ms = self._now_ms()
        self._session.take_part(response_id, part, now_ms)
        self._run(now_ms)
        self.wake()


def _is_wordless(errand: MakeReply) -> bool:
    """Whether the turn to be answered has no words: a cough, or a door. Nothing is said to it."""
    last = errand.history[-1] if errand.history else None
    return isinstance(last, CallerSaid) and not last.text
