"""Where the caller's turns begin and end. Owns the turn rule; knows neither script nor words nor the client.

```
            voice                      judged            told
caller  ────┬──────────────────────────┬─────────────────┬─────────────────────┐last word
            onset                      kind decides      speech_started        │── turn end ──┬ mark
state   QUIET│ PROPOSED                │ TURN                                                 │ QUIET
```

While nothing is audible, a little voice makes a turn, and music rarely does. Over a reply it takes longer, and then the
kind of the sound decides: a murmur is ignored unless it goes on, a bed (a television) waits until the reply is over and
is then a turn. Music that is ignored is followed: what else comes is judged as what comes out of silence.
The agent's own voice coming back counts as the caller's, as on the live service. All times are on the audio clock.

A dialect that does not confirm goes by voice alone, over a reply as in silence. A session that ends turns by hand has
none of this: audio is kept until the client commits it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from callwright.ids import Ms
from callwright.sim.server.dialects import Habit
from callwright.sim.server.voice import FRAME_MS, Frame
from callwright.sim.speech import PER_MS, RATE_HZ, Pcm

if TYPE_CHECKING:
    import random

    from callwright.audio.formats import AudioFormat
    from callwright.sim.server.common import Follows, Hearing, Track
    from callwright.sim.server.settings import ServerSettings

SMALLEST_COMMIT_MS: Ms = 100
"""A client cannot end a turn by hand before so much audio has come."""


@dataclass(frozen=True, slots=True)
class SpeechConfirmed:
    """The caller has begun a turn; the client is to be told ``told_in_ms`` from now."""

    onset_ms: Ms
    audio_start_ms: Ms
    told_in_ms: Ms


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn is over, and has been for ``since_mark_ms``; ``audio`` is all of it (int16, mono, 16 kHz).

    A turn that had to wait counts as over from when it no longer had to.
    """

    audio_start_ms: Ms
    audio_end_ms: Ms
    since_mark_ms: Ms
    audio: Pcm


TurnEvent: TypeAlias = SpeechConfirmed | TurnEnded


class _Phase(Enum):
    QUIET = auto()
    """No voice."""
    PROPOSED = auto()
    """Voice that may become a turn."""
    WAITING = auto()
    """Judged to be a turn that begins only when the reply is over."""
    IGNORED = auto()
    """Judged to be no turn; judged again if it goes on, for somebody else may have begun."""
    TURN = auto()
    """The caller's turn."""
    BY_HAND = auto()
    """The client decides when a turn ends."""


class _Verdict(Enum):
    TURN = auto()
    WAIT = auto()
    IGNORE = auto()
    UNLESS_LONG = auto()
    """Ignored up to ``murmur_ms``, then a turn."""
    RARELY = auto()
    """Behind a turn that was answered aloud, a turn at ``music_turn_rate``; else ignored for as long as it goes on."""


_RULE: dict[str | None, tuple[_Verdict, _Verdict]] = {
    # kind:    over a reply,     while nothing is audible
    "caller": (_Verdict.TURN, _Verdict.TURN),
    "agent": (_Verdict.TURN, _Verdict.TURN),
    "murmur": (_Verdict.UNLESS_LONG, _Verdict.TURN),
    "bed": (_Verdict.WAIT, _Verdict.TURN),
    "music": (_Verdict.IGNORE, _Verdict.RARELY),
    None: (_Verdict.TURN, _Verdict.TURN),
}


