"""Recorded lines: what is on disk, and what may be relied on when a line is cut into words."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scripts import render_speech

import callwright.apps
from callwright.errors import UsageError
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


ENTRY = {
    "voice": "v",
    "kind": "agent",
    "text": "Go on.",
    "file": "a.wav",
    "ms": 900,
    "words": [["Go", 0, 400], ["on.", 400, 900]],
}


def index_of(directory, **changes):
    entry = {key: value for key, value in {**ENTRY, **changes}.items() if value is not None}
    (directory / "speech.json").write_text("{\n" + f'"first": {json.dumps(ENTRY)},\n"second": {json.dumps(entry)}\n}}')
    (directory / "a.wav").write_bytes(b"RIFF\0\0\0\0WAVEfmt \x02\0\0\0\1\0")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "robot"}, 'expected one of caller, agent, murmur, bed, music; got "robot"'),
        ({"kind": "agents"}, 'did you mean "agent"?'),
        ({"txt": "Go on."}, 'expected one of voice, kind, text, file, ms, words; got "txt"; did you mean "text"?'),
        ({"ms": None}, "missing required field `ms`"),
        ({"ms": "900"}, "Expected `int`, got `str` - at `$.ms`"),
        ({"words": [["Go", 0, 400]]}, "words: expected those of text, split at blanks"),
        ({"words": [["Go", 0, 400, 3], ["on.", 400, 900]]}, "at `$.words[0]`"),
        ({"words": [], "text": ""}, "words: expected those of text"),
        ({"words": [["Go", 0, 500], ["on.", 400, 900]]}, "words: expected times in order, from 0 up to ms"),
        ({"ms": 800}, "words: expected times in order, from 0 up to ms"),
        ({"file": "gone.wav"}, "gone.wav; make it again with scripts/render_speech.py"),
    ],
)
def test_a_mistake_in_the_index_is_told_with_its_line(tmp_path, changes, message):
    index_of(tmp_path, **changes)
    with pytest.raises(UsageError) as error:
        Speech.load(tmp_path)
    assert str(error.value).startswith(f"{tmp_path}/speech.json:3: second: ")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{\n"a": {,}}', r"speech\.json:2:7: expected JSON; Expecting property name"),
        (b"", r"speech\.json:1:1: expected JSON"),
        (b"[]", r"speech\.json:1:1: expected an object with one entry per line"),
        (b'{"\xff": 1}', r"speech\.json: expected a file that can be read"),
        (b'{"a": 3}', r"speech\.json:1: a: Expected `object`, got `int`"),
    ],
)
def test_an_index_that_is_none_is_refused_with_its_place(tmp_path, content, message):
    (tmp_path / "speech.json").write_bytes(content)
    with pytest.raises(UsageError, match=message):
        Speech.load(tmp_path)


def test_a_file_that_is_not_a_recording_is_refused_by_name(tmp_path):
    index_of(tmp_path)
    with pytest.raises(UsageError, match=r"a\.wav: expected a WAV file of G\.711 μ-law, mono, 16000 Hz"):
        Speech.load(tmp_path)["first"]


def test_a_recording_of_another_length_than_the_index_says_is_refused(tmp_path):
    index_of(tmp_path)
    (tmp_path / "a.wav").write_bytes((HOTEL / "speech" / "wifi.wav").read_bytes())
    with pytest.raises(UsageError, match=r"a\.wav: expected 900 ms, as the index says; got \d+ ms"):
        Speech.load(tmp_path)["first"]


def test_each_side_has_its_lines():
    assert [*SPEECH.lines_of("caller"), *SPEECH.lines_of("agent")] == list(SPEECH)
    assert "mm-hmm" in SPEECH.lines_of("caller")


# --- the script that renders lines --------------------------------------------------------------------------------


@pytest.fixture
def render(monkeypatch, capsys):
    """The script's command line, in this process: its exit code and what it printed."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["render_speech.py", *map(str, arguments)])
        return render_speech.main(), capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "voices: {a: slt}\nlines: [{id: x, voice: a, kind: robot, text: Go.}]",
            ":2:33: lines 1.kind: expected one of",
        ),
        (
            "voices: {a: slt}\nlines: [{id: x, voice: b, kind: agent, text: Go.}]",
            ":2:24: lines 1.voice: expected one of a",
        ),
        ("voices: {a: slt}\nlines: [{id: x, voice: a, kind: agent}]", ":2:9: lines 1: expected a key 'text'"),
        (
            "voices: {a: slt}\nlines: [{id: ../x, voice: a, kind: agent, text: Go.}]",
            ":2:14: lines 1.id: expected letters",
        ),
        ("lines: []", ":1:1: expected a key 'voices'"),
        (None, ": expected a file that can be read"),
    ],
)
def test_a_list_that_cannot_be_rendered_is_refused_with_its_place(tmp_path, render, content, message):
    source = tmp_path / "speech.yaml"
    if content:
        source.write_text(content)
    code, printed = render(source)
    assert (code, printed.out) == (2, "")
    assert printed.err.startswith(f"render_speech: {source}{message}")
    assert printed.err.count("\n") == 1


def test_the_script_says_how_it_is_used(render):
    with pytest.raises(SystemExit) as helped:
        render("--help")
    assert helped.value.code == 0
    command = [sys.executable, render_speech.__file__]
    unused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert unused.returncode == 2
    assert "source" in unused.stderr
