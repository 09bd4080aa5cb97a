"""The one open response: when it begins, what of it has left, and how it ends.

```
asked        first audio                      last chunk      done
  ├─ created ──┬ chunk, chunk, chunk ... ─────────┬ 436 ms ─────┤ completed
               └ a cut: history keeps what had left; the written words are told whole; done, cancelled
```

A reply is believed to be audible from its first chunk for as long as the audio that has left lasts. A
``response.create`` that comes while the caller speaks is held: one reply answers it and the turn. A dialect without
that habit refuses a second response, its own included.
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
from callwright.sim.models import Reply, ToolRequested
from callwright.sim.server.dialects import Habit
from callwright.sim.server.history import Refusal, Spoken, wire_item
from callwright.sim.server.speaking import Step, Timed, Utterance, timeline
from callwright.sim.server.telling import Heading, Output
from callwright.wire.items import FunctionCallItem, Item
from callwright.wire.objects import ResponseParams
from callwright.wire.profiles import Feature

if TYPE_CHECKING:
    from callwright.sim.models import HistoryItem, Model
    from callwright.sim.server.agenda import Action
    from callwright.sim.server.common import Common
    from callwright.sim.server.settings import MsRange
    from callwright.sim.speech import Recording


@dataclass(slots=True, eq=False)
class _Response:
    """A response that is open."""

    heading: Heading
    reply: Reply
    utterance: Utterance | None
    steps: deque[Timed]
    items: list[Item] = field(default_factory=list)
    """The finished ones, in their order of output."""
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

    def __init__(self, model: Model, speech: Mapping[str, Recording], common: Common) -> None:
        self._model = model
        self._speech = speech
        self._history = common.history
        self._teller = common.teller
        self._agenda = common.agenda
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

    def is_audible(self, now_ms: Ms) -> bool:
        """Whether the server believes that the caller hears a reply."""
        return now_ms < self.audible_until_ms

    @property
    def can_be_cut(self) -> bool:
        """Whether a response is open that has not given out all that it has."""
        return self._open is not None and any(step in (Step.CHUNK, Step.CALL) for _, step in self._open.steps)

    @property
    def _merges(self) -> bool:
        return Feature.MERGED_REQUESTS in self._settings.speaks.profile.features

    def when_done(self, delay_ms: Ms, action: Action) -> None:
        """Do something so long after the open response has ended, or after now if none is open."""
        if self._open is None:
            self._agenda.at(self._agenda.now_ms + delay_ms, action)
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
        return self._begin(self._history.items, ResponseParams(), now_ms, mark_ms, self._settings.answer_ms)

    def _begin(
        self, seen: Sequence[HistoryItem], asked: ResponseParams, now_ms: Ms, from_ms: Ms, delay_ms: MsRange
    ) -> Ms:
        self.is_held = False
        self.count += 1
        reply = self._model.reply(seen, self._model_rng)
        pause_ms, render = self._settings.sentence_pause_ms, self._common.samples.render
        utterance = render(reply.clips, self._speech, pause_ms, self.output_format) if reply.clips else None
        first_ms = max(now_ms, from_ms + self._common.rng.randint(*delay_ms))
        audio_ms = utterance.audio_ms if utterance else 0
        steps = timeline(
            first_ms, audio_ms, with_call=reply.tool is not None, settings=self._settings, rng=self._common.rng
        )
        echoed = asked.metadata if Feature.METADATA in self._settings.speaks.profile.features else None
        heading = Heading(self._common.names.next("resp"), metadata=echoed)
        self._open = _Response(heading, reply, utterance, deque(steps))
        self._teller.response_created(heading)
        if self._settings.has(Habit.TELLS_LIMITS):
            self._teller.limits()
        self._agenda.at(steps[0].at_ms, partial(self._go_on, self._open))
        return first_ms

    # --- giving it out

    def _go_on(self, response: _Response, now_ms: Ms) -> None:
        """Take the steps that are due, unless the response was ended meanwhile."""
        while self._open is response and response.steps[0].at_ms <= now_ms:
            self._take(response, response.steps.popleft().step, now_ms)
        if self._open is response:
            self._agenda.at(response.steps[0].at_ms, partial(self._go_on, response))

    def _take(self, response: _Response, step: Step, now_ms: Ms) -> None:
        match step:
            case Step.BEGIN:
                self._begin_speech(response, now_ms)
            case Step.CHUNK:
                self._send_chunk(response, now_ms)
            case Step.END:
                self._end_speech(response, "completed")
            case Step.CALL:
                self._call(response)
            case Step.DONE:
                self._close(response, "completed", None, now_ms)

    def _begin_speech(self, response: _Response, now_ms: Ms) -> None:
        assert response.utterance is not None
        tool = response.reply.tool.name if response.reply.tool else None
        spoken = Spoken(ItemId(self._common.names.next("item")), response.utterance, now_ms, tool=tool)
        output = self._next_output(response, spoken.item_id)
        response.speech = spoken, output, self._history.speak(spoken)
        self._teller.speech_began(output, response.speech[2])

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
        response.items.append(self._teller.speech_ended(output, spoken.utterance.text, status, previous))

    def _call(self, response: _Response) -> None:
        request = response.reply.tool
        assert request is not None
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
        self._teller.response_done(response.heading, status, tuple(response.items), reason)
        if status == "completed":
            self.when_heard(max(now_ms, self.audible_until_ms))
        for delay_ms, action in self._when_done:
            self._agenda.at(now_ms + delay_ms, action)
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
