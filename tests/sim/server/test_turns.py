"""Where the server finds the caller's turns, by the samples it is sent; times as measured on the live service."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.sim.server.driving import EXACT, Client, Says, speech

from callwright.audio.formats import PCM16_24K, PCMU_8K
from callwright.audio.g711 import pcmu_encode
from callwright.audio.resample import resample
from callwright.sim.ear import Ear
from callwright.sim.models import AgentSaid, CallerSaid, Clip, Reply
from callwright.sim.record import Confirmation
from callwright.sim.server.speaking import render
from callwright.sim.speech import PER_MS, RATE_HZ

STARTED = "input_audio_buffer.speech_started"
STOPPED = "input_audio_buffer.speech_stopped"
TRANSCRIBED = "conversation.item.input_audio_transcription.completed"
FIRST_AUDIO = "response.output_audio.delta"
LONG = Reply(tuple(Clip(line) for line in ("check-in-time", "check-in-bring", "check-in-deposit", "check-in-early")))
QUESTIONS = ["ask-check-in", "ask-parking", "ask-breakfast", "go-on", "thats-all"]


def words_of(line_id: str, begun_ms: int) -> tuple[int, int]:
    """Start of the first and end of the last word of a line that was begun at this instant."""
    words = speech()[line_id].words
    return begun_ms + words[0].start_ms, begun_ms + words[-1].end_ms


def over_a_reply(settings=EXACT, **options) -> Client:
    """A client 2 s into a long reply."""
    client = Client(Says([LONG]), settings, **options)
    client.send("response.create")
    client.until(FIRST_AUDIO)
    client.wait(2000)
    return client


@pytest.mark.parametrize("line_id", QUESTIONS)
@pytest.mark.parametrize("audio_format", [PCMU_8K, PCM16_24K], ids=["pcmu", "pcm"])
def test_a_turn_ends_half_a_second_after_its_last_word_and_is_answered_about_a_second_after_it(line_id, audio_format):
    client = Client(audio_format=audio_format)
    begun_ms = client.say(line_id)
    client.until(FIRST_AUDIO)
    first_word_ms, last_word_ms = words_of(line_id, begun_ms)
    started, stopped, audio = client.the(STARTED), client.the(STOPPED), client.of(FIRST_AUDIO)[0]
    assert started.at_ms - first_word_ms == pytest.approx(180, abs=80)
    assert stopped["audio_end_ms"] == pytest.approx(last_word_ms + 500, abs=70)
    assert stopped.at_ms - stopped["audio_end_ms"] == pytest.approx(95, abs=20)
    assert audio.at_ms - last_word_ms == pytest.approx(1000, abs=70)
    assert started["item_id"] == stopped["item_id"] == client.the("input_audio_buffer.committed")["item_id"]


def test_the_defaults_answer_as_fast_as_the_live_service():
    """0.93 to 1.14 s from the last word to the first audio; our detector adds at most 0.05 s."""
    for seed in range(8):
        client = Client(seed=seed, settings=replace(EXACT, answer_ms=(430, 640)))
        _, last_word_ms = words_of("ask-parking", client.say("ask-parking"))
        assert 880 <= client.until(FIRST_AUDIO).at_ms - last_word_ms <= 1190


def test_a_turn_is_told_with_its_padding_on_the_audio_clock():
    client = Client()
    client.wait(1000)
    first_word_ms, _ = words_of("ask-parking", client.say("ask-parking"))
    assert client.the(STARTED)["audio_start_ms"] == pytest.approx(first_word_ms - 300, abs=50)


@pytest.mark.parametrize("line_id", QUESTIONS)
def test_the_transcript_is_what_was_said(line_id):
    client = Client()
    client.say(line_id)
    assert client.until(TRANSCRIBED)["transcript"] == speech()[line_id].text
    assert client.server.history[0] == CallerSaid(client.the(STARTED)["item_id"], speech()[line_id].text)


def test_c137_the_transcript_comes_after_the_reply_has_begun():
    client = Client()
    client.say("ask-parking")
    transcript = client.until(TRANSCRIBED)
    assert transcript.at_ms == client.of(FIRST_AUDIO)[0].at_ms + 300


def test_c137_the_transcript_may_come_only_after_the_reply_is_done():
    client = Client(settings=replace(EXACT, transcript_last_rate=1, transcript_last_ms=(100, 100)))
    client.say("ask-parking")
    assert client.until(TRANSCRIBED).at_ms == client.the("response.done").at_ms + 100


def test_speech_that_is_not_known_is_a_turn_without_words():
    """Never the nearest known line: a line played backwards is speech, and nobody's."""
    client = Client()
    client.play(speech()["ask-check-in"].pcm[::-1])
    assert client.until(TRANSCRIBED)["transcript"] == ""
    assert client.the("response.created")


