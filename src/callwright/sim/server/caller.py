"""The caller's turns as the client is told of them, and what was said in each.

What the listener decides is told a little later and in its order. The words of a turn are what the ear made of its
audio, the agent's own words included where they came back as echo; they are told last, as on the live service.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from callwright.ids import ItemId, Ms
from callwright.sim.models import CallerSaid
from callwright.sim.record import Confirmation
from callwright.sim.server.dialects import Habit
from callwright.sim.server.history import Refusal
from callwright.sim.server.listening import Listener, SpeechConfirmed, TurnEnded
from callwright.sim.speech import RATE_HZ, Pcm
from callwright.wire.objects import TranscriptionUsage
from callwright.wire.server import (
    ConversationItemInputAudioTranscriptionCompleted,
    ConversationItemInputAudioTranscriptionDelta,
    InputAudioBufferCleared,
    InputAudioBufferSpeechStarted,
    InputAudioBufferSpeechStopped,
    InputAudioBufferTimeoutTriggered,
)

if TYPE_CHECKING:
    from callwright.sim.server.agenda import Action
    from callwright.sim.server.common import Common, Hearing
    from callwright.sim.server.config import Config
    from callwright.sim.server.replies import Replies

MUSIC = "[music]"


class CallerTurns:
    """Tells the client when the caller began and stopped, and lets the reply follow."""

    def __init__(self, ear: Hearing, config: Config, replies: Replies, common: Common) -> None:
        self.confirmations: list[Confirmation] = []
        """Their onsets are on the audio clock."""
        self._config = config
        track = common.samples.track(common.settings.voice_threshold, config.input_format)
        self._listener = Listener(ear, track, common.settings, common.rng)
        self._ear = ear
        self._replies = replies
        self._errands = common.errands
        self._history = common.history
        self._teller = common.teller
        self._agenda = common.agenda
        self._settings = common.settings
        self._common = common
        self._item_id: ItemId | None = None
        self._told_ms: Ms = 0
        self._ended_ms: Ms = 0  # the end mark of the last turn
        self._clears = 0
        replies.when_heard = self._await

    @property
    def caller_speaks(self) -> bool:
        """Whether the client was told of a beginning and not yet of the end."""
        return self._item_id is not None

    @property
    def first_audio(self) -> Pcm:
        """The beginning of the caller's audio as it was read."""
        return self._listener.track.first

    @property
    def audio_ms(self) -> Ms:
        """How much of the caller's audio has come: where its clock stands."""
        return self._listener.track.clock_ms

    def configure(self, config: Config) -> None:
        """Hear what follows as this configuration has it."""
        if config.input_format != self._config.input_format:
            self._listener.set_format(config.input_format)
        self._listener.set_rule(config.settings, by_hand=config.detection is None)
        self._config = config

    def is_silence(self, audio: bytes) -> bool:
        """Whether this audio is digital silence."""
        return self._listener.track.is_silent(audio)

    def skip(self, nbytes: int) -> bool:
        """Pass over so many bytes of digital silence, if they would change nothing but the clock."""
        if not self._listener.can_skip():
            return False
        self._listener.skip(nbytes)
        return True

    def hear(self, audio: bytes, now_ms: Ms) -> None:
        """Hear the caller's audio in the session's format."""
        answered = self._replies.heard_until_ms > self._ended_ms
        for event in self._listener.hear(audio, over_reply=self._replies.is_audible(now_ms), answered=answered):
            match event:
                case SpeechConfirmed():
                    self._tell_at(now_ms + event.told_in_ms, partial(self._start, event))
                case TurnEnded():
                    mark_ms = self._ended_ms = now_ms - event.since_mark_ms
                    told_ms = mark_ms + self._common.rng.randint(*self._settings.stop_told_ms)
                    self._tell_at(told_ms, partial(self._stop, event, mark_ms))

    def commit(self, now_ms: Ms) -> Refusal | None:
        """A client ends the turn by hand: it gets no reply by itself."""
        ended = self._listener.commit()
        if ended is None:
            message = (
                "Error committing input audio buffer: buffer too small. "
                "Expected at least 100ms of audio, but buffer only has 0.00ms of audio."
            )
            return Refusal("input_audio_buffer_commit_empty", message)
        self._ended_ms = now_ms
        self._tell_at(now_ms, partial(self._enter, ended, now_ms, wants_reply=False))
        return None

    def clear(self, now_ms: Ms) -> None:
        """A client throws away what was heard since the last turn, and what it was not yet told of."""
        self._listener.clear()
        self._item_id = None
        self._clears += 1
        self._teller.tell(InputAudioBufferCleared())
        self._replies.turn_ended(now_ms, now_ms, wants_reply=False)

    def _tell_at(self, due_ms: Ms, action: Action) -> None:
        """Beginnings and ends are told in the order in which they were decided, unless they are cleared before."""
        self._told_ms = max(self._told_ms, due_ms)
        self._agenda.at(self._told_ms, partial(self._tell, action, self._clears))

    def _tell(self, action: Action, clears: int, now_ms: Ms) -> None:
        if clears == self._clears:
            action(now_ms)

    def _start(self, confirmed: SpeechConfirmed, now_ms: Ms) -> None:
        self._item_id = ItemId(self._common.names.next("item"))
        detection = self._config.detection
        if self._replies.is_audible(now_ms):
            self.confirmations.append(Confirmation(confirmed.onset_ms, now_ms))
        can_be_cut = self._replies.can_be_cut and (detection is None or detection.interrupt_response is not False)
        is_cut_first = can_be_cut and self._common.rng.random() < self._settings.cancelled_first_rate
        if is_cut_first:
            self._replies.cancel(now_ms, "turn_detected")
        self._teller.tell(InputAudioBufferSpeechStarted(item_id=self._item_id, audio_start_ms=confirmed.audio_start_ms))
        if can_be_cut and not is_cut_first:
            self._replies.cancel(now_ms, "turn_detected")

    def _stop(self, ended: TurnEnded, mark_ms: Ms, now_ms: Ms) -> None:
        assert self._item_id is not None
        self._teller.tell(InputAudioBufferSpeechStopped(item_id=self._item_id, audio_end_ms=ended.audio_end_ms))
        detection = self._config.detection
        wants_reply = detection is not None and detection.create_response is not False
        self._enter(ended, mark_ms, now_ms, wants_reply=wants_reply)

    def _enter(self, ended: TurnEnded, mark_ms: Ms, now_ms: Ms, *, wants_reply: bool) -> None:
        """The turn becomes an item and gets its reply; its words are told when that is under way, or after it."""
        item_id = self._item_id or ItemId(self._common.names.next("item"))
        self._item_id = None
        text = "" if self._errands is not None else self._words(ended.audio)
        self._teller.committed(item_id, self._history.append(CallerSaid(item_id, text, self._replies.is_held)))
        answered_ms = self._replies.turn_ended(now_ms, mark_ms, wants_reply=wants_reply)
        seconds = len(ended.audio) / RATE_HZ
        if self._errands is not None:
            self._errands.hear(item_id, ended.audio, seconds)
            return
        if not self._config.transcribes:
            return
        tell = partial(self._tell_words, item_id, text, seconds)
        rule = self._settings
        if wants_reply and self._config.modality == "text" and self._replies.is_open:
            self._replies.written.when_written(tell)
        elif self._common.rng.random() < rule.transcript_last_rate:
            self._replies.when_done(self._common.rng.randint(*rule.transcript_last_ms), tell)
        else:
            self._agenda.at(answered_ms + self._common.rng.randint(*rule.transcript_after_ms), tell)

    def take_words(self, item_id: ItemId, text: str, now_ms: Ms) -> None:
        """The words of a turn are there, and told at once."""
        assert self._errands is not None
        seconds = self._errands.heard(item_id)
        self._history.put_words(item_id, text)
        if self._config.transcribes:
            self._tell_words(item_id, text, seconds, now_ms)

    def _await(self, heard_ms: Ms) -> None:
        """A reply will have been heard at this instant: if nothing follows for long enough, ask the caller again."""
        idle_ms = self._config.settings.idle_ms
        if idle_ms:
            self._agenda.at(heard_ms + idle_ms, partial(self._time_out, self._replies.count, len(self._history.items)))

    def _time_out(self, replies: int, items: int, now_ms: Ms) -> None:
        """Take the silence for a turn of the caller, and answer it."""
        if self.caller_speaks or replies != self._replies.count or items != len(self._history.items):
            return
        item_id = ItemId(self._common.names.next("item"))
        end_ms = self.audio_ms
        start_ms = max(0, end_ms - self._config.settings.idle_ms)
        self._teller.tell(
            InputAudioBufferTimeoutTriggered(item_id=item_id, audio_start_ms=start_ms, audio_end_ms=end_ms)
        )
        self._teller.committed(item_id, self._history.append(CallerSaid(item_id, "")))
        self._replies.turn_ended(now_ms, now_ms, wants_reply=True)

    def _words(self, audio: Pcm) -> str:
        """What was said, as one sentence; empty where nothing known was."""
        heard = self._ear.listen(audio, RATE_HZ)
        said = (word.text for word in heard if word.kind != "music" and not word.text.startswith("["))
        text = " ".join(said).rstrip(".,;:!")
        if not text:
            return MUSIC if any(word.kind == "music" for word in heard) else ""
        return text[0].upper() + text[1:] + ("" if text.endswith("?") else ".")

    def _tell_words(self, item_id: ItemId, text: str, seconds: float, _now_ms: Ms) -> None:
        if self._settings.has(Habit.WRITES_ALONG) and text:
            self._teller.tell(ConversationItemInputAudioTranscriptionDelta(item_id=item_id, delta=text))
        usage = TranscriptionUsage(type="duration", seconds=round(seconds, 3))
        self._teller.tell(
            ConversationItemInputAudioTranscriptionCompleted(item_id=item_id, transcript=text, usage=usage)
        )
