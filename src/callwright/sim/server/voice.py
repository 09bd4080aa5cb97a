"""The caller's bytes as frames of 32 ms at 16 kHz, each of them voice or not. Owns the audio clock.

The clock counts the samples that arrived, so a burst is heard like speech in real time. The detector scores windows of
16 ms; two of them make a frame. Stretches of digital silence may be skipped: the clock goes on, nothing else happens.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from earshot import Detector

from callwright.audio.formats import AudioFormat, Encoding
from callwright.audio.g711 import pcma_decode, pcmu_decode
from callwright.audio.resample import Pcm16Carry, Resampler
from callwright.ids import Ms
from callwright.sim.record import FIRST_AUDIO_MS
from callwright.sim.speech import PER_MS, RATE_HZ, Pcm

WINDOW = 256
FRAME = 2 * WINDOW
FRAME_MS: Ms = FRAME // PER_MS
_G711 = {Encoding.PCMU: pcmu_decode, Encoding.PCMA: pcma_decode}
_SILENT_BYTES = {Encoding.PCM16: b"\x00", Encoding.PCMU: b"\xff\x7f", Encoding.PCMA: b"\xd5\x55"}


class Frame(NamedTuple):
    """32 ms at 16 kHz. ``voice_from_ms`` and ``voice_to_ms`` bound its voice, and are equal where there is none."""

    samples: Pcm
    end_ms: Ms
    voice_from_ms: Ms
    voice_to_ms: Ms

    @property
    def is_voice(self) -> bool:
        """Whether any window of the frame was voice."""
        return self.voice_to_ms > self.voice_from_ms


class VoiceTrack:
    """Decodes, resamples and scores one caller's stream."""

    def __init__(self, threshold: float, audio_format: AudioFormat) -> None:
        self.threshold = threshold
        """Score from which a window is voice."""
        self.set_format(audio_format)
        self._detector = Detector()
        self._rest: Pcm = np.zeros(0, np.int16)
        self._taken = 0  # samples at 16 kHz that went into frames, or were skipped
        self._first: list[Pcm] = []
        self._first_left = FIRST_AUDIO_MS * PER_MS  # samples at 16 kHz that are still to be kept of the beginning
        self._is_flat = False  # everything that the resampler and the last frame hold is zero

    def set_format(self, audio_format: AudioFormat) -> None:
        """Read what follows in this format; the clock goes on."""
        self._format = audio_format
        self._resampler = Resampler(audio_format.rate_hz, RATE_HZ)
        self._carry = Pcm16Carry()

    def reset(self) -> None:
        """Let the detector forget what it heard: it would go on hearing the last word for a moment."""
        self._detector.reset()

    def is_silent(self, audio: bytes) -> bool:
        """Whether these bytes are digital silence."""
        return not audio.strip(_SILENT_BYTES[self._format.encoding])

    def can_skip(self) -> bool:
        """Whether silence that comes now would change nothing but the clock."""
        return self._is_flat

    def skip(self, nbytes: int) -> None:
        """Let the clock go on by so many bytes of silence."""
        skipped = self._format.samples_of(nbytes) * RATE_HZ // self._format.rate_hz
        self._taken += len(self._rest) + skipped
        self._rest = self._rest[:0]
        if self._first_left:
            self._keep(np.zeros(skipped, np.int16))

    @property
    def clock_ms(self) -> Ms:
        """How much audio has come, in whole frames."""
        return self._taken // PER_MS

    @property
    def first(self) -> Pcm:
        """The beginning of the stream as it was read, ``FIRST_AUDIO_MS`` at most."""
        return np.concatenate((np.zeros(0, np.int16), *self._first))

    def _keep(self, samples: Pcm) -> None:
        """Keep these samples of the beginning, as far as they belong to it."""
        self._first.append(samples[: self._first_left])
        self._first_left -= len(self._first[-1])

    def take(self, audio: bytes) -> list[Frame]:
        """The frames that these bytes complete."""
        decode = _G711.get(self._format.encoding, self._carry.take)
        read = self._resampler.process(decode(audio))
        if self._first_left:
            self._keep(read)
        samples = np.concatenate((self._rest, read))
        whole = len(samples) // FRAME * FRAME
        self._rest = samples[whole:]
        return [self._score(samples[at : at + FRAME]) for at in range(0, whole, FRAME)]

    def _score(self, samples: Pcm) -> Frame:
        first = self._detector.predict_i16(samples[:WINDOW]) >= self.threshold
        second = self._detector.predict_i16(samples[WINDOW:]) >= self.threshold
        start_ms = self._taken // PER_MS
        self._taken += FRAME
        self._is_flat = not (first or second or samples.any())
        middle_ms, end_ms = start_ms + FRAME_MS // 2, start_ms + FRAME_MS
        voice_from_ms = start_ms if first else middle_ms
        voice_to_ms = end_ms if second else middle_ms
        return Frame(samples, end_ms, voice_from_ms, voice_to_ms)