def test_held_audio_in_one_burst_is_one_turn_heard_in_full():
    """Measured: 1.5 or 3 s in one burst gave all words in one turn, with the end where real time has it."""
    line = speech()["ask-check-in"]
    ends = []
    for split_ms in (0, 1500, 3000):
        client = Client()
        begun_ms = client.audio_ms
        client.burst(line.pcm[: split_ms * PER_MS])
        client.play(line.pcm[split_ms * PER_MS :])
        assert client.until(TRANSCRIBED)["transcript"] == line.text
        ends.append(client.the(STOPPED)["audio_end_ms"] - begun_ms)
    assert max(ends) - min(ends) <= 32


def test_two_turns_in_one_burst_are_told_in_order():
    client = Client()
    pause = np.zeros(RATE_HZ, np.int16)
    client.burst(np.concatenate([speech()["go-on"].pcm, pause, speech()["ask-parking"].pcm, pause]))
    client.wait(3000)
    told = [kind for kind in client.kinds() if kind in (STARTED, STOPPED)]
    assert told == [STARTED, STOPPED, STARTED, STOPPED]
    assert [item.text for item in client.server.history[:2]] == [speech()[i].text for i in ("go-on", "ask-parking")]
    assert len(client.of("response.created")) == len(client.of("response.done")) + 1 == 2


def test_c032_a_turn_does_not_end_while_nothing_is_sent():
    """The server hears silence only where silence is sent."""
    client = Client()
    client.say("ask-parking")
    client.advance(5000)
    assert not client.of(STOPPED)
    assert client.until(STOPPED)


def test_c031_a_line_that_never_goes_quiet_does_not_hide_turns():
    """Line noise between the turns: both are found."""
    client = Client()
    noise = np.random.default_rng(1).normal(0, 15, 2 * RATE_HZ).astype(np.int16)
    for line_id in ("ask-parking", "go-on"):
        client.say(line_id)
        client.play(noise)
    assert [item.text for item in client.server.history if isinstance(item, CallerSaid)] == [
        speech()["ask-parking"].text,
        speech()["go-on"].text,
    ]


# --- over a reply


@pytest.mark.parametrize("line_id", QUESTIONS)
def test_speech_over_a_reply_is_confirmed_after_about_780_ms(line_id):
    client = over_a_reply()
    first_word_ms, _ = words_of(line_id, client.say(line_id))
    started = client.until(STARTED) if not client.of(STARTED) else client.the(STARTED)
    assert started.at_ms - first_word_ms == pytest.approx(780, abs=50)
    (confirmation,) = client.server.confirmations
    assert confirmation == Confirmation(confirmation.onset_ms, started.at_ms)
    assert confirmation.onset_ms == pytest.approx(first_word_ms, abs=50)


def test_a_murmur_over_a_reply_is_nothing_at_all():
    """Measured: no event in 20 of 20 runs."""
    client = over_a_reply()
    client.say("mm-hmm")
    client.until("response.done")
    client.wait(1000)
    assert not client.of(STARTED, STOPPED)
    assert client.the("response.done")["response"]["status"] == "completed"
    assert not any(isinstance(item, CallerSaid) for item in client.server.history)


def test_a_murmur_in_a_gap_is_a_turn():
    """Measured: a normal turn in 5 of 5 runs."""
    client = Client()
    client.say("mm-hmm")
    assert client.until(TRANSCRIBED)["transcript"] == "Mm-hmm."
    assert client.the("response.created")


def test_c040_a_short_noise_over_a_reply_does_not_stop_it():
    client = over_a_reply()
    client.play(speech()["ask-check-in"].pcm[: 90 * PER_MS])
    client.wait(2000)
    assert not client.of(STARTED)


def test_a_short_word_over_a_reply_stops_it():
    """Length alone does not make a murmur of a word."""
    client = over_a_reply()
    client.say("thank-you")
    client.wait(200)
    assert client.the("response.done")["response"]["status"] == "cancelled"


@pytest.mark.parametrize("volume", [0.5, 0.15, 0.05])
def test_the_agents_own_echo_is_taken_for_the_caller(volume):
    """Measured at 50, 15 and 5 %, 40 ms late: every reply was cut after about 1 s and transcribed as the caller."""
    client = Client(Says([LONG]), audio_format=PCM16_24K)
    client.send("response.create")
    first = client.until(FIRST_AUDIO)
    audio = np.frombuffer(render(LONG.clips, speech(), EXACT.sentence_pause_ms).audio, "<i2")
    client.wait(40)
    client.play((resample(audio, PCM16_24K.rate_hz, RATE_HZ)[: 2 * RATE_HZ] * volume).astype(np.int16))
    client.until(TRANSCRIBED)
    assert client.of("response.done")[0]["response"]["status"] == "cancelled"
    assert client.of(STARTED)[0].at_ms - first.at_ms == pytest.approx(900, abs=150)
    assert client.of(TRANSCRIBED)[0]["transcript"].startswith("Check in is from three")


