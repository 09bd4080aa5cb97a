"""What a client is sent of a room, with and without its canceller."""

import importlib.util
import random

import numpy as np
import pytest

from callwright.audio.echo import OutputDevice
from callwright.audio.levels import level_dbfs
from callwright.audio.resample import resample
from callwright.errors import UsageError
from callwright.sim.room import Aec, Microphone, RoomSettings, room_lines
from callwright.sim.speech import RATE_HZ

STILL = np.zeros(480, np.int16)


def sent(settings, played, *, cancels, lag_frames=0):
    """What is sent while the caller says nothing and this is played, so many frames after it was handed over."""
    microphone = Microphone(settings, 24_000, random.Random(1), cancels=cancels)
    frames = [*np.pad(played, (0, -len(played) % 480)).reshape(-1, 480), *[STILL] * lag_frames]
    at_ear = [*[STILL] * lag_frames, *frames]
    return np.concatenate([microphone.hear(STILL, ear, out) for ear, out in zip(at_ear, frames, strict=False)])


def agent():
    lines = [room_lines()[name].pcm for name in ("neighbour-keys", "neighbour-dinner")]
    return resample(np.concatenate(lines), RATE_HZ, 24_000)


def test_a_still_room_without_a_canceller_is_the_callers_own_frame():
    microphone = Microphone(RoomSettings(), 24_000, random.Random(1), cancels=False)
    assert microphone.hear(STILL, STILL, STILL) is STILL


@pytest.mark.parametrize("lag_frames", [0, 10])
def test_a_canceller_takes_the_rooms_echo_out_at_any_playback_lag(lag_frames):
    room, played = RoomSettings("living-room", echo=0.3), agent()
    raw = sent(room, played, cancels=False, lag_frames=lag_frames)[3 * 24_000 :]
    left = sent(room, played, cancels=True, lag_frames=lag_frames)[3 * 24_000 :]
    assert level_dbfs(left) <= level_dbfs(raw) - 20


@pytest.mark.parametrize(
    ("aec", "cancels"),
    [(Aec.AUTO, [True, False, False]), (Aec.ON, [True] * 3), (Aec.AEC3, [True] * 3), (Aec.OFF, [False] * 3)],
)
def test_the_output_device_says_whether_there_is_a_canceller_unless_the_user_does(aec, cancels):
    devices = (OutputDevice.SPEAKERS, OutputDevice.HEADPHONES, OutputDevice.PHONE)
    assert [aec.cancels(device) for device in devices] == cancels


def test_a_canceller_that_is_not_installed_is_told_with_what_installs_it():
    if importlib.util.find_spec("livekit"):
        pytest.skip("the extra aec is installed")
    with pytest.raises(UsageError, match=r"pip install 'callwright\[aec\]'"):
        Microphone(RoomSettings(aec=Aec.AEC3), 24_000, random.Random(1), cancels=True)
