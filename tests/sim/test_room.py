"""What a room makes of a caller's voice, from samples alone."""

import random
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.audio.levels import level_dbfs, peak
from callwright.audio.resample import resample
from callwright.errors import UsageError
from callwright.sim.ear import Ear
from callwright.sim.room import BEDS, DRY, ROOMS, Noise, Room, RoomSettings, room_lines
from callwright.sim.room.beds import bed_lines
from callwright.sim.room.convolve import Convolver
from callwright.sim.room.responses import load_response
from callwright.sim.speech import RATE_HZ, Speech

RATES = (8_000, 16_000, 24_000)
WET = [name for name in ROOMS if name != DRY]


def frame_of(rate_hz):
    return rate_hz // 50


def voice(count, seed=1, loudness=3000):
    return np.random.default_rng(seed).normal(0, loudness, count).clip(-32768, 32767).astype(np.int16)


def heard(what, rate_hz, caller, played, seed=1):
    """The microphone's samples of a whole stretch."""
    room, frame = Room(what, rate_hz, random.Random(seed)), frame_of(rate_hz)
    frames = zip(caller.reshape(-1, frame), played.reshape(-1, frame), strict=True)
    return np.concatenate([room.apply(said, out) for said, out in frames])


def silence(rate_hz, seconds=1):
    return np.zeros(rate_hz * seconds, np.int16)


@settings(max_examples=30)
@given(st.integers(1, 90), st.integers(1, 40), st.integers(1, 12), st.integers(0, 10_000))
def test_a_stream_in_frames_is_convolved_as_a_whole(length, frame, frames, seed):
    rng = np.random.default_rng(seed)
    response, sound = rng.normal(size=length), rng.normal(size=frame * frames)
    convolver = Convolver(response, frame)
    out = np.concatenate([convolver.process(part) for part in sound.reshape(frames, frame)])
    assert out == pytest.approx(np.convolve(sound, response)[: len(sound)], abs=1e-9)


def test_a_convolver_is_still_once_everything_has_rung_out():
    convolver = Convolver(np.ones(25), 10)
    convolver.process(np.ones(10))
    tail = []
    while not convolver.is_still:
        tail.append(convolver.process(np.zeros(10)))
    assert np.concatenate(tail)[:24].any()
    assert not convolver.process(np.zeros(10)).any()


@pytest.mark.parametrize("rate_hz", RATES)
def test_a_dry_room_without_echo_changes_no_sample(rate_hz):
    said = voice(rate_hz)
    assert (heard(RoomSettings(), rate_hz, said, voice(rate_hz, 2)) == said).all()


def test_silence_stays_the_very_same_frame():
    """The line knows silence by the object, and looks no further."""
    room, still = Room(RoomSettings("kitchen", echo=0.3), 24_000, random.Random(1)), np.zeros(480, np.int16)
    assert room.apply(still, still) is still
    room.apply(voice(480), still)
    rung = [room.apply(still, still) is still for _ in range(20)]
    assert not rung[0]
    assert rung[-1]


@pytest.mark.parametrize("rate_hz", RATES)
@pytest.mark.parametrize("echo", [0.5, 0.3, 0.15, 0.05])
@pytest.mark.parametrize("delay_ms", [0, 40, 215])
def test_an_echo_is_what_was_played_later_and_softer(rate_hz, echo, delay_ms):
    played, late = voice(rate_hz), delay_ms * rate_hz // 1000
    mic = heard(RoomSettings(echo=echo, echo_delay_ms=delay_ms), rate_hz, silence(rate_hz), played)
    assert not mic[:late].any()
    assert np.abs(mic[late:] - played[: rate_hz - late] * echo).max() <= 0.5


@pytest.mark.parametrize("name", WET)
@pytest.mark.parametrize("rate_hz", RATES)
def test_a_room_changes_the_sound_and_not_the_level(name, rate_hz):
    """Gains mean the same in every room, and a response is no longer than 300 ms."""
    said = voice(rate_hz)
    mic = heard(RoomSettings(name, echo=1.0), rate_hz, said, silence(rate_hz))
    assert abs(level_dbfs(mic) - level_dbfs(said)) <= 1
    assert (mic != said).any()
    assert all(len(way) <= 0.3 * rate_hz + 1 for way in load_response(name, rate_hz))


