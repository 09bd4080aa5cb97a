"""Recorded lines: what is on disk, and what may be relied on when a line is cut into words."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import callwright.apps
from callwright.errors import AudioFormatError, UsageError
from callwright.sim.speech import PER_MS, Speech, normalise

HOTEL = Path(callwright.apps.__path__[0]) / "hotel"
SPEECH = Speech.load(HOTEL / "speech")
LINES = [pytest.param(SPEECH[line_id], id=line_id) for line_id in SPEECH]


def test_every_line_of_the_source_is_rendered_as_it_stands():
    source = yaml.safe_load((HOTEL / "speech.yaml").read_text("utf-8"))["lines"]
    assert [(line["id"], line["voice"], line["kind"], line["text"]) for line in source] == [
        (r.id, r.voice, r.kind, r.text) for r in SPEECH.values()
    ]


@pytest.mark.parametrize("recording", LINES)
def test_words_are_those_of_the_text_in_order_and_hold_the_sound(recording):
    assert [word.text for word in recording.words] == recording.text.split()
    ends = [0, *(word.end_ms for word in recording.words)]
    for before, word in zip(ends, recording.words, strict=False):
        assert before <= word.start_ms
        assert word.end_ms - word.start_ms >= 60
    assert recording.ms - ends[-1] <= 20
    assert recording.words[0].start_ms <= 20
    power = recording.pcm.astype(float) ** 2
    inside = sum(power[word.start_ms * PER_MS : word.end_ms * PER_MS].sum() for word in recording.words)
    assert inside > 0.99 * power.sum()


@pytest.mark.parametrize("recording", LINES)
def test_lines_are_equally_loud_and_clear_of_the_ceiling(recording):
    rms = np.sqrt((recording.pcm.astype(float) ** 2).mean()) / 32768
    assert -22 < 20 * np.log10(rms) < -19
    assert 20 * np.log10(np.abs(recording.pcm.astype(int)).max() / 32768) < -3


@given(st.sampled_from(sorted(SPEECH)), st.data())
def test_slices_in_a_row_make_the_whole_line(line_id, data):
    recording = SPEECH[line_id]
    count = len(recording.words)
    cuts = sorted(data.draw(st.sets(st.integers(0, count))) | {0, count})
    slices = [recording.slice(a, b) for a, b in pairwise(cuts)]
    assert np.array_equal(np.concatenate(slices), recording.pcm)


def test_samples_are_shared_and_cannot_be_written():
    assert Speech.load(HOTEL / "speech") is SPEECH
    assert SPEECH["go-on"] is SPEECH["go-on"]
    with pytest.raises(ValueError, match="read-only"):
        SPEECH["go-on"].pcm[0] = 1


@pytest.mark.parametrize(
    ("word", "plain"),
    [("Hi,", "hi"), ("Mm-hmm.", "mm-hmm"), ("That\u2019s", "that's"), ("on?", "on"), ("ID", "id"), ("-", "")],
)
def test_words_are_compared_without_case_and_punctuation(word, plain):
    assert normalise(word) == plain


def test_a_directory_without_an_index_is_refused_by_name(tmp_path):
    with pytest.raises(UsageError, match=r"render_speech\.py"):
        Speech.load(tmp_path)


def test_a_file_that_is_not_a_recording_is_refused_by_name(tmp_path):
    (tmp_path / "speech.json").write_text(
        '{"a": {"voice": "v", "kind": "agent", "text": "A", "file": "a.wav", "words": []}}'
    )
    (tmp_path / "a.wav").write_bytes(b"RIFF\0\0\0\0WAVEfmt \x02\0\0\0\1\0")
    with pytest.raises(AudioFormatError, match=r"a\.wav"):
        Speech.load(tmp_path)["a"]
