"""Speech as numbers: what stands for samples in a call without them. Owns the code of the caller's frames.

```
line "ask-pool"    |  Is | there |  a  | pool |
frame (20 ms)       4000  4001 .. 4012    4020      one value for all samples of a frame: line and place in it
between words             0  0         0  0  0
```

A frame is as loud as speech and says where it belongs, so it can be measured like any other, and read without a search.
The track hears voice as late as the real detector is at a first and a last word, which the turn rule takes off again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from callwright.audio.formats import FRAME_MS, PCM16_24K, AudioFormat
from callwright.errors import AudioFormatError, UsageError
from callwright.ids import Ms
from callwright.sim.ear import HeardWord
from callwright.sim.server.speaking import Utterance, render
from callwright.sim.server.voice import FRAME_MS as HEARD_MS
from callwright.sim.server.voice import Frame
from callwright.sim.speech import PER_MS, Kind, Pcm, Recording, Word

if TYPE_CHECKING:
    from callwright.sim.models import Clip
    from callwright.sim.server.settings import ServerSettings

FORMAT = PCM16_24K
"""The format of a call without samples, both ways: the code of a frame must come through as it is."""
SILENCE = FORMAT.silence(FRAME_MS)

_FIRST_CODE = 4_000
"""The quietest frame of speech, -18 dBFS."""
_LAST_CODE = 32_767
_UNIT_MS: Ms = 4
"""What divides both the frames that are sent and those that are heard."""
_UNIT = _UNIT_MS * PER_MS
_UNITS_SENT = FRAME_MS // _UNIT_MS
_UNITS_HEARD = HEARD_MS // _UNIT_MS
_SENT_BYTES = len(SILENCE)


def spoken_line(line_id: str, text: str, ms: Ms, kind: Kind = "caller") -> Recording:
    """A line of so many words that lasts ``ms``, without a pause: its samples are silence. Raises UsageError."""
    words = text.split()
    if not words or ms < len(words):
        raise UsageError(f"line {line_id}: expected words, and a millisecond or more for each; got {text!r}, {ms} ms")
    ends = [ms * number // len(words) for number in range(len(words) + 1)]
    timed = tuple(Word(word, ends[at], ends[at + 1]) for at, word in enumerate(words))
    samples = np.zeros(ms * PER_MS, np.int16)
    samples.flags.writeable = False
    return Recording(line_id, "told", kind, text, samples, timed)


class _Place(NamedTuple):
    """What a code names."""

    line: Recording
    frame: int


class ToldSpeech(Mapping[str, Recording]):
    """The lines of a world without samples, by id. Make one for all of its calls: it keeps what they have in common.

    Recorded lines will do, too: of the caller's only the words' times are used. Raises UsageError for more speech of
    callers than there are codes (nine minutes).
    """

    def __init__(self, lines: Sequence[Recording]) -> None:
        self._lines = {line.id: line for line in lines}
        self._starts: list[int] = []
        self._coded: list[Recording] = []
        self._first: dict[str, int] = {}
        self._rendered: dict[tuple[tuple[Clip, ...], Ms, AudioFormat], Utterance] = {}
        code = _FIRST_CODE
        for line in lines:
            if line.kind == "agent":
                continue
            self._first[line.id] = code
            self._starts.append(code)
            self._coded.append(line)
            code += -(-line.ms // FRAME_MS)
        if code > _LAST_CODE:
            raise UsageError(f"the callers' lines last {(code - _FIRST_CODE) * FRAME_MS // 1000} s; 575 s can be told")

    def __getitem__(self, line_id: str) -> Recording:
        return self._lines[line_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def frames(self, line_id: str) -> list[bytes]:
        """The caller's frames of a line, in ``FORMAT``: silence where no word is."""
        return _frames(self._lines[line_id], self._first[line_id])

    def place(self, code: int) -> _Place:
        """What the code of a frame names."""
        at = bisect_right(self._starts, code) - 1
        return _Place(self._coded[at], code - self._starts[at])

    def render(
        self, clips: Sequence[Clip], speech: Mapping[str, Recording], pause_ms: Ms, audio_format: AudioFormat
    ) -> Utterance:
        """A reply's audio, made once for all calls."""
        key = (tuple(clips), pause_ms, audio_format)
        if key not in self._rendered:
            self._rendered[key] = render(clips, speech, pause_ms, audio_format)
        return self._rendered[key]


