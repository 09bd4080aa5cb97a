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
from callwright.runtime.voicedtext import SAMPLE_BYTES, VoicedText, kind_of, said_of

VOICE_PATIENCE_MS: Final[Ms] = 5_000
"""How long a voice that has text to say may give nothing."""
STOP_MS: Final[Ms] = 1_000
"""How long a voice that is stopped at the end of a call may take to end."""
TEXTS_MAX: Final = 64
"""How many of the latest texts are kept, for the reports of what was heard of them."""
CUT_MARK: Final = "-"
"""What ends the text of a reply that is written anew."""
AUDIO_MS_MAX: Final[Ms] = 600_000
"""How much audio one text can have; a voice that makes more does not come to an end."""
PIECES_MAX: Final = 50
"""After so many pieces in a row others get their turn, however fast the voice is."""

_log = logging.getLogger(__name__)


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
    texts: deque[VoicedText] = field(default_factory=deque)
    """Those that the voice is not through with; the first is being said."""
    known: dict[ItemId, VoicedText] = field(default_factory=dict)
    """All that were given to it: none is said twice, nor gone on with once the voice is through with it."""
    calls: set[ToolCallId] = field(default_factory=set)
    """Tool calls whose spoken argument was."""
    aloud: dict[str, None] = field(default_factory=dict)
    """Those arguments, without signs: the server may write them, too, before the call or behind it."""
    unsaid: list[on.ToolCalled] = field(default_factory=list)
    """Calls whose argument a text that is being written may turn out to be."""
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

    def text_of(self, item_id: ItemId) -> VoicedText | None:
        """The text of this item, if some of it was given to the voice."""
        return self.known.get(item_id)


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
        self._task: asyncio.Task[str] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._leaving: dict[asyncio.Task[str], None] = {}
        """Those that were let go of and have not ended."""
        self._noted: dict[str, None] = {}
        """What is noted once in a call."""

    # --- what the model's end tells

    def note(self, what: str, quoted: str = "") -> None:
        """Something is out of order."""
        self._call.note(what, quoted)

    def fail(self, problem: BaseException) -> None:
        """A mistake: the call ends by it."""
        self._call.fail(problem)

    def audio(self, response_id: ResponseId, item_id: ItemId, audio: bytes) -> None:
        """The server speaks, although it was asked to write: nobody is to hear two voices."""
        self._note_once("the server sends audio although text was asked for; it is not played")

    def text(self, response_id: ResponseId, item_id: ItemId, piece: str) -> None:
        """A piece of a reply's text came."""
        response = self._response(response_id)
        if response is None or not piece:
            return
        text = response.text_of(item_id)
        if text and text.is_whole:
            self._note_once("the server writes on in a text that it had ended; that is not said")
            return
        begun = response.partial[item_id] = response.partial.get(item_id, "") + piece
        self._keep(item_id, begun)
        is_said = text is None and any(aloud.startswith(_plain(begun)) for aloud in response.aloud)
        if response.fate is not _Fate.STOPPED and not begun.isspace() and not is_said:
            self._give(response, item_id, begun if text is None else piece)
            self._go_on()

    def handle(self, event: on.Event) -> None:
        """Tell the core what happened, when it is time for that."""
        match event:
            case on.ResponseStarted():
                self._end_before()
                self._responses.append(_Response(event.response_id))
                self._tell(self._responses[-1], event)
            case on.ReplyWritten() if response := self._response(event.response_id):
                self._written(response, event)
            case on.ToolCalled() if response := self._response(event.response_id):
                self._tell(response, event)
                self._called(response, event)
            case on.ResponseEnded() if response := self._response(event.response_id):
                self._end_texts(response)
                response.end = event
            case on.SpeechStarted():
                self._tell_partial()
                self._call.handle(event)
                self.cut()
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
            if (stopped := self._response(command.response_id)) is not None:
                self._end_texts(stopped)
            self._responses = deque(each for each in self._responses if each.response_id != command.response_id)
        self._let_go()
        self._go_on()

    def cut(self) -> None:
        """The caller speaks, or what played was cleared: a response that is said behind its end is said no more.

        The core takes that for over, and so stops none; all others it stops itself.
        """
        if self._responses and self._responses[0].is_told:
            self.stop(do.StopVoice(self._responses[0].response_id, is_open=False))

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
        self._let_go()
        ending = list(self._leaving)
        if ending:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_MS / 1000):
                    await asyncio.shield(asyncio.gather(*ending, return_exceptions=True))
            if self._leaving:
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

    def _end_before(self) -> None:
        """A response begins: one before it that has not ended does so without a word, as the core takes it, too."""
        if self._responses and self._responses[-1].end is None:
            response = self._responses[-1]
            self._end_texts(response)
            response.end = on.ResponseEnded(response.response_id, on.ResponseStatus.INCOMPLETE)
            response.is_told = True

    def _end_texts(self, response: _Response) -> None:
        for item_id, begun in list(response.partial.items()):
            self._written(response, on.ReplyWritten(response.response_id, item_id, begun))

    def _give(self, response: _Response, item_id: ItemId, piece: str) -> VoicedText:
        """More of a text for the voice; the first of it begins the text."""
        text = response.text_of(item_id)
        if text is None:
            text = response.known[item_id] = VoicedText(item_id)
            response.texts.append(text)
        text.give(piece)
        self._moved(response, text)
        return text

    def _written(self, response: _Response, event: on.ReplyWritten) -> None:
        response.partial.pop(event.item_id, None)
        text = response.text_of(event.item_id)
        if text and text.is_whole:
            return
        if not text and not event.text.strip():
            response.empty = event.item_id
            return
        if not text and _plain(event.text) in response.aloud:
            return
        rest = _rest(text.given if text else "", event.text)
        if text and rest is None:
            self._note_once("the server's text is not what it had written piece by piece; the pieces are said")
            event = replace(event, text=text.given)
        self._keep(event.item_id, event.text)
        self._tell(response, event)
        if response.fate is not _Fate.STOPPED:
            text = self._give(response, event.item_id, rest or "")
            text.end()
            unsaid, response.unsaid = response.unsaid, []
            for call in unsaid:
                self._say_aloud(response, call)

    def _called(self, response: _Response, event: on.ToolCalled) -> None:
        """Say what a tool call wants said, unless the reply has said it already."""
        if event.tool_call_id in response.calls or response.fate is _Fate.STOPPED:
            return
        response.calls.add(event.tool_call_id)
        self._say_aloud(response, event)

    def _say_aloud(self, response: _Response, event: on.ToolCalled) -> None:
        aloud = _argument(event.arguments, self._spoken.get(event.name, ()))
        plain, texts = _plain(aloud), response.known.values()
        if not plain or f" {plain} " in f" {' '.join(_plain(text.given) for text in texts)} ":
            return
        if any(not text.is_whole and plain.startswith(_plain(text.given)) for text in texts):
            response.unsaid.append(event)
            return
        item_id = response.empty
        if item_id is None:
            item_id = ItemId(f"{event.item_id} aloud")
            self._own[item_id] = None
        response.empty = None
        self._written(response, on.ReplyWritten(response.response_id, item_id, aloud))
        response.aloud[plain] = None

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

    def _begin(self, response: _Response, text: VoicedText) -> None:
        loop = asyncio.get_running_loop()
        task = self._task = loop.create_task(self._say(response, text), name="voice")
        task.add_done_callback(lambda _task: self._through(task, response, text))
        self._wait_for(response, text)

    def _moved(self, response: _Response, text: VoicedText) -> None:
        """More of a text has come; the voice may have waited for that."""
        if self._task and response is self._responses[0] and response.texts[0] is text:
            self._wait_for(response, text)

    def _wait_for(self, response: _Response, text: VoicedText) -> None:
        """Wait for the next piece, not for ever."""
        if self._timer:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(VOICE_PATIENCE_MS / 1000, self._too_late, response, text)

    def _let_go(self) -> None:
        """Close the generator that speaks; nothing of it counts any more."""
        task, self._task = self._task, None
        if task and not task.done():
            self._leaving[task] = None
            task.cancel()
        if self._timer:
            self._timer.cancel()
            self._timer = None

    async def _say(self, response: _Response, text: VoicedText) -> str:
        """Have a text said. Returns what is wrong with how it was; empty if nothing is."""
        me, count = asyncio.current_task(), 0
        spoken = self._voice.speak(text.pieces())
        if not _is_generator(spoken):
            return f"speak(text) gave {type(spoken).__name__}, not an async generator"
        async with contextlib.aclosing(spoken) as pieces:
            async for piece in pieces:
                if self._task is not me:
                    return ""
                said = said_of(piece)
                if said is None:
                    return f"it yielded {kind_of(piece)}, not bytes or Said(bytes, str)"
                self._spoke(response, text, said)
                if text.made_ms(self._voice.rate_hz) > AUDIO_MS_MAX:
                    return f"it gave more than {AUDIO_MS_MAX // 60_000} min of audio for a text"
                count += 1
                if count % PIECES_MAX == 0:
                    await asyncio.sleep(0)
        return ""

    def _spoke(self, response: _Response, text: VoicedText, said: Said) -> None:
        if said.audio:
            self._wait_for(response, text)
            text.made_bytes += len(said.audio)
            self._call.audio(response.response_id, text.item_id, said.audio)
        if not said.text.strip():
            return
        count = text.told(said.text, len(said.audio), self._voice.rate_hz)
        if count is None:
            self._note_once(
                "the voice tells of words that are not next, or too many for its audio: no more is believed"
            )
        else:
            self._call.handle(on.WordsVoiced(text.item_id, count, text.made_ms(self._voice.rate_hz)))

    def _too_late(self, response: _Response, text: VoicedText) -> None:
        if not text.is_whole:
            return  # it may well wait for the model
        self._let_go()
        self._failed(response, text, f"it gave nothing for {VOICE_PATIENCE_MS // 1000} s")
        self._go_on()

    def _through(self, task: asyncio.Task[str], response: _Response, text: VoicedText) -> None:
        """The voice has ended; one that was let go of is nobody's concern any more, but for what it raised."""
        self._leaving.pop(task, None)
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
        elif what := task.result() or _what_lacks(text):
            self._failed(response, text, what)
        else:
            response.texts.popleft()
        self._go_on()

    def _failed(self, response: _Response, text: VoicedText, what: str) -> None:
        response.texts.popleft()
        response.fate = _Fate.FAILED
        self._call.handle(on.VoiceFailed(response.response_id, text.item_id, what))

    def _note_once(self, what: str) -> None:
        if what not in self._noted:
            self._noted[what] = None
            self._call.note(what)


