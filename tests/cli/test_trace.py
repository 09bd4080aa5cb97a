"""``callwright trace mask``: a trace that can be handed on."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.calling import callwright
from tests.runtime.calls import OPENING, reply
from tests.runtime.test_replay import objected, recorded


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "call.jsonl"
    path.write_bytes(recorded(*OPENING, *reply("From three, Ms Okafor.")))
    return path


def test_a_masked_trace_goes_to_a_file_and_is_replayed(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "masked.jsonl"
    done = callwright("trace", "mask", trace, "--out", out, "--hide", "Okafor")
    assert done.exit_code == 0
    assert (done.stdout, done.stderr.startswith(f"{out}: identical: ")) == ("", True)
    text = out.read_text("utf-8")
    assert "Ms Aaaaaa." in text
    assert "three" not in text


def test_without_a_file_it_is_printed_and_nothing_else_is(trace: Path, tmp_path: Path) -> None:
    done = callwright("trace", "mask", trace)
    out = tmp_path / "masked.jsonl"
    callwright("trace", "mask", trace, "--out", out)
    assert done.stdout == out.read_text("utf-8")


def test_all_words_can_be_left_out(trace: Path) -> None:
    done = callwright("trace", "mask", trace, "--no-words")
    assert done.exit_code == 0
    assert "Okafor" not in done.stdout


def test_where_words_are_missing_that_decide_the_exit_code_and_standard_error_say_so(tmp_path: Path) -> None:
    path = tmp_path / "private.jsonl"
    path.write_bytes(objected())
    done = callwright("trace", "mask", path)
    assert done.exit_code == 1
    assert "incomplete from" in done.stderr


def test_wrong_use_is_told(trace: Path, tmp_path: Path) -> None:
    done = callwright("trace", "mask", trace, "--no-words", "--hide", "Okafor")
    assert (done.exit_code, "leave one of them out" in done.stderr) == (2, True)
    done = callwright("trace", "mask", trace, "--out", tmp_path / "nowhere" / "masked.jsonl")
    assert (done.exit_code, "choose another --out" in done.stderr) == (2, True)
