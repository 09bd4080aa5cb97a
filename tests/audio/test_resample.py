"""A stream resampled in any pieces is the stream resampled whole, clean, with nothing lost."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.audio.formats import PCM
from callwright.audio.g711 import pcmu_decode, pcmu_encode
from callwright.audio.resample import DELAY_MS, Align, Pcm16Carry, Resampler, _filter, resample
from callwright.errors import AudioFormatError

RATES = [
    (24_000, 8_000),
    (8_000, 24_000),
    (24_000, 16_000),
    (16_000, 24_000),
    (16_000, 8_000),
    (8_000, 16_000),
    (48_000, 24_000),
]
every_rate = pytest.mark.parametrize(("from_hz", "to_hz"), RATES)


def tone(hz: float, rate_hz: int, ms: int, peak: float = 16_000) -> PCM:
    time = np.arange(rate_hz * ms // 1000) / rate_hz
    return np.rint(peak * np.sin(2 * np.pi * hz * time)).astype(np.int16)


def noise(length: int, seed: int = 1) -> PCM:
    return np.random.default_rng(seed).integers(-32768, 32768, length).astype(np.int16)


def fitted(samples: PCM, hz: float, rate_hz: int) -> tuple[float, float, float]:
    """Amplitude, phase (radians, as a sine at the first sample) and dB of the rest against the tone that fits best."""
    angle = 2 * np.pi * hz / rate_hz * np.arange(len(samples))
    basis = np.stack((np.sin(angle), np.cos(angle)), axis=1)
    weights = np.linalg.lstsq(basis, samples.astype(float), rcond=None)[0]
    rest = samples - basis @ weights
    amplitude = float(np.hypot(*weights))
    below = 10 * np.log10(np.mean(rest**2) / (amplitude**2 / 2))
    return amplitude, float(np.arctan2(weights[1], weights[0])), float(below)


def in_pieces(resampler: Resampler, samples: PCM, cuts: list[int]) -> PCM:
    ends = [0, *sorted(cuts), len(samples)]
    pieces = [resampler.process(samples[start:end]) for start, end in pairwise(ends)]
    return np.concatenate((*pieces, resampler.flush()))


@pytest.mark.parametrize("size", [1, 7, 160, 479, 480, 1000])
@every_rate
@pytest.mark.parametrize("align", Align)
def test_c119_any_chunk_size_gives_the_samples_of_one_piece(from_hz: int, to_hz: int, align: Align, size: int) -> None:
    samples = noise(2_500)
    whole = in_pieces(Resampler(from_hz, to_hz, align), samples, [])
    cut = in_pieces(Resampler(from_hz, to_hz, align), samples, list(range(size, len(samples), size)))
    np.testing.assert_array_equal(cut, whole)


@given(
    rates=st.sampled_from(RATES),
    align=st.sampled_from(Align),
    length=st.integers(0, 1_500),
    data=st.data(),
)
def test_c119_any_cutting_gives_the_samples_of_one_piece(
    rates: tuple[int, int], align: Align, length: int, data: st.DataObject
) -> None:
    cuts = data.draw(st.lists(st.integers(0, length), max_size=12))
    samples = noise(length)
    whole = in_pieces(Resampler(*rates, align), samples, [])
    np.testing.assert_array_equal(in_pieces(Resampler(*rates, align), samples, cuts), whole)


@pytest.mark.parametrize("size", [1, 7, 160, 480])
@pytest.mark.parametrize(("from_hz", "to_hz"), [(24_000, 8_000), (8_000, 24_000)])
def test_c119_a_tone_stays_clean_across_chunks(from_hz: int, to_hz: int, size: int) -> None:
    """Energy off the tone stays 80 dB below it; through μ-law, 34 dB."""
    samples = tone(1_000, from_hz, 500)
    out = in_pieces(Resampler(from_hz, to_hz), samples, list(range(size, len(samples), size)))
    steady = out[to_hz // 100 : -to_hz // 100]
    amplitude, _, rest_db = fitted(steady, 1_000, to_hz)
    assert amplitude == pytest.approx(16_000, rel=0.001)
    assert rest_db < -80
    if to_hz == 8_000:
        assert fitted(pcmu_decode(pcmu_encode(steady)), 1_000, to_hz)[2] < -34


@every_rate
def test_every_frame_in_gives_a_frame_out_at_once(from_hz: int, to_hz: int) -> None:
    resampler = Resampler(from_hz, to_hz)
    for _ in range(10):
        assert len(resampler.process(noise(from_hz // 50))) == to_hz // 50


@every_rate
@pytest.mark.parametrize("length", [0, 1, 2, 3, 100, 4_799, 4_801])
def test_c118_nothing_of_an_item_is_lost(from_hz: int, to_hz: int, length: int) -> None:
    """The item's length is the ratio, rounded up; aligned to frames, 3 ms of delay come before it."""
    wanted = -(-length * to_hz // from_hz)
    assert len(resample(noise(length), from_hz, to_hz)) == wanted
    frames = in_pieces(Resampler(from_hz, to_hz), noise(length), [])
    assert len(frames) == wanted + DELAY_MS * to_hz // 1000


def test_c118_gaps_between_chunks_lose_nothing_and_make_no_jump() -> None:
    """A gap brings no samples: the sweep goes on, with no step above its own slope and no sample gone."""
    time = np.arange(24_000) / 24_000
    sweep = np.rint(10_000 * np.sin(2 * np.pi * (200 + 400 * time) * time)).astype(np.int16)
    resampler = Resampler(24_000, 8_000, Align.CONTENT)
    pieces = []
    for at in range(0, len(sweep), 4_801):
        pieces += [resampler.process(sweep[at : at + 4_801]), resampler.process(sweep[:0])]
    out = np.concatenate((*pieces, resampler.flush()))
    assert abs(len(out) - 8_000) <= 1
    assert np.abs(np.diff(out.astype(int))).max() <= 10_000 * 2 * np.pi * 1_000 / 8_000
    assert np.abs(out - sweep[::3].astype(int))[24:-24].max() <= 2


@every_rate
def test_content_stays_where_it_was_or_is_3_ms_late(from_hz: int, to_hz: int) -> None:
    samples = tone(500, from_hz, 200)
    aligned = resample(samples, from_hz, to_hz)
    steady = slice(to_hz // 50, -to_hz // 50)
    start = 2 * np.pi * 500 * (to_hz // 50) / to_hz
    assert np.angle(np.exp(1j * (fitted(aligned[steady], 500, to_hz)[1] - start))) == pytest.approx(0, abs=1e-3)
    late = in_pieces(Resampler(from_hz, to_hz), samples, [])
    np.testing.assert_array_equal(late[DELAY_MS * to_hz // 1000 :], aligned)


@every_rate
@pytest.mark.parametrize("hz", [100, 1_000, 3_000, 3_400])
def test_the_telephone_band_passes_flat(from_hz: int, to_hz: int, hz: int) -> None:
    out = resample(tone(hz, from_hz, 400), from_hz, to_hz)[to_hz // 20 : -to_hz // 20]
    assert 20 * np.log10(fitted(out, hz, to_hz)[0] / 16_000) == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize("hz", [4_400, 5_000, 7_000, 11_000])
def test_what_8_khz_cannot_hold_is_gone_not_folded_back(hz: int) -> None:
    out = resample(tone(hz, 24_000, 400), 24_000, 8_000)[400:-400]
    assert np.abs(out.astype(int)).max() <= 1


@every_rate
def test_full_scale_saturates_and_never_wraps(from_hz: int, to_hz: int) -> None:
    """A step of full scale overshoots by some percent in any sharp filter."""
    step = np.repeat(np.array([-32768, 32767, -32768], np.int16), 300)
    out = resample(step, from_hz, to_hz).astype(int)
    lower, upper = 150 * to_hz // from_hz, 450 * to_hz // from_hz
    assert out[lower] == pytest.approx(-32768, abs=400)
    assert out[upper] == pytest.approx(32767, abs=400)
    assert out.max() == 32767
    assert out.min() == -32768


@every_rate
def test_sums_are_exact_so_samples_do_not_depend_on_the_order_of_summation(from_hz: int, to_hz: int) -> None:
    """Whole multiples of 2^-24 whose largest possible sum is far below the 2^53 that float64 counts exactly."""
    steps = _filter(from_hz, to_hz).matrix * 2**24
    assert (steps == np.rint(steps)).all()
    assert np.abs(steps).sum(axis=0).max() * 32768 < 2**43


def test_the_next_item_hears_nothing_of_the_last() -> None:
    resampler = Resampler(24_000, 8_000, Align.CONTENT)
    in_pieces(resampler, noise(1_001), [])
    np.testing.assert_array_equal(in_pieces(resampler, noise(700, 2), []), resample(noise(700, 2), 24_000, 8_000))


def test_equal_rates_change_nothing() -> None:
    resampler = Resampler(24_000, 24_000)
    np.testing.assert_array_equal(resampler.process(noise(481)), noise(481))
    assert len(resampler.flush()) == 0


@pytest.mark.parametrize(("from_hz", "to_hz"), [(24_000, 0), (-8_000, 8_000), (44_100, 8_000), (8_000, 96_000)])
def test_rates_that_no_filter_is_made_for_are_refused(from_hz: int, to_hz: int) -> None:
    with pytest.raises(AudioFormatError, match="multiples of 1000 Hz"):
        Resampler(from_hz, to_hz)


def test_samples_of_another_type_are_refused_not_misread() -> None:
    with pytest.raises(TypeError):
        Resampler(24_000, 8_000).process(np.zeros(480, np.int32))  # type: ignore[arg-type]


def test_c122_odd_deltas_join_to_the_source_and_the_next_item_is_not_shifted() -> None:
    carry = Pcm16Carry()
    source = noise(10_000)
    data = source.tobytes()
    cuts = [0, 1, 4, 4_803, 9_604, 14_403, len(data)]
    taken = [carry.take(data[start:end]) for start, end in pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(taken), source)
    assert carry.end() == 0
    carry.take(data[:4_801])
    assert carry.end() == 1
    np.testing.assert_array_equal(carry.take(data), source)


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=10))
def test_c122_any_cutting_of_bytes_gives_every_whole_sample(data: bytes, cuts: list[int]) -> None:
    carry = Pcm16Carry()
    ends = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    taken = [carry.take(data[start:end]).tobytes() for start, end in pairwise(ends)]
    assert b"".join(taken) == data[: len(data) // 2 * 2]
    assert carry.end() == len(data) % 2
