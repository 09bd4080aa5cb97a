"""The first seconds of a session: what is read of audio that comes before, during and right after its configuration."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tests.sim.server.driving import EXACT, Client, ear, speech
from tests.sim.server.test_turns import STARTED, STOPPED, TRANSCRIBED

from callwright.audio.formats import PCM16_16K, PCM16_24K, PCMU_8K
from callwright.errors import UsageError
from callwright.sim.server import ServerSettings
from callwright.sim.server.settings import drawn
from callwright.sim.server.voice import VoiceTrack
from callwright.sim.speech import PER_MS, RATE_HZ

LINE = speech()["ask-pool"]
SLOW = replace(EXACT, ready_after_ms=(2_000, 2_000))

# --- what is told


def test_nothing_is_told_before_the_session_itself():
    client = Client(is_ready=False, settings=SLOW)
    client.configure(tool_choice="auto")  # which this dialect refuses
    client.say("ask-pool")
    assert [event["type"] for event in client.events][:3] == ["session.created", "error", STARTED]
    assert client.the("error").at_ms == client.the("session.created").at_ms


def test_a_session_that_ends_before_it_is_told_says_why():
    client = Client(is_ready=False, settings=replace(SLOW, takes_calls=False, closes_on_calls=True))
    client.send("conversation.item.create", item={"type": "function_call", "name": "any", "arguments": "{}"})
    assert [event["type"] for event in client.events] == ["error"]
    assert client.server.closing is not None


# --- what is heard


@pytest.mark.parametrize("audio_format", [PCMU_8K, PCM16_24K], ids=["pcmu", "pcm"])
def test_audio_between_the_update_and_its_answer_is_heard_in_full(audio_format):
    """Measured: μ-law in that gap was heard in full, 5 of 5; an update holds from when it is received."""
    client = Client(is_ready=False, audio_format=audio_format, settings=SLOW)
    client.configure()
    begun_ms = client.say("ask-pool")
    assert begun_ms < client.the("session.updated").at_ms < begun_ms + LINE.ms
    assert client.until(TRANSCRIBED)["transcript"] == LINE.text


def test_pcmu_before_the_update_is_missing_from_what_is_heard_after_it():
    """Only what came in the format that the session had: the words before are lost, and no error tells of it."""
    client = Client(is_ready=False, settings=SLOW)
    split = LINE.words[6].end_ms * PER_MS
    client.play(LINE.pcm[:split])
    client.configure()
    client.play(LINE.pcm[split:])
    text = client.until(TRANSCRIBED)["transcript"]
    assert text.lower().split() == [word.text.lower() for word in LINE.words[7:]][: len(text.split())]
    assert text.split()[-1] == "on?"
    assert not client.of("error")


@pytest.mark.parametrize("held_ms", [1_500, 3_000, 5_000])
def test_held_audio_in_one_burst_gives_the_words_the_turn_and_the_end_of_real_time(held_ms):
    """Measured for 1.5 and 3 s: all words, one turn, the same audio_end_ms, 30 of 30; 5 s is what a client may hold."""
    padded = np.concatenate([LINE.pcm, np.zeros(3_000 * PER_MS, np.int16)])
    told = []
    for burst_ms in (0, held_ms):
        client = Client(is_ready=False)
        client.configure()
        client.advance(300)
        client.burst(padded[: burst_ms * PER_MS])
        client.play(padded[burst_ms * PER_MS :])
        client.wait(2_000)
        assert client.the(TRANSCRIBED)["transcript"] == LINE.text
        told.append((client.the(STARTED)["audio_start_ms"], client.the(STOPPED)["audio_end_ms"]))
    assert told[0] == told[1]


# --- what was read first


def test_what_was_read_first_is_kept_sample_by_sample_silence_included():
    """In the detector's own rate nothing is changed by reading: silence that is passed over is there as well."""
    track = VoiceTrack(0.5, PCM16_16K)
    silence = np.zeros(3_000 * PER_MS, np.int16)
    sent = np.concatenate([silence, LINE.pcm[: 4_000 * PER_MS], silence, LINE.pcm[: 1_010 * PER_MS]])
    skipped = 0
    for at in range(0, len(sent), 20 * PER_MS):
        data = sent[at : at + 20 * PER_MS].astype("<i2").tobytes()
        if track.can_skip() and track.is_silent(data):
            track.skip(len(data))
            skipped += 1
        else:
            track.take(data)
    assert skipped > 200
    assert np.array_equal(track.first, sent)


def test_what_was_read_of_pcmu_is_what_was_sent_at_the_detectors_rate():
    client = Client(is_ready=False)
    client.configure()
    client.play(LINE.pcm)
    read = client.server.first_audio
    assert abs(len(read) - len(LINE.pcm)) <= 20 * PER_MS
    assert " ".join(word.text for word in ear().listen(read, RATE_HZ)) == LINE.text


def test_what_was_misread_is_kept_as_it_was_misread():
    """μ-law read as 24 kHz PCM is a third as long less its second byte, and no word of it is one."""
    client = Client(is_ready=False, settings=SLOW)
    client.play(LINE.pcm)
    read = client.server.first_audio
    assert len(read) == pytest.approx(len(LINE.pcm) / 6, abs=20 * PER_MS)
    assert ear().listen(read, RATE_HZ) == []


def test_no_more_than_the_first_15_s_are_kept():
    client = Client()
    client.wait(14_000)
    client.say("ask-pool")
    assert len(client.server.first_audio) == 15_000 * PER_MS


# --- when it is ready


def test_readiness_has_a_median_where_three_numbers_are_given():
    """Measured over 20 calls: 0.23 to 2.83 s after pickup, median 0.66 s."""
    rng = random.Random(1)
    times = [drawn((230, 660, 2830), rng) for _ in range(2_000)]
    below = Counter(at_ms < 660 for at_ms in times)
    assert below[True] == pytest.approx(1_000, abs=100)
    assert (min(times), max(times)) == (pytest.approx(230, abs=5), pytest.approx(2_830, abs=20))
    client = Client(is_ready=False, settings=ServerSettings(ready_after_ms=(400, 400, 400)))
    client.configure()
    client.advance(400)
    assert client.the("session.updated").at_ms == 400


@pytest.mark.parametrize("wrong", [(2, 1), (1, 3, 2), (1, 2, 3, 4), (1,), (), (1.0, 2.0), (-1, 2, 3)])
def test_readiness_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(UsageError, match="ready_after_ms: expected two whole numbers of ms, or three"):
        ServerSettings(ready_after_ms=wrong)
    with pytest.raises(UsageError, match="answer_ms: expected two whole numbers of ms, the lower one first"):
        ServerSettings(answer_ms=(1, 2, 3))
