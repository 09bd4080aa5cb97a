"""The one open response: when it begins, what of it has left, and how it ends.

```
asked        first audio                      last chunk      done
  ├─ created ──┬ chunk, chunk, chunk ... ─────────┬ 436 ms ─────┤ completed
               └ a cut: history keeps what had left; the written words are told whole; done, cancelled
```

A reply is believed to be audible from its first chunk for as long as the audio that has left lasts. A
``response.create`` that comes while the caller speaks is held: one reply answers it and the turn. A dialect without
that habit refuses a second response, its own included.

A reply that is an errand grows while it is given out: each piece leaves behind the ones before it, or at once if they
have run out. Where no more can be made, what there is is given out, and it has failed.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from callwright.audio.formats import PCM16_24K
from callwright.ids import ItemId, Ms, ToolCallId
from callwright.sim.models import Reply, ToolRequest, ToolRequested
from callwright.sim.server.dialects import Habit
from callwright.sim.server.errands import Failed, Made, Piece
from callwright.sim.server.history import Refusal, Spoken, kept_words, wire_item
from callwright.sim.server.speaking import Growth, Step, Timed, Utterance, timeline, written_timeline
from callwright.sim.server.telling import Heading, Modality, Output
from callwright.sim.server.writing import Written
from callwright.wire.items import FunctionCallItem, Item
from callwright.wire.objects import ResponseParams
from callwright.wire.profiles import Feature

if TYPE_CHECKING:
    from callwright.sim.models import HistoryItem, Model
    from callwright.sim.server.agenda import Action
    from callwright.sim.server.common import Common
    from callwright.sim.server.errands import Part
    from callwright.sim.server.settings import MsRange
    from callwright.sim.speech import Recording


@dataclass(slots=True, eq=False)
class _Response:
    """A response that is open."""

    heading: Heading
    utterance: Utterance | None
    steps: deque[Timed]
    calls: deque[ToolRequest] = field(default_factory=deque)
    """The tool calls that it has still to issue."""
    growth: Growth | None = None
    """While not all of it is there."""
    failed: Failed | None = None
    """Why no more of it came."""
    items: list[Item] = field(default_factory=list)
    """The finished ones, in their order of output."""
    called: str | None = None
    """The tool that it has called last."""
    begun: int = 0
    """How many items it has begun."""
    speech: tuple[Spoken, Output, ItemId | None] | None = None
    """The spoken item while it grows, and the item before it."""

    @property
    def response_id(self) -> str:
        """What names it."""
        return self.heading.response_id


class Replies:
    """Makes, paces and cuts the agent's replies."""

    def __init__(self, model: Model | None, speech: Mapping[str, Recording], common: Common) -> None:
        self._model = model
        self._speech = speech
        self._history = common.history
        self._teller = common.teller
        self._common = common
        self._settings = common.settings
        self._model_rng = random.Random(common.rng.getrandbits(64))
        self.output_format = PCM16_24K
        """What replies are sent in from the next one on."""
        self.when_heard: Callable[[Ms], None] = lambda heard_ms: None
        """Is called as a reply is completed, with the instant at which it will have been heard."""
        self.count = 0
        """How many there have been."""
        self._open: _Response | None = None
        self.audible_until_ms: Ms = 0
        """When what has left will have been heard."""
        self.is_held = False
        """Whether a request waits for the end of the caller's turn."""
        self._when_done: list[tuple[Ms, Action]] = []
        self.written = Written(common.history, common.settings.report_lasts_ms)
        """What a client with a voice of its own is sent, and says of it."""

    def is_audible(self, now_ms: Ms) -> bool:
        """Whether the server believes that the caller hears a reply."""
        return now_ms < self.audible_until_ms or self.written.is_audible(now_ms)

    @property
    def heard_until_ms(self) -> Ms:
        """Until when a reply was heard, or will have been."""
        return max(self.audible_until_ms, self.written.told_ms)

    @property
    def is_open(self) -> bool:
        """Whether a response is open."""
        return self._open is not None

    @property
    def can_be_cut(self) -> bool:
        """Whether a response is open that has not given out all that it has."""
        response = self._open
        if response is None:
            return False
        return response.growth is not None or any(step in (Step.CHUNK, Step.CALL) for _, step in response.steps)

    @property
    def _merges(self) -> bool:
        return Feature.MERGED_REQUESTS in self._settings.speaks.profile.features

    def when_done(self, delay_ms: Ms, action: Action) -> None:
        """Do something so long after the open response has ended, or after now if none is open."""
        if self._open is None:
            self._common.agenda.at(self._common.agenda.now_ms + delay_ms, action)
        else:
            self._when_done.append((delay_ms, action))

    # --- asking for a reply

    def create(self, asked: ResponseParams, now_ms: Ms, *, caller_speaks: bool) -> Refusal | None:
        """A client asks for a reply, to its own input where it gives one."""
        if self._open is not None:
            return _in_the_way(self._open)
        seen = self._history.items if asked.input is None else self._history.context(asked.input)
        if isinstance(seen, Refusal):
            return seen
        if caller_speaks and self._merges:
            self.is_held = True
        elif self._common.errands is not None:
            self._send_for(None if asked.input is None else seen, asked, by_client=True)
        else:
            self._begin(seen, asked, now_ms, now_ms, self._settings.asked_answer_ms)
        return None

    def turn_ended(self, now_ms: Ms, mark_ms: Ms, *, wants_reply: bool) -> Ms:
        """The caller's turn is over since ``mark_ms``; it, and a request that was held, get one reply.

        Returns when that begins to be heard; now, if there is none.
        """
        if not (wants_reply or self.is_held):
            return now_ms
        if self._open is not None and not self._merges:
            self._teller.refused(_in_the_way(self._open), None)
            return now_ms
        self._finish(now_ms)
        if self._common.errands is not None:
            self._send_for(None, ResponseParams(), by_client=False)
            return now_ms
        is_written = self.written.modality == "text"
        delay_ms = self._settings.text_answer_ms if is_written else self._settings.answer_ms
        return self._begin(self._history.items, ResponseParams(), now_ms, mark_ms, delay_ms)

    def _begin(
        self, seen: Sequence[HistoryItem], asked: ResponseParams, now_ms: Ms, from_ms: Ms, delay_ms: MsRange
    ) -> Ms:
        self.is_held = False
        self.count += 1
        assert self._model is not None
        reply = self._model.reply(seen, self._model_rng)
        pause_ms, render = self._settings.sentence_pause_ms, self._common.samples.render
        utterance = render(reply.clips, self._speech, pause_ms, self.output_format) if reply.clips else None
        first_ms = max(now_ms, from_ms + self._common.rng.randint(*delay_ms))
        modality = self._modality(asked)
        steps = self._steps(first_ms, reply, utterance, modality)
        calls = deque([reply.tool] if reply.tool else [])
        response = self._opened(_Response(self._heading(asked), utterance, deque(steps), calls))
        self._common.agenda.at(steps[0].at_ms, partial(self._go_on, response))
        return first_ms

    def _modality(self, asked: ResponseParams) -> Modality:
        if asked.output_modalities is None:
            return self.written.modality
        return "text" if asked.output_modalities == ("text",) else "audio"

    def _heading(self, asked: ResponseParams) -> Heading:
        echoed = asked.metadata if Feature.METADATA in self._settings.speaks.profile.features else None
        return Heading(self._common.names.next("resp"), self._modality(asked), echoed)

    def _opened(self, response: _Response) -> _Response:
        self._open = response
        self._teller.response_created(response.heading)
        if self._settings.has(Habit.TELLS_LIMITS):
            self._teller.limits()
        return response

    # --- a reply that grows

    def _send_for(self, seen: Sequence[HistoryItem] | None, asked: ResponseParams, *, by_client: bool) -> None:
        """Open a response, and have it made: to what is ``seen``, or to the history as it will be."""
        assert self._common.errands is not None
        self.is_held = False
        self.count += 1
        response = self._opened(_Response(self._heading(asked), None, deque(), growth=Growth()))
        self._common.errands.make(response.response_id, seen, asked, by_client=by_client)

    def take(self, response_id: str, part: Part, now_ms: Ms) -> None:
        """Something of a reply was made; what comes for one that is over is left."""
        response = self._open
        if response is None or response.growth is None or response.response_id != response_id:
            return
        was_idle = not response.steps
        match part:
            case Piece():
                self._grow(response, response.growth, part, now_ms)
            case ToolRequest():
                response.calls.append(part)
                if self._settings.speaks.voices_arguments:
                    self._call(response)
            case Made() | Failed():
                response.growth = None
                response.failed = part if isinstance(part, Failed) else None
                if response.speech is not None:
                    response.speech[0].growth = None
                response.steps.extend(self._rest(response, now_ms))
        if response.steps and was_idle:
            self._common.agenda.at(response.steps[0].at_ms, partial(self._go_on, response))

    def _grow(self, response: _Response, growth: Growth, piece: Piece, now_ms: Ms) -> None:
        """Let a piece follow what there is; of that, what has not left yet leaves when it would have anyway."""
        so_far = response.utterance
        response.utterance = made = Utterance.of(piece.pcm, piece.words, self.output_format, so_far)
        left_ms = response.speech[0].streamed_ms if response.speech else 0
        has_begun = response.speech is not None or bool(response.steps)
        begin = [] if has_begun else [Timed(now_ms, Step.BEGIN)]
        pending = [timed for timed in response.steps if timed.step is not Step.CHUNK]
        if response.heading.modality == "text":
            is_argument = self._is_argument(with_call=response.called is not None)
            leaves = [] if is_argument else [now_ms for word in made.words if word.end_ms > left_ms]
        else:
            is_dry = not response.steps
            leaves = growth.leaves(left_ms, made.audio_ms, now_ms, is_dry=is_dry, settings=self._settings)
        response.steps = deque([*begin, *pending, *(Timed(at_ms, Step.CHUNK) for at_ms in leaves)])
        if response.speech is not None:
            self._history.grow(response.speech[0].item_id, made)

    def _rest(self, response: _Response, now_ms: Ms) -> list[Timed]:
        """What is still to be done once the last piece is there."""
        last_ms = response.steps[-1].at_ms if response.steps else now_ms
        speaks = response.utterance is not None
        calls = [Timed(last_ms, Step.CALL)] * len(response.calls)
        done_ms = last_ms + self._common.rng.randint(*self._settings.done_after_ms) if speaks else last_ms
        return [*([Timed(last_ms, Step.END)] if speaks else []), *calls, Timed(done_ms, Step.DONE)]

    def _steps(self, first_ms: Ms, reply: Reply, utterance: Utterance | None, modality: Modality) -> list[Timed]:
        with_call, settings, rng = reply.tool is not None, self._settings, self._common.rng
        if modality == "text" and utterance is not None:
            words = 0 if self._is_argument(with_call=with_call) else len(utterance.words)
            return written_timeline(first_ms, words, with_call=with_call, settings=settings, rng=rng)
        audio_ms = utterance.audio_ms if utterance else 0
        return timeline(first_ms, audio_ms, with_call=with_call, settings=settings, rng=rng)

    def _is_argument(self, *, with_call: bool) -> bool:
        """Whether what a reply says is an argument of its call: it is not written besides."""
        return with_call and self._settings.speaks.voices_arguments

    # --- giving it out

    def _go_on(self, response: _Response, now_ms: Ms) -> None:
        """Take the steps that are due, unless the response was ended meanwhile."""
        while self._open is response and response.steps and response.steps[0].at_ms <= now_ms:
            self._take(response, response.steps.popleft().step, now_ms)
        if self._open is response and response.steps:
            self._common.agenda.at(response.steps[0].at_ms, partial(self._go_on, response))

    def _take(self, response: _Response, step: Step, now_ms: Ms) -> None:
        match step:
            case Step.BEGIN:
                self._begin_speech(response, now_ms)
            case Step.CHUNK if response.heading.modality == "text":
                self._send_word(response)
            case Step.CHUNK:
                self._send_chunk(response, now_ms)
            case Step.END:
                self._end_speech(response, "incomplete" if response.failed else "completed")
            case Step.CALL:
                self._call(response)
            case Step.DONE:
                self._close(response, "failed" if response.failed else "completed", None, now_ms)

    def _begin_speech(self, response: _Response, now_ms: Ms) -> None:
        assert response.utterance is not None
        tool = response.calls[0].name if response.calls else response.called
        item_id = ItemId(self._common.names.next("item"))
        spoken = Spoken(item_id, response.utterance, now_ms, tool=tool, growth=response.growth)
        output = self._next_output(response, spoken.item_id)
        response.speech = spoken, output, self._history.speak(spoken)
        if response.heading.modality == "audio":
            self._teller.speech_began(output, response.speech[2])
            return
        spoken.is_written, spoken.is_argument = True, self._is_argument(with_call=tool is not None)
        if spoken.is_argument:
            spoken.streamed_ms = spoken.utterance.audio_ms
        self.written.begun(response.response_id, spoken)
        self._teller.text_began(output, response.speech[2])

    def _send_word(self, response: _Response) -> None:
        assert response.speech is not None
        spoken, output, _ = response.speech
        words = spoken.utterance.words
        at = next(number for number, word in enumerate(words) if word.end_ms > spoken.streamed_ms)
        is_last = at + 1 == len(words)
        spoken.streamed_ms = spoken.utterance.audio_ms if is_last else words[at].end_ms
        self._teller.text(output, words[at].text if at == 0 else f" {words[at].text}")

    def _send_chunk(self, response: _Response, now_ms: Ms) -> None:
        assert response.speech is not None
        spoken, output, _ = response.speech
        start_ms = spoken.streamed_ms
        spoken.streamed_ms = min(spoken.utterance.audio_ms, start_ms + self._settings.chunk_ms)
        played_to_ms = max(now_ms, self.audible_until_ms) if start_ms else now_ms
        self.audible_until_ms = played_to_ms + spoken.streamed_ms - start_ms
        if self._settings.has(Habit.WRITES_ALONG) and (text := _begun(spoken, start_ms)):
            self._teller.words(output, text)
        self._teller.audio(output, spoken.utterance.between(start_ms, start_ms + self._settings.chunk_ms))

    def _end_speech(self, response: _Response, status: str) -> None:
        assert response.speech is not None
        spoken, output, previous = response.speech
        response.speech = None
        if not spoken.is_written:
            response.items.append(self._teller.speech_ended(output, spoken.utterance.text, status, previous))
            return
        words = kept_words(spoken.utterance.words, spoken.streamed_ms)
        text = "" if spoken.is_argument else " ".join(word.text for word in words)
        response.items.append(self._teller.text_ended(output, text, status, previous))

    def _call(self, response: _Response) -> None:
        request = response.calls.popleft()
        response.called = request.name
        tool_call_id = ToolCallId(self._common.names.next("call", self._settings.speaks.profile.call_id_max))
        item = ToolRequested(ItemId(self._common.names.next("item")), tool_call_id, request.name, request.arguments)
        call = wire_item(item)
        assert isinstance(call, FunctionCallItem)
        output, in_pieces = self._next_output(response, item.item_id), self._settings.has(Habit.WRITES_ALONG)
        self._teller.called(output, call, self._history.append(item), in_pieces=in_pieces)
        response.items.append(call)

    def _next_output(self, response: _Response, item_id: ItemId) -> Output:
        response.begun += 1
        return Output(response.heading, item_id, response.begun - 1)

    # --- ending it

    def cancel(self, now_ms: Ms, reason: str, response_id: str | None = None) -> Refusal | None:
        """Cut the open response: history keeps of its speech what has left; a call that was issued stays."""
        response = self._open
        if response is None or response_id not in (None, response.response_id):
            return Refusal("response_cancel_not_active", "Cancellation failed: no active response found")
        if response.growth is not None and self._common.errands is not None:
            self._common.errands.drop(response.response_id)
        if response.speech is not None:
            spoken = response.speech[0]
            self._history.cut(spoken.item_id, spoken.streamed_ms)
            self._end_speech(response, "incomplete")
        self.audible_until_ms = min(self.audible_until_ms, now_ms)
        self._close(response, "cancelled", reason, now_ms)
        return None

    def _finish(self, now_ms: Ms) -> None:
        """Bring the open response to its own end at once, to make room for the next."""
        if self.can_be_cut:
            self.cancel(now_ms, "turn_detected")
        elif self._open is not None:
            self._close(self._open, "completed", None, now_ms)

    def _close(self, response: _Response, status: str, reason: str | None, now_ms: Ms) -> None:
        self._open = None
        for action in self.written.take_waiting():
            action(now_ms)
        failed = response.failed if status == "failed" else None
        self._teller.response_done(response.heading, status, tuple(response.items), reason, failed)
        if status == "completed":
            self.when_heard(max(now_ms, self.audible_until_ms))
        for delay_ms, action in self._when_done:
            self._common.agenda.at(now_ms + delay_ms, action)
        self._when_done.clear()


def _in_the_way(response: _Response) -> Refusal:
    message = (
        f"Conversation already has an active response in progress: {response.response_id}. "
        "Wait until the response is finished before creating a new one."
    )
    return Refusal("conversation_already_has_active_response", message)


def _begun(spoken: Spoken, from_ms: Ms) -> str:
    """The words that begin in the audio from ``from_ms`` up to what has left, a blank before all but the first."""
    begun = [word for word in spoken.utterance.words if from_ms <= word.start_ms < spoken.streamed_ms]
    return "".join(word.text if word is spoken.utterance.words[0] else f" {word.text}" for word in begun)
