"""The ear hears what is in the samples: each test is one thing that a call does to a line."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import callwright.apps
from callwright.audio.g711 import pcmu_decode, pcmu_encode
from callwright.audio.resample import resample
from callwright.sim.ear import Ear, Placement
from callwright.sim.speech import PER_MS, Recording, Speech

BANK = Speech.load(Path(callwright.apps.__path__[0]) / "hotel" / "speech")
UNKNOWN = Speech.load(Path(__file__).parent / "data" / "unknown")
RATE_HZ = 16_000
ALL = list(BANK)
SOME = ALL[::4]
AGENT = [line_id for line_id in ALL if BANK[line_id].kind == "agent"]


@cache
def the_ear():
    return Ear(BANK.values())


def heard(samples, rate_hz=RATE_HZ):
    return [(word.line_id, word.text) for word in the_ear().listen(samples, rate_hz)]


def words(line_id, first=0, last=None):
    return [(line_id, word.text) for word in BANK[line_id].words[first:last]]


def rms(samples):
    return float(np.sqrt((samples.astype(float) ** 2).mean()))


def as_pcm(samples):
    return np.clip(np.round(samples), -32768, 32767).astype(np.int16)


def silence(ms):
    return np.zeros(ms * PER_MS, np.int16)


def pink(count, rng):
    spectrum = np.fft.rfft(rng.standard_normal(count))
    noise = np.fft.irfft(spectrum / np.sqrt(np.maximum(np.arange(len(spectrum)), 1)), count)
    return noise / noise.std()


def noisy(samples, snr_db, seed=1):
    noise = pink(len(samples), np.random.default_rng(seed))
    return as_pcm(samples + noise * rms(samples) * 10 ** (-snr_db / 20))


def drifted(samples, ppm):
    """The samples played by a clock that is `ppm` slow."""
    dense = np.fft.irfft(np.fft.rfft(samples), 4 * len(samples)) * 4
    at = np.arange(int(len(samples) * (1 + ppm * 1e-6))) / (1 + ppm * 1e-6)
    return as_pcm(np.interp(at * len(dense) / len(samples), np.arange(len(dense)), dense))


def mixed(*placed):
    """Samples of several (samples, at_ms, gain) on one line."""
    total = np.zeros(max(len(samples) + at_ms * PER_MS for samples, at_ms, _ in placed))
    for samples, at_ms, gain in placed:
        total[at_ms * PER_MS : at_ms * PER_MS + len(samples)] += gain * samples
    return as_pcm(total)


@pytest.mark.parametrize("line_id", ALL)
def test_a_clean_line_is_heard_whole_and_on_time(line_id):
    found = the_ear().listen(np.concatenate([silence(300), BANK[line_id].pcm]), RATE_HZ, start_ms=5000)
    assert [(w.text, w.line_id, w.kind) for w in found] == [
        (w.text, line_id, BANK[line_id].kind) for w in BANK[line_id].words
    ]
    for word, spoken in zip(found, BANK[line_id].words, strict=True):
        assert abs(word.start_ms - 5300 - spoken.start_ms) <= 2
        assert abs(word.end_ms - 5300 - spoken.end_ms) <= 2


@pytest.mark.parametrize("line_id", SOME)
@pytest.mark.parametrize("gain_db", [-12, -6, 6])
def test_level_does_not_matter(line_id, gain_db):
    assert heard(as_pcm(BANK[line_id].pcm * 10 ** (gain_db / 20))) == words(line_id)


@pytest.mark.parametrize("line_id", SOME)
def test_a_telephone_codec_at_8_khz_loses_no_word(line_id):
    coded = pcmu_decode(pcmu_encode(resample(BANK[line_id].pcm, RATE_HZ, 8000)))
    assert heard(coded, 8000) == words(line_id)


@pytest.mark.parametrize("line_id", AGENT[::3])
def test_a_reply_at_24_khz_brought_to_8_khz_is_heard_whole(line_id):
    pcm = BANK[line_id].pcm
    spectrum = np.pad(np.fft.rfft(pcm), (0, len(pcm) // 4 + 1))
    at_24_khz = as_pcm(np.fft.irfft(spectrum, len(pcm) * 3 // 2) * 1.5)
    assert heard(resample(at_24_khz, 24_000, 8000), 8000) == words(line_id)


@pytest.mark.parametrize("line_id", SOME)
@pytest.mark.parametrize("ppm", [-200, 200])
def test_a_clock_that_is_off_by_200_ppm_loses_no_word(line_id, ppm):
    assert heard(drifted(BANK[line_id].pcm, ppm)) == words(line_id)


@pytest.mark.parametrize("line_id", SOME)
def test_noise_10_db_below_loses_no_word(line_id):
    assert heard(noisy(BANK[line_id].pcm, 10)) == words(line_id)


def test_in_noise_as_loud_as_speech_most_words_are_heard_and_none_made_up():
    found = wanted = 0
    for seed, line_id in enumerate(SOME):
        got = heard(noisy(BANK[line_id].pcm, 0, seed))
        assert set(got) <= set(words(line_id))
        found, wanted = found + len(got), wanted + len(words(line_id))
    assert 0.6 < found / wanted < 0.95


def long_first_words():
    """Lines of which 0.3 s takes most of the first word, and nothing of the second."""
    for recording in BANK.values():
        first, *others = recording.words
        if others and first.end_ms - 100 < 300 <= others[0].start_ms:
            yield recording.id


@pytest.mark.parametrize("line_id", list(long_first_words()))
def test_300_ms_cut_off_the_start_loses_the_first_word_only(line_id):
    assert heard(BANK[line_id].pcm[300 * PER_MS :]) == words(line_id, 1)


def test_enough_lines_are_cut_at_the_start():
    assert len(list(long_first_words())) >= 5


@pytest.mark.parametrize("line_id", [x for x in SOME if len(BANK[x].words) > 4])
@pytest.mark.parametrize(("tail", "step"), [("silence", 1), ("noise", 3)])
def test_a_line_cut_in_the_middle_gives_the_words_before_the_cut_only(line_id, tail, step):
    recording = BANK[line_id]
    for count in range(3, len(recording.words), step):
        cut = np.concatenate([recording.slice(0, count), silence(600)])
        assert heard(cut if tail == "silence" else noisy(cut, 20)) == words(line_id, 0, count)


@pytest.mark.parametrize("line_id", [x for x in SOME if len(BANK[x].words) > 4])
@pytest.mark.parametrize("pause_ms", [100, 700])
def test_a_line_spoken_in_two_pieces_is_heard_whole(line_id, pause_ms):
    recording, half = BANK[line_id], len(BANK[line_id].words) // 2
    pieces = [recording.slice(0, half), silence(pause_ms), recording.slice(half, len(recording.words))]
    assert heard(np.concatenate(pieces)) == words(line_id)


def test_lines_back_to_back_are_heard_in_order():
    for three in zip(ALL[::5], ALL[2::5], ALL[4::5], strict=False):
        together = np.concatenate([BANK[line_id].pcm for line_id in three])
        assert heard(together) == [word for line_id in three for word in words(line_id)]


def test_a_line_said_twice_is_heard_twice():
    assert heard(np.concatenate([BANK["go-on"].pcm, silence(400), BANK["go-on"].pcm])) == words("go-on") * 2


@pytest.mark.parametrize("gain", [1.0, 0.5])
@pytest.mark.parametrize(("one", "other"), list(zip(ALL[:14:2], AGENT[::2], strict=False)))
def test_two_lines_at_once_are_both_heard(one, other, gain):
    found = heard(mixed((BANK[one].pcm, 0, 1.0), (BANK[other].pcm, 250, gain)))
    assert sorted(found) == sorted(words(one) + words(other))


@pytest.mark.parametrize("line_id", AGENT[::3])
def test_an_echo_of_30_percent_gives_the_agents_words(line_id):
    found = the_ear().listen(as_pcm(BANK[line_id].pcm * 0.3), RATE_HZ)
    assert [(word.text, word.kind) for word in found] == [(w.text, "agent") for w in BANK[line_id].words]


def test_a_caller_over_an_echo_of_30_percent_is_heard_whole():
    found = heard(mixed((BANK["check-in-deposit"].pcm, 0, 0.3), (BANK["ask-parking"].pcm, 900, 1.0)))
    assert [word for word in found if word[0] == "ask-parking"] == words("ask-parking")
    assert [word for word in found if word[0] == "check-in-deposit"] == words("check-in-deposit")


@pytest.mark.parametrize("line_id", list(UNKNOWN))
@pytest.mark.parametrize("snr_db", [None, 10])
def test_an_unknown_line_gives_no_words_never_the_nearest_known_one(line_id, snr_db):
    pcm = UNKNOWN[line_id].pcm
    assert heard(pcm if snr_db is None else noisy(pcm, snr_db)) == []


def test_a_known_line_is_heard_beside_an_unknown_one():
    both = np.concatenate([UNKNOWN["lost-key"].pcm, silence(300), BANK["ask-wifi"].pcm])
    assert heard(both) == words("ask-wifi")


def test_silence_and_noise_give_no_words():
    rng = np.random.default_rng(2)
    for samples in (
        silence(0), silence(10), silence(2000),
        as_pcm(pink(3 * RATE_HZ, rng) * 2000), as_pcm(rng.standard_normal(3 * RATE_HZ) * 2000),
    ):  # fmt: skip
        assert heard(samples) == []
        assert the_ear().kind_of(samples, RATE_HZ) is None


@pytest.mark.parametrize("line_id", ALL)
def test_the_kind_of_a_sound_is_known_from_its_first_600_ms(line_id):
    beginning = np.concatenate([silence(60), BANK[line_id].pcm])[: 600 * PER_MS]
    assert the_ear().kind_of(beginning, RATE_HZ) == BANK[line_id].kind
    assert the_ear().kind_of(as_pcm(beginning * 0.3), RATE_HZ) == BANK[line_id].kind


@pytest.mark.parametrize("line_id", list(UNKNOWN))
def test_an_unknown_sound_has_no_kind(line_id):
    assert the_ear().kind_of(UNKNOWN[line_id].pcm[: 600 * PER_MS], RATE_HZ) is None


def test_music_is_a_kind_and_has_no_words_and_does_not_cover_a_line():
    rng = np.random.default_rng(5)
    notes = [np.sin(np.arange(RATE_HZ // 4) * 2 * np.pi * hz / RATE_HZ) for hz in rng.integers(200, 900, 40)]
    pcm = as_pcm(np.concatenate(notes) * 3000)
    ear = Ear([*BANK.values(), Recording("hold", "none", "music", "", pcm, ())])
    assert ear.kind_of(pcm[20_000:30_000], RATE_HZ) == "music"
    assert ear.listen(pcm, RATE_HZ) == []
    both = ear.listen(mixed((pcm, 0, 1.0), (BANK["ask-pool"].pcm, 2000, 1.0)), RATE_HZ)
    assert [(word.line_id, word.text) for word in both] == words("ask-pool")


def test_the_same_samples_give_the_same_words_in_a_new_ear():
    samples = noisy(mixed((BANK["ask-pool"].pcm, 0, 1.0), (BANK["parking"].pcm, 400, 0.7)), 3)
    assert Ear(BANK.values()).listen(samples, RATE_HZ) == the_ear().listen(samples, RATE_HZ)


@pytest.mark.parametrize("line_id", AGENT[::4])
@pytest.mark.parametrize("off_ms", [-4, 0, 4])
def test_a_followed_line_is_whole_through_a_filter_and_a_few_ms_off_its_place(line_id, off_ms):
    echo = np.convolve(BANK[line_id].pcm, np.concatenate([[0.4, 0.25], np.zeros(5), [0.15]]))
    sound = mixed((echo, 500 + off_ms, 1.0))
    found = the_ear().follow(sound, RATE_HZ, [Placement(line_id, 0, len(BANK[line_id].words), 500)])
    assert [(word.line_id, word.text) for word in found] == words(line_id)
    assert min(word.share for word in found) > 0.75


@pytest.mark.parametrize("line_id", AGENT[1::4])
def test_a_followed_line_tells_how_much_of_the_word_at_the_cut_arrived(line_id):
    recording = BANK[line_id]
    word = recording.words[3]
    power = recording.pcm[word.start_ms * PER_MS : word.end_ms * PER_MS].astype(float) ** 2
    middle = int(np.searchsorted(np.cumsum(power), power.sum() / 2))
    delivered = recording.pcm[: word.start_ms * PER_MS + middle]
    found = the_ear().follow(
        mixed((delivered, 200, 1.0), (silence(1000), 4000, 1.0)), RATE_HZ, [Placement(line_id, 0, 6, 200)]
    )
    shares = [w.share for w in found]
    assert min(shares[:3]) > 0.8
    assert 0.3 < shares[3] < 0.7
    assert shares[4:] == [0.0, 0.0]


def test_followed_pieces_are_told_apart_and_those_never_played_have_share_zero():
    recording = BANK["goodbye"]
    sound = mixed((recording.slice(0, 5), 100, 1.0), (recording.slice(5, 9), 3000, 1.0), (silence(10), 20_000, 1.0))
    places = [
        Placement("goodbye", 0, 5, 100), Placement("goodbye", 5, 9, 3000), Placement("goodbye", 9, 14, 8000),
        Placement("pool", 0, 8, 30_000),
    ]  # fmt: skip
    found = the_ear().follow(sound, RATE_HZ, places)
    assert [(w.line_id, w.text) for w in found] == words("goodbye") + words("pool")
    assert min(w.share for w in found[:9]) > 0.8
    assert {w.share for w in found[9:]} == {0.0}
    assert all(one.start_ms <= other.start_ms for one, other in pairwise(found))


def test_following_nothing_gives_nothing():
    assert the_ear().follow(silence(100), RATE_HZ, []) == []
