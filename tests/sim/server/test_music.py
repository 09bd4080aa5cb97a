"""Music on hold, as the server takes it: by its samples, for minutes, and as was measured on the live service."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.sim.server.driving import EXACT, Client, Says, speech

from callwright.ids import Ms
from callwright.sim.ear import Ear
from callwright.sim.models import Clip, Reply
from callwright.sim.room import room_lines
from callwright.sim.server.settings import ServerSettings
from callwright.sim.speech import PER_MS, Pcm

STARTED = "input_audio_buffer.speech_started"
TRANSCRIBED = "conversation.item.input_audio_transcription.completed"
ALWAYS = replace(EXACT, music_turn_rate=1)
SILENCE = Says([Reply()])
LINE = "ask-parking"


@cache
def ear() -> Ear:
    return Ear([*speech().values(), room_lines()["music"]])


def music(ms: Ms, at_ms: Ms = 0) -> Pcm:
    """So much of the music from this place on, over and over."""
    return np.resize(np.roll(room_lines()["music"].pcm, -at_ms * PER_MS), ms * PER_MS)


def call(settings: ServerSettings = ALWAYS, model: Says | None = None) -> Client:
    """A client behind a turn that this model has answered: with one word, or with silence."""
    client = Client(model or Says([Reply((Clip("pool"),))]), settings, hears=ear())
    client.say(LINE)
    client.until("response.done")
    client.wait(1_500)
    return client


def turns(client: Client) -> list[str]:
    """What was understood in each turn behind the first."""
    return [event["transcript"] for event in client.of(TRANSCRIBED)][1:]


@pytest.mark.parametrize(("rate", "understood"), [(0, []), (1, ["[music]"])])
def test_music_behind_an_answered_turn_is_a_turn_at_its_rate(rate: int, understood: list[str]) -> None:
    """Measured: music after "hold on", to which a word was said, was a turn without words in 1 of 5 calls."""
    client = call(replace(EXACT, music_turn_rate=rate))
    client.play(music(4_000))
    client.wait(2_500)
    assert turns(client) == understood


def test_music_behind_a_turn_that_was_answered_with_silence_is_no_turn() -> None:
    """Measured: hold music of 30 to 700 s, behind announcements, was none."""
    client = call(model=SILENCE)
    client.play(music(30_000, at_ms=7_300))
    client.wait(1_000)
    client.play(music(10_000, at_ms=500))
    assert not turns(client)
    assert len(client.of(STARTED)) == 1


def test_music_is_judged_once_behind_a_turn() -> None:
    """A pause in it does not give it another chance."""
    for seed in range(4):
        client = Client(Says([Reply((Clip("pool"),))]), replace(EXACT, music_turn_rate=0.5), hears=ear(), seed=seed)
        client.say(LINE)
        client.until("response.done")
        client.wait(1_500)
        client.play(music(1_000))
        started = len(client.of(STARTED))
        if started == 1:
            for _ in range(8):
                client.wait(500)
                client.play(music(400))
        assert len(client.of(STARTED)) == started


@pytest.mark.parametrize("noise_dbfs", [None, -42])
def test_who_speaks_as_the_music_ends_is_heard_as_fast_as_in_silence(noise_dbfs: int | None) -> None:
    client = call(model=SILENCE)
    noise = np.random.default_rng(1).normal(
        0, 0 if noise_dbfs is None else 32768 * 10 ** (noise_dbfs / 20), 6_000 * PER_MS
    )
    client.play((music(6_000, at_ms=3_210) + noise).astype(np.int16))
    begun_ms = client.say(LINE)
    client.wait(2_500)
    assert turns(client) == [speech()[LINE].text]
    first_word_ms = begun_ms + speech()[LINE].words[0].start_ms
    assert client.of(STARTED)[-1].at_ms - first_word_ms == pytest.approx(180, abs=80)


def test_a_turn_that_opens_on_music_lasts_as_long_as_that_and_keeps_what_a_turn_may() -> None:
    """The later part is dropped; who speaks behind it is heard and answered."""
    client = call(replace(ALWAYS, longest_turn_ms=3_000))
    client.play(music(6_000))
    client.wait(1_000)
    client.say(LINE)
    client.wait(2_500)
    assert turns(client) == ["[music]", speech()[LINE].text]
    seconds = [event["usage"]["seconds"] for event in client.of(TRANSCRIBED)]
    assert seconds[1] == pytest.approx(3, abs=0.1)


def test_speech_at_the_end_of_a_turn_that_is_too_long_is_lost() -> None:
    """Music that runs into the words of a person takes them along."""
    client = call(replace(ALWAYS, longest_turn_ms=3_000))
    client.play(music(6_000))
    client.say(LINE)
    client.wait(2_500)
    assert turns(client) == ["[music]"]


def test_music_behind_a_turn_that_a_client_ended_by_hand_is_no_turn() -> None:
    """It was not answered yet: the client can ask for the reply to what it ended."""
    client = call()
    client.play(music(3_000))
    client.send("input_audio_buffer.commit")
    client.send("response.create")
    client.play(music(1_000, at_ms=3_000))
    assert turns(client) == ["[music]"]
    assert len(client.of(STARTED)) == len(client.of("response.created")) == 2


# --- the ear


@pytest.mark.parametrize("at_ms", [0, 1_234, 6_789, 11_950])
def test_music_is_found_by_160_ms_of_it_and_followed_round_its_end(at_ms: Ms) -> None:
    found = ear().music(music(160, at_ms))
    assert found is not None
    assert all(found.goes_on(frame) for frame in music(8_160, at_ms)[160 * PER_MS :].reshape(-1, 512)[:60])


def test_speech_is_no_music_and_does_not_go_on_as_such() -> None:
    for line in speech().values():
        assert all(
            ear().music(line.pcm[at : at + 160 * PER_MS]) is None for at in range(0, len(line.pcm), 640 * PER_MS)
        )
    found = ear().music(music(160))
    assert found is not None
    loud = speech()[LINE].pcm[speech()[LINE].words[0].start_ms * PER_MS :]
    assert not any(found.goes_on(loud[at : at + 512]) for at in range(0, 4 * 512, 512))