def test_speech_over_what_was_streamed_but_still_plays_is_only_told():
    """All audio has left, the server believes it audible: the response is not cut, and the onset rule holds."""
    client = Client(Says([Reply((Clip("pool"),))]), replace(EXACT, lead_ms=2000, done_after_ms=(100, 100)))
    client.send("response.create")
    client.until("response.done")
    begun_ms = client.say("ask-parking")
    client.wait(2000)
    assert client.of("response.done")[0]["response"]["status"] == "completed"
    assert client.of(STARTED)[0].at_ms - begun_ms == pytest.approx(780, abs=60)
    assert client.server.history[0] == AgentSaid(client.server.history[0].item_id, speech()["pool"].text)


@cache
def ear_with(kind: str, line_id: str) -> Ear:
    """An ear that takes one of the lines for a sound of another kind."""
    return Ear(replace(line, kind=kind) if line.id == line_id else line for line in speech().values())


def test_a_television_under_a_reply_does_not_stop_it_and_is_a_turn_when_it_is_over():
    """Measured in 10 of 10 runs: no interruption, yet transcribed as the caller's turn."""
    client = over_a_reply(hears=ear_with("bed", "goodbye"))
    client.say("goodbye")
    done = client.until("response.done")
    last_audio_ms = client.of(FIRST_AUDIO)[-1].at_ms
    assert done["response"]["status"] == "completed"
    assert client.until(TRANSCRIBED)["transcript"] == speech()["goodbye"].text
    assert client.the(STARTED).at_ms > last_audio_ms


def test_the_caller_is_heard_over_a_television():
    client = over_a_reply(hears=ear_with("bed", "goodbye"))
    client.say("goodbye")
    client.wait(400)
    client.say("ask-parking")
    client.wait(500)
    assert client.of("response.done")[0]["response"]["status"] == "cancelled"


def test_c009_speech_in_silence_cancels_nothing():
    client = Client()
    client.say("ask-parking")
    client.wait(200)
    assert client.of(STARTED)
    assert not client.of("response.done", "error")


# --- formats


@pytest.mark.parametrize("line_id", [line.id for line in speech().values() if line.kind == "caller"])
def test_pcmu_before_the_update_is_lost_without_a_word(line_id):
    """Measured 5 of 5: it is read as 24 kHz PCM, and nothing is heard."""
    client = Client(is_ready=False)
    client.wait(200)
    client.say(line_id)
    client.configure()
    client.wait(2000)
    assert not client.of(STARTED, TRANSCRIBED, "error")


def test_pcmu_between_update_and_answer_is_heard():
    """Measured 5 of 5: the update holds from when it is received."""
    client = Client(is_ready=False)
    client.wait(200)
    client.configure()
    client.burst(speech()["ask-parking"].pcm)
    assert not client.of("session.updated")
    assert client.until(TRANSCRIBED)["transcript"] == speech()["ask-parking"].text


def test_pcm_before_the_update_is_heard():
    """Measured 5 of 5: 24 kHz PCM is the default."""
    client = Client(is_ready=False, audio_format=PCM16_24K)
    client.burst(speech()["ask-parking"].pcm)
    client.configure()
    assert client.until(TRANSCRIBED)["transcript"] == speech()["ask-parking"].text


def test_c122_an_odd_byte_waits_for_its_other_half():
    client = Client(audio_format=PCM16_24K)
    data = client.coded(speech()["ask-parking"].pcm)
    for at in range(0, len(data), 961):
        client.frame(data[at : at + 961])
    assert client.until(TRANSCRIBED)["transcript"] == speech()["ask-parking"].text


def test_silence_that_is_skipped_changes_nothing():
    """Digital silence is passed over; silence with one bit of noise is not: turns and words are the same."""
    told = []
    for level in (0, 1):
        client = Client(audio_format=PCM16_24K)
        client.play(np.full(3 * RATE_HZ, level, np.int16))
        client.say("ask-parking")
        client.until(TRANSCRIBED)
        told.append((client.the(STARTED)["audio_start_ms"], client.the(STOPPED)["audio_end_ms"]))
    assert np.abs(np.subtract(*told)).max() <= 32


def test_a_turn_that_stays_open_keeps_its_first_300_seconds():
    client = Client(settings=replace(EXACT, longest_turn_ms=3000))
    client.say("ask-check-in")
    text = client.until(TRANSCRIBED)["transcript"]
    assert text.startswith("Hi, could you tell me")
    assert "checking in" not in text


def test_odd_mu_law_codes_for_zero_are_silence():
    client = Client()
    client.frame(b"\x7f" * 160)
    client.frame(pcmu_encode(np.zeros(160, np.int16)))
    assert not client.of(STARTED)