def test_rooms_ring_for_as_long_as_they_are_large_and_hard():
    """Energy behind the first 50 ms: a car is the driest, a kitchen the wettest."""
    late = [float((load_response(name, 24_000).mouth[1200:] ** 2).sum()) for name in ("car", "office", "kitchen")]
    assert all(10 * drier < wetter for drier, wetter in pairwise([late[0], late[2]]))
    assert late[0] < late[1] < late[2]


@pytest.mark.parametrize("name", BEDS)
@pytest.mark.parametrize("rate_hz", [8_000, 24_000])
def test_a_bed_lies_at_its_level(name, rate_hz):
    mic = heard(RoomSettings(noise=Noise(name, -40)), rate_hz, silence(rate_hz, 20), silence(rate_hz, 20))
    loud = [level_dbfs(part) for part in mic.reshape(-1, rate_hz // 5)]
    assert -44 <= max(loud) <= -33
    assert (min(loud) < -90) is (BEDS[name].pause_ms > 200)


def test_the_same_seed_gives_the_same_samples_and_another_seed_another_place_in_the_bed():
    noisy = RoomSettings("office", echo=0.3, noise=Noise("babble", -45))
    said, played = voice(24_000), voice(24_000, 2)
    first, again, other = (heard(noisy, 24_000, said, played, seed) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_what_is_too_loud_saturates():
    mic = heard(RoomSettings(echo=1.0, level_db=12), 8_000, voice(8_000, 1, 12_000), voice(8_000, 2, 12_000))
    assert peak(mic) == 32768


def test_the_level_says_how_loud_the_caller_is():
    said = voice(8_000)
    assert level_dbfs(heard(RoomSettings(level_db=-20), 8_000, said, silence(8_000))) == level_dbfs(said) - 20


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: RoomSettings("kitchn"), 'expected a room (one of dry, .*); got "kitchn"; did you mean'),
        (lambda: RoomSettings(echo=1.5), "expected an echo from 0 to 1 of what is played; got 1.5"),
        (lambda: RoomSettings(echo_delay_ms=-1), "expected an echo delay from 0 to 2000 ms; got -1 ms"),
        (lambda: Noise.parse("news"), 'expected BED:LEVEL in dBFS, such as news:-35; got "news"'),
        (lambda: Noise.parse("newt:-35"), 'expected a bed (one of news, .*); got "newt"; did you mean'),
        (lambda: Noise.parse("news:-5"), "expected a level from -90 to -10 dBFS; got -5"),
    ],
)
def test_what_cannot_be_is_told_with_what_could(make, told):
    with pytest.raises(UsageError, match=told.replace("(", r"\(").replace(")", r"\)")):
        make()


def test_a_noise_is_written_as_it_is_read():
    assert str(Noise.parse("babble:-42")) == "babble:-42"


@pytest.mark.parametrize("name", BEDS)
def test_the_ear_tells_a_bed_by_its_samples(name):
    """Its kind is found wherever it is cut into, and softly as well."""
    (line, *_), ear = bed_lines(name), Ear(room_lines().values())
    for at_ms in range(0, line.ms - 720, 1500) or (0,):
        stretch = (line.pcm[at_ms * 16 :][: 720 * 16] * 0.1).astype(np.int16)
        assert ear.kind_of(stretch, RATE_HZ) == line.kind


@pytest.mark.parametrize("name", WET)
def test_words_are_heard_once_however_long_they_ring(name):
    """Reverberation repeats a line, softer; the ear takes that for the same words. A car's loudspeaker lies far off."""
    line = Speech.load(files("callwright.apps.hotel") / "speech")["check-in-time"]
    said = resample(line.pcm, RATE_HZ, 24_000)
    said = np.concatenate((said, np.zeros(-len(said) % 480, np.int16)))
    both = (said, np.zeros_like(said)) if name == "car" else (np.zeros_like(said), said)
    mic = heard(RoomSettings(name, echo=0.3), 24_000, *both)
    words = [word.text for word in Ear([line]).listen(resample(mic, 24_000, RATE_HZ), RATE_HZ)]
    assert words == [word.text for word in line.words]