@cache
def _frames(line: Recording, first_code: int) -> list[bytes]:
    frames = []
    for at in range(-(-line.ms // FRAME_MS)):
        is_word = any(word.start_ms < (at + 1) * FRAME_MS and word.end_ms > at * FRAME_MS for word in line.words)
        code = (first_code + at).to_bytes(2, "little")
        frames.append(code * (len(SILENCE) // 2) if is_word else SILENCE)
    return frames


class ToldEar:
    """Reads codes where another ear recognises words."""

    def __init__(self, speech: ToldSpeech) -> None:
        self._speech = speech

    def kind_of(self, samples: Pcm, rate_hz: int) -> Kind | None:
        """The kind of the first line in these samples; None in silence."""
        codes = _codes(samples)
        return self._speech.place(codes[0]).line.kind if codes else None

    def music(self, samples: Pcm) -> None:
        """None: there is no sound that could be followed."""

    def listen(self, samples: Pcm, rate_hz: int, *, start_ms: Ms = 0) -> list[HeardWord]:
        """The words of which at least half is there, in the order of their lines; ``start_ms`` is the samples' own."""
        found: dict[str, tuple[Recording, dict[int, None]]] = {}
        for code in _codes(samples):
            line, frame = self._speech.place(code)
            found.setdefault(line.id, (line, {}))[1][frame] = None
        return [
            HeardWord(word.text, line.id, line.kind, start_ms, start_ms, 1.0)
            for line, frames in found.values()
            for word in line.words
            if _is_there(word, frames)
        ]


def _is_there(word: Word, frames: Mapping[int, None]) -> bool:
    wanted = range(word.start_ms // FRAME_MS, max(word.start_ms + 1, word.end_ms - 1) // FRAME_MS + 1)
    return 2 * sum(frame in frames for frame in wanted) >= len(wanted)


def _codes(samples: Pcm) -> list[int]:
    """The codes in order, each once."""
    units = samples[_UNIT // 2 :: _UNIT]
    codes = units[units >= _FIRST_CODE]
    return codes[np.flatnonzero(np.diff(codes, prepend=0))].tolist()  # type: ignore[no-any-return]


class ToldTrack:
    """The caller's bytes as frames of 32 ms, each of them voice or not, by their codes. Owns the audio clock.

    Stands where `VoiceTrack` does. Raises AudioFormatError for another format than ``FORMAT``.
    """

    def __init__(self, settings: ServerSettings, threshold: float, audio_format: AudioFormat) -> None:
        self.threshold = threshold
        """Of no consequence: all voice is loud."""
        self.first: Pcm = np.zeros(0, np.int16)
        """Not kept."""
        self._onset_ms, self._tail_ms = settings.voice_onset_ms, settings.voice_tail_ms
        self._taken_ms: Ms = 0  # in frames, or skipped
        self._units: list[int] = []  # codes that are in no frame yet, one for each 4 ms
        self._voice: tuple[Ms, Ms] = (0, 0)  # the latest stretch of voice
        self.set_format(audio_format)

    def set_format(self, audio_format: AudioFormat) -> None:
        """Check that codes come through."""
        if audio_format != FORMAT:
            raise AudioFormatError(f"a call without samples has {FORMAT} both ways, not {audio_format}")

    def reset(self) -> None:
        """Forget what was heard; of codes nothing lingers."""

    def is_silent(self, audio: bytes) -> bool:
        """Whether these bytes are digital silence."""
        return audio == SILENCE or not audio.strip(b"\0")

    def can_skip(self) -> bool:
        """Whether silence that comes now would change nothing but the clock."""
        return self._voice[1] <= self._taken_ms

    def skip(self, nbytes: int) -> None:
        """Let the clock go on by so many bytes of silence."""
        self._taken_ms += len(self._units) * _UNIT_MS + FORMAT.ms_of(nbytes)
        self._units.clear()

    @property
    def clock_ms(self) -> Ms:
        """How much audio has come, in whole frames."""
        return self._taken_ms

    def take(self, audio: bytes) -> list[Frame]:
        """The frames that these bytes, whole frames of 20 ms, complete."""
        units = self._units
        for at in range(0, len(audio), _SENT_BYTES):
            code = audio[at] | audio[at + 1] << 8
            if code:
                self._extend(self._taken_ms + len(units) * _UNIT_MS)
            units += (code,) * _UNITS_SENT
        frames = []
        while len(units) >= _UNITS_HEARD:
            frames.append(self._frame(tuple(units[:_UNITS_HEARD])))
            del units[:_UNITS_HEARD]
        return frames

    def _extend(self, at_ms: Ms) -> None:
        """Speech lies in the frame sent that begins here: voice is heard a little later, and longer."""
        began_ms, until_ms = self._voice
        from_ms = at_ms + self._onset_ms
        self._voice = (began_ms if from_ms <= until_ms else from_ms, at_ms + FRAME_MS + self._tail_ms)

    def _frame(self, codes: tuple[int, ...]) -> Frame:
        start_ms, end_ms = self._taken_ms, self._taken_ms + HEARD_MS
        self._taken_ms = end_ms
        from_ms, to_ms = max(start_ms, self._voice[0]), min(end_ms, self._voice[1])
        return Frame(_samples(codes), end_ms, from_ms, max(from_ms, to_ms))


@cache
def _samples(codes: tuple[int, ...]) -> Pcm:
    samples: Pcm = np.repeat(np.array(codes, np.int16), _UNIT)
    samples.flags.writeable = False
    return samples