def _how_it_ended(response: _Response, end: on.ResponseEnded) -> on.ResponseEnded:
    if response.fate is _Fate.STOPPED and end.status is on.ResponseStatus.COMPLETED:
        return replace(end, status=on.ResponseStatus.CANCELLED, reason="the voice was stopped")
    if response.fate is _Fate.FAILED and end.status is on.ResponseStatus.COMPLETED:
        return replace(end, status=on.ResponseStatus.FAILED, reason="the voice failed")
    return end


def _what_lacks(text: VoicedText) -> str:
    """What a voice owes that has ended by itself."""
    if text.made_bytes < SAMPLE_BYTES and _plain(text.given):
        return "it gave no audio"
    return text.untold() if text.is_whole else "it ended before all of its text had come"


def _rest(given: str, whole: str) -> str | None:
    """What of a whole text was not given yet; None where it is not the one that was begun."""
    begun = given.lstrip()
    for start in (given, begun, begun.rstrip()):
        if whole.startswith(start):
            return whole[len(start) :]
    return None


def _is_generator(spoken: object) -> bool:
    return isinstance(spoken, AsyncIterator) and callable(getattr(spoken, "aclose", None))


def _argument(arguments: str, names: tuple[str, ...]) -> str:
    """What a tool call wants said."""
    try:
        given = msgspec.json.decode(arguments or "{}", type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""
    return " ".join(value.strip() for name in names if isinstance(value := given.get(name), str))


def _plain(text: str) -> str:
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.lower()).split())
