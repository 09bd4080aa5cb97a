"""WAV files hold what was put into them."""

from __future__ import annotations

import io
import wave

import numpy as np
import pytest

from callwright.audio.encodings import DECODE, ENCODE
from callwright.audio.formats import Encoding
from callwright.audio.wav import wav_file

LEFT = np.arange(-400, 400, 8, dtype=np.int16)
RIGHT = LEFT[::-1] * 40


def test_the_standard_library_reads_linear_channels_back() -> None:
    with wave.open(io.BytesIO(wav_file(8000, LEFT, RIGHT))) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (2, 2, 8000)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)
    assert (samples == np.stack((LEFT, RIGHT), axis=1)).all()


@pytest.mark.parametrize(("encoding", "tag"), [(Encoding.PCMU, 7), (Encoding.PCMA, 6)])
def test_compressed_samples_stand_behind_a_header_that_names_them(encoding: Encoding, tag: int) -> None:
    file = wav_file(8000, LEFT[:3], encoding=encoding)
    assert int.from_bytes(file[4:8], "little") == len(file) - 8
    assert file[20:22] == tag.to_bytes(2, "little")
    name, length, rest = file[-12:-8], int.from_bytes(file[-8:-4], "little"), file[-4:]
    assert (name, length, rest[3:]) == (b"data", 3, b"\0")  # three bytes, and one that makes them even
    assert (DECODE[encoding](rest[:3]) == DECODE[encoding](ENCODE[encoding](LEFT[:3]))).all()