class Listener:
    """Hears the caller's audio and says when a turn began and ended."""

    def __init__(self, ear: Hearing, track: Track, settings: ServerSettings, rng: random.Random) -> None:
        self.track = track
        self._ear = ear
        self._settings = settings
        self._rng = rng
        self._phase = _Phase.QUIET
        self._kept: list[Frame] = []
        self._began_ms: Ms = 0  # where the sound that is judged begins
        self._onset_ms: Ms = 0
        self._judged_ms: Ms = 0  # where the stretch that is judged begins
        self._voice_ms: Ms = 0  # voice in that stretch
        self._last_voice_ms: Ms = 0
        self._asked: tuple[Ms, bool] = (-1, True)  # the pause that was last judged, and whether the turn sounded over
        self._music: Follows | None = None  # what is ignored for as long as it goes on
        self._may_be_turn = True  # whether no music was judged yet since the last turn
        self._is_answered = False

    def set_rule(self, settings: ServerSettings, *, by_hand: bool) -> None:
        """Go by these settings from here on; ``by_hand`` leaves the ends of turns to the client."""
        self._settings = settings
        self.track.threshold = settings.voice_threshold
        if by_hand is not (self._phase is _Phase.BY_HAND):
            self._phase = _Phase.BY_HAND if by_hand else _Phase.QUIET
            self._onset_ms = 0

    def set_format(self, audio_format: AudioFormat) -> None:
        """Read what follows in this format."""
        self.track.set_format(audio_format)

    def can_skip(self) -> bool:
        """Whether digital silence that comes now would change nothing but the clock."""
        return self._phase is _Phase.QUIET and self.track.can_skip()

    def skip(self, nbytes: int) -> None:
        """Let the clock go on by so many bytes of digital silence; only when ``can_skip``."""
        self.track.skip(nbytes)
        self._kept.clear()

    def hear(self, audio: bytes, *, over_reply: bool, answered: bool = False) -> list[TurnEvent]:
        """Hear audio in the set format.

        ``over_reply`` says whether a reply is believed to be audible now, ``answered`` whether one was since the last
        turn ended.
        """
        if self.can_skip() and self.track.is_silent(audio):
            self.skip(len(audio))
            return []
        confirms = self._settings.has(Habit.CONFIRMS_BARGE_IN)
        over_reply = over_reply and confirms
        self._is_answered = answered or not confirms
        events: list[TurnEvent] = []
        for frame in self.track.take(audio):
            self._keep(frame)
            event = self._step(frame, over_reply)
            if event is not None:
                events.append(event)
        return events

    def commit(self) -> TurnEnded | None:
        """End the turn by hand; None where too little audio has come."""
        if self._phase in (_Phase.QUIET, _Phase.IGNORED) or len(self._kept) * FRAME_MS < SMALLEST_COMMIT_MS:
            return None
        by_hand = self._phase is _Phase.BY_HAND
        ended = self._end(self._kept[-1].end_ms, self._kept[-1].end_ms)
        if by_hand:
            self._phase = _Phase.BY_HAND
        self.track.reset()
        return ended

    def clear(self) -> None:
        """Forget the audio since the last turn."""
        self._kept.clear()
        if self._phase is not _Phase.BY_HAND:
            self._phase = _Phase.QUIET
        self.track.reset()

    def _keep(self, frame: Frame) -> None:
        """Hold the frame: of a turn as much as one may have, else what a turn may turn out to begin with."""
        rule = self._settings
        if self._phase in (_Phase.QUIET, _Phase.IGNORED):
            self._kept = self._kept[-(rule.padding_ms + rule.barge_in_judged_ms) // FRAME_MS :]
        if len(self._kept) * FRAME_MS < rule.longest_turn_ms:
            self._kept.append(frame)

    def _step(self, frame: Frame, over_reply: bool) -> TurnEvent | None:
        if frame.is_voice and not self._goes_on(frame):
            if self._phase is _Phase.QUIET:
                self._began_ms = frame.voice_from_ms
                self._onset_ms = max(0, frame.voice_from_ms - self._settings.voice_onset_ms)
                self._attempt(frame.voice_from_ms, _Phase.PROPOSED)
            elif self._phase is _Phase.WAITING and self._is_gap(frame.voice_from_ms):
                self._attempt(frame.voice_from_ms, _Phase.WAITING)
            self._voice_ms += frame.voice_to_ms - frame.voice_from_ms
            self._last_voice_ms = frame.voice_to_ms
        match self._phase:
            case _Phase.PROPOSED | _Phase.IGNORED if self._is_gap(frame.end_ms):
                self._phase = _Phase.QUIET
            case _Phase.WAITING if not over_reply:
                return self._confirm(frame.end_ms, (0, 0))
            case _Phase.PROPOSED | _Phase.WAITING | _Phase.IGNORED:
                return self._judge(frame.end_ms, over_reply)
            case _Phase.TURN:
                mark_ms = self._last_voice_ms - self._settings.voice_tail_ms + self._settings.turn_end_ms
                if frame.end_ms >= mark_ms and not self._sounds_over():
                    mark_ms += max(0, self._settings.unfinished_ms - self._settings.turn_end_ms)
                return self._end(mark_ms, frame.end_ms) if frame.end_ms >= mark_ms else None
        return None

    def _goes_on(self, frame: Frame) -> bool:
        """Whether this voice is the music that is ignored; anything else is judged as what comes out of silence."""
        if self._music is None or self._phase is not _Phase.IGNORED:
            return False
        if self._music.goes_on(frame.samples):
            self._last_voice_ms = frame.voice_to_ms
            return True
        self._phase = _Phase.QUIET
        return False

    def _sounds_over(self) -> bool:
        """Whether the turn so far ends as a sentence does; asked once a pause, where the settings make a difference."""
        if self._settings.unfinished_ms <= self._settings.turn_end_ms:
            return True
        if self._asked[0] != self._last_voice_ms:
            heard = self._ear.listen(self._since(self._audio_start_ms), RATE_HZ)
            self._asked = (self._last_voice_ms, bool(heard) and heard[-1].text.endswith((".", "!", "?")))
        return self._asked[1]

    def _is_gap(self, now_ms: Ms) -> bool:
        return now_ms - self._last_voice_ms > self._settings.voice_gap_ms

    def _attempt(self, from_ms: Ms, phase: _Phase) -> None:
        """Judge anew what is heard from here on."""
        self._phase = phase
        self._judged_ms = from_ms
        self._voice_ms = 0

    def _judge(self, now_ms: Ms, over_reply: bool) -> SpeechConfirmed | None:
        """Decide once enough has been heard: over a reply by time and kind, in silence by voice alone."""
        rule = self._settings
        waited_ms = now_ms - self._judged_ms
        heard_ms, needed_ms = (
            (waited_ms, rule.barge_in_judged_ms) if over_reply else (self._voice_ms, rule.start_judged_ms)
        )
        if heard_ms < needed_ms or self._voice_ms < rule.voice_share * waited_ms:
            return None
        match self._verdict(now_ms, over_reply):
            case _Verdict.TURN:
                return self._confirm(now_ms, rule.barge_in_told_ms if over_reply else rule.start_told_ms)
            case _Verdict.WAIT:
                self._attempt(now_ms, _Phase.WAITING)
            case _Verdict.IGNORE:
                self._onset_ms = now_ms
                self._attempt(now_ms, _Phase.IGNORED)
        return None

    def _verdict(self, now_ms: Ms, over_reply: bool) -> _Verdict:
        """What the kind of the sound makes of it: a turn, one that waits, or none."""
        heard = self._since(self._judged_ms)
        self._music = self._ear.music(heard)
        kind = "music" if self._music else self._ear.kind_of(heard, RATE_HZ)
        verdict = _RULE[kind][0 if over_reply else 1]
        match verdict:
            case _Verdict.UNLESS_LONG:
                return _Verdict.TURN if now_ms - self._began_ms >= self._settings.murmur_ms else _Verdict.IGNORE
            case _Verdict.RARELY:
                return _Verdict.TURN if self._takes_music() else _Verdict.IGNORE
        return verdict

    def _takes_music(self) -> bool:
        """Whether music that begins now is taken for a turn; it is decided once behind each turn that was answered."""
        if self._phase is _Phase.IGNORED or not (self._may_be_turn and self._is_answered):
            return False
        self._may_be_turn = False
        return self._rng.random() < self._settings.music_turn_rate

    def _confirm(self, now_ms: Ms, told_ms: tuple[Ms, Ms]) -> SpeechConfirmed:
        self._phase = _Phase.TURN
        told_at_ms = self._onset_ms + self._rng.randint(*told_ms)
        return SpeechConfirmed(self._onset_ms, self._audio_start_ms, max(0, told_at_ms - now_ms))

    def _end(self, mark_ms: Ms, now_ms: Ms) -> TurnEnded:
        since_mark_ms = min(now_ms - mark_ms, FRAME_MS)
        ended = TurnEnded(self._audio_start_ms, mark_ms, since_mark_ms, self._since(self._audio_start_ms))
        self._kept.clear()
        self._phase = _Phase.QUIET
        self._may_be_turn = True
        return ended

    @property
    def _audio_start_ms(self) -> Ms:
        return max(0, self._onset_ms - self._settings.padding_ms)

    def _since(self, start_ms: Ms) -> Pcm:
        """The audio kept from ``start_ms`` on."""
        samples: Pcm = np.concatenate([frame.samples for frame in self._kept])
        return samples[max(0, start_ms - (self._kept[0].end_ms - FRAME_MS)) * PER_MS :]
