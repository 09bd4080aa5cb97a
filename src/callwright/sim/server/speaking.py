"""A reply's clips as one piece of audio, and when each piece of it leaves the server. Pure; decides nothing.

```
first audio   ├──┐ 200 ms chunks: chunk k leaves at (200 k + 100 - lead) / pace, at once while that lies in the past
call          46 ms after the first audio, or 120 ms before it; after the last chunk where the model speaks by itself
done          436 ms after the last chunk
```

At pace 1 what has left is ahead of a player that starts with the first chunk by the lead, give or take half a chunk.
In a stall nothing leaves: what was due meanwhile leaves at its end, all at once, and the rest when it was due anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from callwright.audio.encodings import ENCODE
from callwright.audio.formats import PCM16_24K, AudioFormat
from callwright.audio.resample import resample
from callwright.ids import Ms
from callwright.sim.speech import PER_MS, RATE_HZ, Pcm, Recording, Word

if TYPE_CHECKING:
    import random

    from callwright.sim.models import Clip
    from callwright.sim.server.settings import ServerSettings


@dataclass(frozen=True, slots=True, eq=False)
class Utterance:
    """A rendered reply: mono ``audio`` in its ``format``; word times count from its start."""

    clips: tuple[Clip, ...]
    words: tuple[Word, ...]
    audio: bytes
    format: AudioFormat = PCM16_24K

    @property
    def text(self) -> str:
        """The whole reply as written."""
        return " ".join(word.text for word in self.words)

    @property
    def audio_ms(self) -> Ms:
        """Length of the audio; a started millisecond counts."""
        return -(-len(self.audio) // self.format.bytes_per_ms)

    @staticmethod
    def of(pcm: Pcm, words: tuple[Word, ...], audio_format: AudioFormat, before: Utterance | None = None) -> Utterance:
        """A piece of a reply, behind what there was ``before``; it is filled up to a whole millisecond."""
        samples = resample(np.pad(pcm, (0, -len(pcm) % PER_MS)), RATE_HZ, audio_format.rate_hz)
        audio = ENCODE[audio_format.encoding](samples)
        if before is None:
            return Utterance((), words, audio, audio_format)
        shift_ms = before.audio_ms
        later = [Word(word.text, word.start_ms + shift_ms, word.end_ms + shift_ms) for word in words]
        return Utterance((), (*before.words, *later), before.audio + audio, audio_format)

    def between(self, from_ms: Ms, to_ms: Ms) -> bytes:
        """A piece of the audio."""
        return self.audio[self.format.bytes_for_ms(from_ms) : self.format.bytes_for_ms(to_ms)]


def render(
    clips: Sequence[Clip], speech: Mapping[str, Recording], pause_ms: Ms, audio_format: AudioFormat = PCM16_24K
) -> Utterance:
    """The clips one after the other, with a pause after each line that was spoken to its end."""
    pieces: list[Pcm] = []
    words: list[Word] = []
    at = 0
    for number, clip in enumerate(clips):
        line = speech[clip.line_id]
        end_word = len(line.words) if clip.end_word is None else clip.end_word
        shift_ms = (at - line.cut_at(clip.first_word)) // PER_MS
        words += [
            Word(word.text, word.start_ms + shift_ms, word.end_ms + shift_ms)
            for word in line.words[clip.first_word : end_word]
        ]
        pieces.append(line.slice(clip.first_word, end_word))
        if end_word == len(line.words) and number + 1 < len(clips):
            pieces.append(np.zeros(pause_ms * PER_MS, np.int16))
        at = sum(map(len, pieces))
    samples = resample(np.concatenate(pieces), RATE_HZ, audio_format.rate_hz)
    return Utterance(tuple(clips), tuple(words), ENCODE[audio_format.encoding](samples), audio_format)


class Step(Enum):
    """What a response does at an instant."""

    CALL = auto()
    """It issues its tool call."""
    BEGIN = auto()
    """Its spoken item begins."""
    CHUNK = auto()
    """The next piece of audio leaves."""
    END = auto()
    """No more audio will come."""
    DONE = auto()
    """It is completed."""


class Timed(NamedTuple):
    """A step and its instant."""

    at_ms: Ms
    step: Step


def timeline(
    first_ms: Ms, audio_ms: Ms, *, with_call: bool, settings: ServerSettings, rng: random.Random
) -> list[Timed]:
    """All steps of a response whose first audio leaves at ``first_ms``, in order; ``audio_ms`` is 0 without speech."""
    if not audio_ms:
        return [*([Timed(first_ms, Step.CALL)] if with_call else []), Timed(first_ms, Step.DONE)]
    chunk = settings.chunk_ms
    leaves = [
        first_ms + int(max(0, at + chunk // 2 - settings.lead_ms) / settings.pace) for at in range(0, audio_ms, chunk)
    ]
    stall = _stall(leaves, settings, rng)
    leaves = [stall.pass_at(at_ms) for at_ms in leaves]
    done_ms = leaves[-1] + rng.randint(*settings.done_after_ms)
    steps = [Timed(first_ms, Step.BEGIN), *(Timed(at_ms, Step.CHUNK) for at_ms in leaves), Timed(leaves[-1], Step.END)]
    if with_call:
        call_ms = _call_beside(first_ms, settings, rng) if settings.speaks.voices_arguments else leaves[-1]
        call_ms = stall.pass_at(call_ms)
        steps.append(Timed(call_ms, Step.CALL))
        done_ms = max(done_ms, call_ms)
    return [*sorted(steps, key=lambda timed: timed.at_ms), Timed(done_ms, Step.DONE)]


@dataclass(slots=True)
class Growth:
    """When the pieces of a reply leave that is still being made, as `timeline` has it for one that is there."""

    first_ms: Ms = 0
    """When the first would have left, had it never run dry."""

    def leaves(self, from_ms: Ms, to_ms: Ms, now_ms: Ms, *, is_dry: bool, settings: ServerSettings) -> list[Ms]:
        """The instants for the audio between these two, which is all that is to leave; ``is_dry``: none was."""
        chunk, lead = settings.chunk_ms, settings.lead_ms
        dues = [int(max(0, at + chunk // 2 - lead) / settings.pace) for at in range(from_ms, to_ms, chunk)]
        if is_dry and dues:
            self.first_ms = max(self.first_ms, now_ms - dues[0])
        return [self.first_ms + due_ms for due_ms in dues]


def written_timeline(
    first_ms: Ms, words: int, *, with_call: bool, settings: ServerSettings, rng: random.Random
) -> list[Timed]:
    """All steps of a response that is written from ``first_ms`` on, word by word; the call stands behind them."""
    leaves = [first_ms + at * settings.text_word_ms for at in range(words)]
    end_ms = leaves[-1] if leaves else first_ms
    steps = [Timed(first_ms, Step.BEGIN), *(Timed(at_ms, Step.CHUNK) for at_ms in leaves), Timed(end_ms, Step.END)]
    if with_call:
        steps.append(Timed(end_ms, Step.CALL))
    return [*steps, Timed(end_ms + rng.randint(*settings.text_done_ms), Step.DONE)]


class _Stall(NamedTuple):
    """Nothing leaves from ``from_ms`` up to ``to_ms``."""

    from_ms: Ms
    to_ms: Ms

    def pass_at(self, due_ms: Ms) -> Ms:
        """When something leaves that is due at this instant."""
        return self.to_ms if self.from_ms <= due_ms < self.to_ms else due_ms


def _stall(leaves: Sequence[Ms], settings: ServerSettings, rng: random.Random) -> _Stall:
    """The stall of a reply whose chunks are due at these instants; of no length where there is none."""
    held = -(-settings.stall_at_ms // settings.chunk_ms)
    if not 0 < held < len(leaves):
        return _Stall(0, 0)
    return _Stall(leaves[held], leaves[held] + rng.randint(*settings.stall_ms))


def _call_beside(first_ms: Ms, settings: ServerSettings, rng: random.Random) -> Ms:
    """When a call is issued whose argument is spoken from ``first_ms`` on."""
    is_first = rng.random() < settings.call_first_rate
    return first_ms + (-settings.call_before_audio_ms if is_first else settings.call_after_audio_ms)
