"""What the server takes for a turn in a room: by the samples of the microphone, never by what was meant to be said.

Measured on the live service, Oct and Nov 2026; see docs/reference/fidelity.md.
"""

import base64
import random
from collections import deque
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.sim.server.driving import EXACT, Client, Says, speech

from callwright.audio.formats import PCM16_24K
from callwright.sim.ear import Ear
from callwright.sim.models import CallerSaid, Clip, Reply
from callwright.sim.room import Noise, Room, RoomSettings, room_lines
from callwright.sim.speech import RATE_HZ

STARTED = "input_audio_buffer.speech_started"
FIRST_AUDIO = "response.output_audio.delta"
TRANSCRIBED = "conversation.item.input_audio_transcription.completed"
REPLY = Reply((Clip("check-in-time"), Clip("check-in-bring")))
FRAME = 480


@cache
def ear():
    """Knows the hotel's lines and the rooms', as in a whole call."""
    return Ear([*speech().values(), *room_lines().values()])


class InRoom(Client):
    """A client whose microphone is in a room with its loudspeaker."""

    def __init__(self, room=None, settings=EXACT):
        self.room = Room(room or RoomSettings(), 24_000, random.Random(1))
        self.queue = deque()
        self.taken = 0
        super().__init__(Says([REPLY]), settings, audio_format=PCM16_24K, hears=ear())

    def frame(self, data):
        super().frame(self.room.apply(np.frombuffer(data, "<i2"), self.pull()).astype("<i2").tobytes())

    def collect(self):
        super().collect()
        for event in self.events[self.taken :]:
            if event["type"] == FIRST_AUDIO:
                self.queue.append(np.frombuffer(base64.b64decode(event["delta"]), "<i2"))
            elif event["type"] == STARTED:
                self.queue.clear()
        self.taken = len(self.events)

    def pull(self):
        """The next 20 ms for the loudspeaker."""
        waiting = np.concatenate([*self.queue, np.zeros(0, np.int16)])
        self.queue = deque([waiting[FRAME:]] if len(waiting) > FRAME else [])
        return np.pad(waiting[:FRAME], (0, max(0, FRAME - len(waiting))))

    def into_a_reply(self, ms=800):
        self.send("response.create")
        self.until(FIRST_AUDIO)
        self.wait(ms)
        return self

    def sound(self, line_id, gain=1.0):
        """A line of the room, or of the caller."""
        line = {**room_lines(), **speech()}[line_id]
        begun_ms = self.now_ms
        self.play((line.pcm * gain).astype(np.int16))
        return begun_ms

    @property
    def caller_said(self):
        return [item.text for item in self.server.history if isinstance(item, CallerSaid)]

    @property
    def status(self):
        return self.of("response.done")[0]["response"]["status"]


@pytest.mark.parametrize(("name", "echo"), [("dry", 0.5), ("dry", 0.15), ("dry", 0.05), ("kitchen", 0.3)])
def test_c033_an_echo_without_a_canceller_cuts_every_reply_after_about_a_second(name, echo):
    """Measured at 50, 15 and 5 %, 40 ms late: 15 of 15, and transcribed as the caller."""
    client = InRoom(RoomSettings(name, echo=echo)).into_a_reply(0)
    began_ms = client.of(FIRST_AUDIO)[0].at_ms
    client.until(TRANSCRIBED)
    assert client.status == "cancelled"
    assert 700 <= client.of(STARTED)[0].at_ms - began_ms <= 1200
    assert client.caller_said[0].startswith("Check in is")


def test_c033_an_echo_in_a_car_cuts_as_an_unknown_voice():
    client = InRoom(RoomSettings("car", echo=0.3)).into_a_reply(0)
    client.until(TRANSCRIBED)
    assert client.status == "cancelled"


@pytest.mark.parametrize("name", ["phone-booth", "kitchen", "car"])
def test_the_caller_stops_a_reply_in_every_room_and_his_words_are_heard(name):
    client = InRoom(RoomSettings(name, noise=Noise("street", -45))).into_a_reply()
    begun_ms = client.sound("ask-parking")
    client.until(TRANSCRIBED)
    assert client.status == "cancelled"
    assert client.of(STARTED)[0].at_ms - begun_ms == pytest.approx(780, abs=80)
    assert client.caller_said == [speech()["ask-parking"].text]


