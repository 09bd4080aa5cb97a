"""The model's end of a call whose replies a voice of our own says: what it writes becomes what a speaking model sends.

```
server     started │text text text│ended
voice              ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│
core       started │ audio ...       text        │ended
```

To the core a response is over when the voice is through with it, so that nothing is asked for behind its back. It says
one response at a time, and one text after the other; a spoken argument of a tool call is one of them. What the core
stops is stopped at once: its generator is closed, and no piece of it comes through any more. A voice that raises, or
gives nothing for too long, costs the rest of one text, never the call.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final

import msgspec

from callwright.core import commands as do
from callwright.core import events as on
from callwright.declare.tools import Tool
from callwright.declare.voice import Said, Voice
from callwright.ids import ItemId, Ms, ResponseId, ToolCallId
from callwright.runtime.modelside import Pump
from callwright.runtime.problems import Whole, kind_and_place

VOICE_PATIENCE_MS: Final[Ms] = 5_000
"""How long a voice that has text to say may give nothing."""
STOP_MS: Final[Ms] = 1_000
"""How long a voice that is stopped at the end of a call may take to end."""
TEXTS_MAX: Final = 64
"""How many of the latest texts are kept, for the reports of what was heard of them."""
CUT_MARK: Final = "-"
"""What ends the text of a reply that is written anew."""
_SAMPLE_BYTES: Final = 2

_log = logging.getLogger(__name__)


class _Text:
    """One text on its way to the voice, piece by piece."""

    def __init__(self, item_id: ItemId) -> None:
        self.item_id = item_id
        self.given = ""
        """All of it so far."""
        self.is_whole = False
        self.words = 0
        """How many words the voice has told of."""
        self.made_bytes = 0
        """Audio that was made of it."""
        self._pieces: deque[str] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def give(self, piece: str) -> None:
        """More of it has come."""
        if piece:
            self.given += piece
            self._pieces.append(piece)
            self._wake()

    def end(self) -> None:
        """All of it has come."""
        self.is_whole = True
        self._wake()

    async def pieces(self) -> AsyncIterator[str]:
        """What has come, as it comes, to its end."""
        while True:
            while self._pieces:
                yield self._pieces.popleft()
            if self.is_whole:
                return
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)


class _Fate(Enum):
    """What becomes of a response."""

    SAID = auto()
    FAILED = auto()
    """The voice has, in one of its texts."""
    STOPPED = auto()


@dataclass(slots=True)
class _Response:
    """A response, from its beginning at the server to the end of its last text."""

    response_id: ResponseId
    texts: deque[_Text] = field(default_factory=deque)
    """Those that the voice is not through with; the first is being said."""
    said: list[str] = field(default_factory=list)
    """Those that were given to it."""
    calls: set[ToolCallId] = field(default_factory=set)
    """Tool calls whose spoken argument was."""
    partial: dict[ItemId, str] = field(default_factory=dict)
    """Texts that have not come whole."""
    empty: ItemId | None = None
    """An item of it without text: what is said beside a tool call."""
    held: list[on.ModelEvent] = field(default_factory=list)
    """What came of it while another one was said."""
    end: on.ResponseEnded | None = None
    """How it ended at the server."""
    is_told: bool = False
    """The core knows that, and the voice goes on."""
    fate: _Fate = _Fate.SAID

    def text_of(self, item_id: ItemId) -> _Text | None:
        """The text of this item, while it is not through."""
        return next((text for text in self.texts if text.item_id == item_id), None)


class VoiceSide:
    """Between the model's end of a call and the call: a ``Pump`` to the one, a model that speaks to the other."""

    def __init__(self, call: Pump, voice: Voice, tools: Mapping[str, Tool]) -> None:
        self.clock = call.clock
        self._call = call
        self._voice = voice
        self._spoken = {name: tool.spoken for name, tool in tools.items() if tool.spoken}
        self._responses: deque[_Response] = deque()
        """Those that are not over, in order; the first is said."""
        self._book: dict[ItemId, str] = {}
        """The latest texts, as far as they have come."""
        self._told: dict[ResponseId, int] = {}
        """How many words of each response were reported as heard."""
        self._own: dict[ItemId, None] = {}
        """Items that no server knows."""
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._has_audio = False

    # --- what the model's end tells

    def note(self, what: str, quoted: str = "") -> None:
        """Something is out of order."""
        self._call.note(what, quoted)

    def fail(self, problem: BaseException) -> None:
        """A mistake: the call ends by it."""
        self._call.fail(problem)

    def audio(self, response_id: ResponseId, item_id: ItemId, audio: bytes) -> None:
        """The server speaks, although it was asked to write: nobody is to hear two voices."""
        if not self._has_audio:
            self._has_audio = True
            self._call.note("the server sends audio although text was asked for; it is not played")

    def text(self, response_id: ResponseId, item_id: ItemId, piece: str) -> None:
        """A piece of a reply's text came."""
        response = self._response(response_id)
        if response is None or not piece:
            return
        response.partial[item_id] = response.partial.get(item_id, "") + piece
        self._keep(item_id, response.partial[item_id])
        if response.fate is not _Fate.STOPPED:
            text = self._text(response, item_id)
            text.give(piece)
            self._moved(response, text)
            self._go_on()

    def handle(self, event: on.Event) -> None:
        """Tell the core what happened, when it is time for that."""
        match event:
            case on.ResponseStarted():
                self._responses.append(_Response(event.response_id))
                self._tell(self._responses[-1], event)
            case on.ReplyWritten() if response := self._response(event.response_id):
                self._written(response, event)
            case on.ToolCalled() if response := self._response(event.response_id):
                self._tell(response, event)
                self._called(response, event)
            case on.ResponseEnded() if response := self._response(event.response_id):
                for item_id, begun in list(response.partial.items()):
                    self._written(response, on.ReplyWritten(response.response_id, item_id, begun))
                response.end = event
            case on.SpeechStarted():
                self._tell_partial()
                self._call.handle(event)
            case on.ModelClosed():
                self._model_gone()
                self._call.handle(event)
            case _:
                self._call.handle(event)
        self._go_on()

    # --- what the core asks for

    def stop(self, command: do.StopVoice) -> None:
        """Say nothing more of a response, nor of those that were begun behind it."""
        for response in self._responses:
            response.fate = _Fate.STOPPED
            response.texts.clear()
        if not command.is_open:
            self._responses = deque(each for each in self._responses if each.response_id != command.response_id)
        self._let_go()
        self._go_on()

    def concerns_server(self, command: do.Request) -> bool:
        """Whether the server knows what this is about: not a response that is over for it, nor words of ours."""
        match command:
            case do.CancelResponse(response_id=response_id):
                response = self._response(response_id)
                return response is None or response.end is None
            case do.RestateItem(item_id=item_id) | do.DropItem(item_id=item_id):
                return item_id not in self._own
        return True

    def words_for(self, command: do.Request) -> str:
        """The words that a command counts; of progress, those that were not told yet."""
        match command:
            case do.RestateItem():
                return f"{' '.join(self._words([(command.item_id, command.words)]))}{CUT_MARK}"
            case do.ReportProgress(response_id=response_id, heard=heard):
                words, told = self._words(heard), self._told.get(response_id, 0)
                self._told[response_id] = max(told, len(words))
                return " ".join(words[told:])
            case do.ReportStopped(response_id=response_id, heard=heard):
                self._told.pop(response_id, None)
                return " ".join(self._words(heard))
        return ""

    def _words(self, heard: Iterable[tuple[ItemId, int]]) -> list[str]:
        return [word for item_id, count in heard for word in self._book.get(item_id, "").split()[:count]]

    def _keep(self, item_id: ItemId, text: str) -> None:
        self._book[item_id] = text
        if len(self._book) > TEXTS_MAX:
            del self._book[next(iter(self._book))]

    async def close(self) -> None:
        """Stop the voice, and wait for it a little. Idempotent."""
        self._responses.clear()
        task = self._task
        self._let_go()
        if task:
            with contextlib.suppress(TimeoutError, asyncio.CancelledError, Exception):
                async with asyncio.timeout(STOP_MS / 1000):
                    await asyncio.shield(task)
            if not task.done():
                self._call.note("the voice does not stop when its generator is closed; it was left running")

    # --- from the one to the other

    def _tell_partial(self) -> None:
        """What is being said may be cut now: let the core know its text as far as that has come."""
        if self._responses and not self._responses[0].held:
            response = self._responses[0]
            for item_id, begun in response.partial.items():
                self._call.handle(on.ReplyWritten(response.response_id, item_id, begun))

    def _model_gone(self) -> None:
        """No server is there: what it has written whole is said to its end, and whatever else it began is left."""
        first = self._responses[0] if self._responses else None
        self._responses = deque([first] if first and first.end else [])
        if first is None:
            return
        if first.end is None:
            self._let_go()
        elif not first.is_told:
            first.is_told = True
            self._call.handle(_how_it_ended(first, first.end))

    def _response(self, response_id: ResponseId) -> _Response | None:
        return next((each for each in self._responses if each.response_id == response_id), None)

    def _tell(self, response: _Response, event: on.ModelEvent) -> None:
        """Tell the core of a response now, or when its turn has come."""
        if response is self._responses[0]:
            self._call.handle(event)
        else:
            response.held.append(event)

    def _text(self, response: _Response, item_id: ItemId) -> _Text:
        text = response.text_of(item_id)
        if text is None:
            text = _Text(item_id)
            response.texts.append(text)
        return text

    def _written(self, response: _Response, event: on.ReplyWritten) -> None:
        response.partial.pop(event.item_id, None)
        if not event.text.strip() and response.text_of(event.item_id) is None:
            response.empty = event.item_id
            return
        self._keep(event.item_id, event.text)
        self._tell(response, event)
        if response.fate is _Fate.STOPPED:
            return
        text = self._text(response, event.item_id)
        if event.text.startswith(text.given):
            text.give(event.text[len(text.given) :])
        text.end()
        response.said.append(event.text)
        self._moved(response, text)

    def _called(self, response: _Response, event: on.ToolCalled) -> None:
        """Say what a tool call wants said, unless the reply has said it already."""
        if event.tool_call_id in response.calls or response.fate is _Fate.STOPPED:
            return
        response.calls.add(event.tool_call_id)
        aloud = _argument(event.arguments, self._spoken.get(event.name, ()))
        before = " ".join(_plain(each) for each in (*response.said, *(text.given for text in response.texts)))
        if not aloud or _plain(aloud) in before:
            return
        item_id = response.empty
        if item_id is None:
            item_id = ItemId(f"{event.item_id} aloud")
            self._own[item_id] = None
        response.empty = None
        self._written(response, on.ReplyWritten(response.response_id, item_id, aloud))

    def _go_on(self) -> None:
        """Say what is next, and let go of what is over."""
        while self._responses and self._task is None:
            response = self._responses[0]
            if response.held:
                self._call.handle(response.held.pop(0))
            elif response.texts:
                self._begin(response, response.texts[0])
            elif response.end is not None:
                self._responses.popleft()
                if not response.is_told:
                    self._call.handle(_how_it_ended(response, response.end))
            else:
                return

    def _begin(self, response: _Response, text: _Text) -> None:
        loop = asyncio.get_running_loop()
        task = self._task = loop.create_task(self._say(response, text), name="voice")
        task.add_done_callback(lambda _task: self._through(task, response, text))
        self._wait_for(response, text)

    def _moved(self, response: _Response, text: _Text) -> None:
        """More of a text has come; the voice may have waited for that."""
        if self._task and response is self._responses[0] and response.texts[0] is text:
            self._wait_for(response, text)

    def _wait_for(self, response: _Response, text: _Text) -> None:
        """Wait for the next piece, not for ever."""
        if self._timer:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(VOICE_PATIENCE_MS / 1000, self._too_late, response, text)

    def _let_go(self) -> None:
        """Close the generator that speaks; nothing of it counts any more."""
        task, self._task = self._task, None
        if task:
            task.cancel()
        if self._timer:
            self._timer.cancel()
            self._timer = None

    async def _say(self, response: _Response, text: _Text) -> None:
        me = asyncio.current_task()
        async with contextlib.aclosing(self._voice.speak(text.pieces())) as pieces:
            async for piece in pieces:
                if self._task is not me:
                    return
                self._wait_for(response, text)
                self._spoke(response, text, piece)

    def _spoke(self, response: _Response, text: _Text, piece: bytes | Said) -> None:
        said = piece if isinstance(piece, Said) else Said(piece)
        if said.audio:
            text.made_bytes += len(said.audio)
            self._call.audio(response.response_id, text.item_id, said.audio)
        if said.text:
            text.words += len(said.text.split())
            audio_ms = text.made_bytes // _SAMPLE_BYTES * 1000 // self._voice.rate_hz
            self._call.handle(on.WordsVoiced(text.item_id, text.words, audio_ms))

    def _too_late(self, response: _Response, text: _Text) -> None:
        if not text.is_whole:
            return  # it may well wait for the model
        self._let_go()
        self._failed(response, text, f"it gave nothing for {VOICE_PATIENCE_MS // 1000} s")
        self._go_on()

    def _through(self, task: asyncio.Task[None], response: _Response, text: _Text) -> None:
        """The voice has ended; one that was let go of is nobody's concern any more, but for what it raised."""
        problem = None if task.cancelled() else task.exception()
        if problem:
            _log.error("the voice raised %s", kind_and_place(problem))
            _log.debug("the voice raised\n%s", Whole(problem))
        if task is not self._task:
            return
        self._let_go()
        if problem:
            self._failed(response, text, f"it raised {type(problem).__name__}")
        elif task.cancelled():
            self._failed(response, text, "it was cancelled")
        elif not text.made_bytes and text.given.strip():
            self._failed(response, text, "it gave no audio")
        else:
            response.texts.popleft()
        self._go_on()

    def _failed(self, response: _Response, text: _Text, what: str) -> None:
        response.texts.popleft()
        response.fate = _Fate.FAILED
        self._call.handle(on.VoiceFailed(response.response_id, text.item_id, what))


def _how_it_ended(response: _Response, end: on.ResponseEnded) -> on.ResponseEnded:
    if response.fate is _Fate.STOPPED and end.status is on.ResponseStatus.COMPLETED:
        return replace(end, status=on.ResponseStatus.CANCELLED, reason="the voice was stopped")
    if response.fate is _Fate.FAILED and end.status is on.ResponseStatus.COMPLETED:
        return replace(end, status=on.ResponseStatus.FAILED, reason="the voice failed")
    return end


def _argument(arguments: str, names: tuple[str, ...]) -> str:
    """What a tool call wants said."""
    try:
        given = msgspec.json.decode(arguments or "{}", type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""
    return " ".join(value.strip() for name in names if isinstance(value := given.get(name), str))


def _plain(text: str) -> str:
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.lower()).split())