@pytest.mark.parametrize("name", ["dry", "living-room"])
def test_a_murmur_over_a_reply_is_nothing_and_in_a_gap_it_is_a_turn(name):
    """Measured: nothing in 20 of 20, a turn in 5 of 5."""
    client = InRoom(RoomSettings(name)).into_a_reply()
    client.sound("mm-hmm")
    client.until("response.done")
    client.wait(1000)
    assert (client.status, client.caller_said) == ("completed", [])
    client.sound("mm-hmm")
    client.until(TRANSCRIBED)
    assert client.caller_said == ["Mm-hmm."]


@pytest.mark.parametrize("murmur", ["mm-hmm", "murmur-long"])
def test_a_question_right_after_a_murmur_that_was_nothing_is_heard_when_the_reply_has_ended_meanwhile(murmur):
    """A murmur that was let pass lets nothing else pass: after the reply the table's other column counts."""
    client = InRoom().into_a_reply(4200)  # of 5.2 s
    pause = np.zeros(150 * RATE_HZ // 1000, np.int16)
    client.play(np.concatenate(({**room_lines(), **speech()}[murmur].pcm, pause, speech()["ask-parking"].pcm)))
    client.until(TRANSCRIBED)
    assert client.status == "completed"
    assert client.caller_said[0].endswith(speech()["ask-parking"].text)


@pytest.mark.parametrize(("murmur_ms", "status", "told"), [(1500, "cancelled", 1500), (60_000, "completed", 4500)])
def test_a_murmur_of_several_seconds_over_a_reply_is_a_turn_by_its_length_or_when_the_reply_is_over(
    murmur_ms, status, told
):
    client = InRoom(settings=replace(EXACT, murmur_ms=murmur_ms)).into_a_reply()
    begun_ms = client.sound("murmur-long")
    client.until("response.done")
    assert client.status == status
    assert all(told <= started.at_ms - begun_ms <= told + 1500 for started in client.of(STARTED))


@pytest.mark.parametrize("line_id", ["news-bridge", "neighbour-keys"])
def test_a_news_reader_under_a_reply_does_not_stop_it_and_is_a_turn_when_it_is_over(line_id):
    """Measured: no interruption, yet a turn of the caller, 10 of 10."""
    client = InRoom().into_a_reply()
    client.sound(line_id, 0.1)
    client.until(TRANSCRIBED)
    assert client.status == "completed"
    assert client.of(STARTED)[0].at_ms >= client.of("response.done")[0].at_ms - EXACT.done_after_ms[0]
    assert client.caller_said == [room_lines()[line_id].text]


def test_a_news_reader_in_silence_is_a_turn_at_once():
    client = InRoom()
    begun_ms = client.sound("news-bridge", 0.2)
    assert client.of(STARTED)[0].at_ms - begun_ms <= 400
    client.until(TRANSCRIBED)
    assert client.caller_said == [room_lines()["news-bridge"].text]


@pytest.mark.parametrize("noise", ["babble:-50", "street:-40", "music:-45", "coughs:-50"])
def test_soft_noise_is_no_turn_in_silence_and_none_over_a_reply(noise):
    """The detector decides: there is no voice in it."""
    client = InRoom(RoomSettings(noise=Noise.parse(noise))).into_a_reply()
    client.until("response.done")
    client.wait(1500)
    assert (client.status, client.caller_said) == ("completed", [])


def test_loud_voices_in_silence_are_a_turn_without_words():
    client = InRoom(RoomSettings(noise=Noise("babble", -30)))
    client.wait(600)
    assert client.of(STARTED)
    assert client.server.history == ()


def test_c040_c042_a_cough_over_a_reply_stops_nothing():
    client = InRoom().into_a_reply()
    client.sound("cough")
    client.until("response.done")
    assert (client.status, client.of(STARTED)) == ("completed", [])


def test_the_caller_is_heard_over_a_news_reader():
    client = InRoom().into_a_reply()
    news, caller = room_lines()["news-bridge"].pcm * 0.1, speech()["ask-parking"].pcm
    news[RATE_HZ : RATE_HZ + len(caller)] += caller[: len(news) - RATE_HZ]
    client.play(news.astype(np.int16))
    assert client.status == "cancelled"
