"""``callwright measure --against``, ``--markdown`` and ``--junit``: two sides on the same seeds, and files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import Result
from tests.cli.calling import callwright, variant

from callwright.cli.junit import as_junit
from callwright.cli.options import Setup
from callwright.cli.plan import make_plan
from callwright.cli.show_batch import Against, Measured, said, seeds
from callwright.measure.batch import RunResult
from callwright.measure.compare import Call, Side, compared
from callwright.measure.figures import CallFigures
from callwright.measure.verdict import Failure, Verdict

RUNS = ("measure", "check-in", "--runs", 2)


@cache
def ours() -> str:
    """What ``--json`` prints of two calls."""
    return callwright(*RUNS, "--json").stdout


@cache
def naive() -> Result:
    return callwright(*RUNS, "--client", "naive", "--against", "--client callwright", "--json", "--quiet")


def test_the_same_seeds_are_played_otherwise_and_compared_call_by_call() -> None:
    told = json.loads(naive().stdout)
    assert naive().exit_code == 1  # the baseline fails; what it is compared with is not judged
    assert (told["client"], told["against"]["client"], told["against"]["unpaired"]) == ("naive", "callwright", [])
    (found,) = [each for each in told["against"]["differences"] if each["name"] == "unheard_words_in_transcript"]
    assert (found["pairs"], found["other"], found["worse"], found["is_shown"]) == (2, 0, 2, False)
    assert found["median"] == found["one"] > 0


def test_a_batch_that_was_saved_is_compared_like_one_that_is_played(tmp_path: Path) -> None:
    (tmp_path / "ours.json").write_text(ours(), "utf-8")
    result = callwright(*RUNS, "--client", "naive", "--against", tmp_path / "ours.json", "--json", "--quiet")
    assert json.loads(result.stdout) == json.loads(naive().stdout)


def saved(tmp_path: Path, **batches: str) -> list[Path]:
    for name, batch in batches.items():
        (tmp_path / f"{name}.json").write_text(batch, "utf-8")
    return [tmp_path / f"{name}.json" for name in batches]


def test_two_saved_batches_are_compared_like_one_that_is_played(tmp_path: Path) -> None:
    files = saved(tmp_path, this=naive().stdout, other=ours())
    result = callwright("compare", *files, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["against"] == json.loads(naive().stdout)["against"]
    assert "\nagainst  callwright  check-in, seeds 1 to 2\n" in callwright("compare", *files).stdout


def test_saved_batches_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    other = json.loads(ours()) | {"settings": {"echo": 0.3}, "client": "naive"}
    this, changed, two, none = saved(
        tmp_path, this=ours(), changed=json.dumps(other), two=ours() + naive().stdout.replace("check-in", "x"), none=""
    )
    nowhere, binary = tmp_path / "nowhere.json", tmp_path / "binary.json"
    binary.write_bytes(b"\xff")
    expected = "expected a file that callwright measure SCENARIO --json > FILE wrote; this one cannot be read"
    for files, problem in {
        (this, changed): f"{changed}: check-in differs in client, echo, so that nobody can tell",
        (this, two): f"{this}: expected a batch of x; there is none: leave that scenario out",
        (two, this): f"{this}: expected a batch of x; there is none: leave that scenario out",
        (none, none): f"{none}: expected batches that measure --json wrote; there is none",
        (nowhere, none): f"{nowhere}: {expected} (No such file or directory)\n",
        (binary, none): f"{binary}: {expected} (it is no text)\n",
    }.items():
        result = callwright("compare", *files)
        assert (result.exit_code, result.stdout, result.stderr.startswith(f"callwright: {problem}")) == (2, "", True)


def test_a_pair_without_figures_fails_the_comparison(tmp_path: Path) -> None:
    other = json.loads(ours())
    other["by_seed"][0]["failed"], other["client"] = ["void"], "naive"
    result = callwright("compare", *saved(tmp_path, this=ours(), other=json.dumps(other)))
    assert result.exit_code == 1
    assert "missing seed 1 not compared: a call of theirs is void or censored" in result.stdout


def test_what_is_compared_with_may_fail_and_its_figures_are_not_the_batch_s() -> None:
    result = callwright("measure", "check-in", "--against", "--client naive")
    assert (result.exit_code, result.stderr) == (0, "")
    mine, _, other = result.stdout.partition("against  naive  check-in, seed 1\n")
    assert mine.startswith("callwright  check-in, seed 1\n")
    assert "failed " not in other
    assert " 95 %" not in result.stdout  # of one call
    assert "too few no difference is claimed of less than 6 pairs: heard_error_ms, " in other


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        (("--seed", 2), "check-in was played with other seeds: play both with the same"),
        (("--client", "naive", "--lag-ms", 300), "check-in differs in client, lag_ms, so that nobody can tell"),
    ],
)
def test_batches_that_differ_in_more_than_one_thing_are_refused_before_a_call(
    change: tuple[object, ...], differs: str, tmp_path: Path
) -> None:
    saved = tmp_path / "ours.json"
    saved.write_text(ours(), "utf-8")
    result = callwright(*RUNS, "--against", saved, *change)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"callwright: {saved}: {differs}")


def test_a_batch_of_another_text_of_the_scenario_is_refused(tmp_path: Path) -> None:
    saved = tmp_path / "ours.json"
    saved.write_text(ours(), "utf-8")
    changed = variant(tmp_path, "check-in", ("starts_over: 0", "starts_over: 1"))
    result = callwright("measure", changed, "--runs", 2, "--against", saved)
    assert "check-in was played with other scenario: play both" in result.stderr


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("--lag_ms 30", "--against '--lag_ms 30': No such option '--lag_ms'."),
        ("--lag-ms soon", "Invalid value for '--lag-ms'"),
        ("--runs 9", "No such option '--runs'"),
        ("--noise 'news", "No closing quotation"),
        ("--lag-ms 100", "expected an option that differs from the others; got none"),
        ("", "expected options, or a file that measure --json wrote"),
        ("y", "y: expected a file that callwright measure SCENARIO --json > FILE wrote, or options, which begin"),
        (__file__, f"{__file__}:1: expected a line that measure --json wrote"),
    ],
)
def test_what_is_neither_other_options_nor_a_saved_batch_is_refused(text: str, problem: str) -> None:
    result = callwright("measure", "check-in", "--lag-ms", 100, "--against", text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert problem in result.stderr


def test_a_saved_batch_of_another_scenario_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ours.json").write_text(ours(), "utf-8")
    assert "expected a batch of booking" in callwright("measure", "booking", "--against", tmp_path / "ours.json").stderr


def side(values: list[int], name: str = "yield_latency_ms") -> Side:
    calls = tuple(Call(seed, (), {name: value}) for seed, value in enumerate(values, 1))
    return Side("check-in", "naive", "polyai", {"echo": 0.3}, {}, calls)


def test_a_difference_is_said_in_words_and_only_one_that_is_shown() -> None:
    shown = Against.of(side([100] * 8), side([400, 410, 420, 430, 440, 450, 460, 470]))
    assert shown.title == "naive  check-in, seeds 1 to 8, echo 0.3"
    assert list(said(shown))[1:] == [
        ("differs", "yield_latency_ms is 335 ms lower (95 %: 300 to 370); better in 8 of 8, worse in 0")
    ]
    unsure = Against.of(side([1, 2, 3, 4, 5, 6]), side([2, 1, 4, 3, 6, 5]))
    assert list(said(unsure))[1:] == [("unsure", "no difference is claimed, 0 lies within the 95 %: yield_latency_ms")]
    assert list(said(Against.of(side([7]), side([7]))))[1:] == [("same", "equal on every seed: yield_latency_ms")]


def test_pairs_that_are_not_compared_are_missing_and_fail_the_batch() -> None:
    gone = Side("check-in", "naive", "polyai", {}, {}, (Call(1, ("void",), {}), Call(2, (), {"heard_ms": 5})))
    against = Against(gone, compared(side([1, 2]), gone), unpaired=[1])
    assert against.missing == "seed 1 not compared: a call of theirs is void or censored"
    lacking = Against.of(
        side([1, 2]),
        Side("check-in", "naive", "polyai", {}, {}, (Call(1, (), {"yield_latency_ms": 1}), Call(2, (), {}))),
    )
    assert ("missing", "yield_latency_ms: seed 2 left out, one side has none") in list(said(lacking))


def batch(*failed: str, may_miss: int, unpaired: Sequence[int] = ()) -> Measured:
    """A batch of whose runs one after the other failed in this; "" in nothing."""
    runs = [
        RunResult(
            seed,
            "",
            CallFigures({}, "VOID x" if name == "void" else None, (), (), (), "agent"),
            Verdict((), (Failure(name, "", "", is_measured=name != "lacking"),) if name else ()),
        )
        for seed, name in enumerate(failed, 1)
    ]
    against = Against(side([1]), [], unpaired) if unpaired else None
    return Measured(make_plan("check-in", Setup()), runs, len(runs), {}, against, may_miss)


@pytest.mark.parametrize(
    ("failed", "may_miss", "unpaired", "is_as_wanted"),
    [
        (["", "void", "lacking"], 0, [], False),
        (["", "void", "lacking"], 1, [], False),
        (["", "void", "lacking"], 2, [], True),
        (["", "void", "heard"], 2, [], False),
        (["void", "void"], 2, [], False),
        (["", "", ""], 0, [2], False),
        (["", "", ""], 1, [2], True),
        (["", "void", ""], 1, [2], True),
        (["", "void", ""], 1, [3], False),
    ],
    ids=str,
)
def test_so_many_runs_may_be_missing_as_are_allowed_but_never_all_and_none_that_failed(
    failed: list[str], may_miss: int, unpaired: list[int], is_as_wanted: bool
) -> None:
    assert batch(*failed, may_miss=may_miss, unpaired=unpaired).is_as_wanted is is_as_wanted


def test_a_run_that_may_be_missing_is_skipped_in_junit() -> None:
    (suite,) = ET.fromstring(as_junit([batch("", "void", may_miss=1)]).partition("?>")[2])
    assert (suite.get("errors"), suite.get("skipped")) == ("0", "1")


def test_seeds_are_told_as_spans() -> None:
    assert seeds([4]) == "seed 4"
    assert seeds([7, 1, 2, 3, 9, 10]) == "seeds 1 to 3, 7, 9 to 10"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """A directory with what is written of a baseline's calls, of which one scenario's try nothing, and their output."""
    place = tmp_path_factory.mktemp("written")
    made = place / "made" / "on the way"
    late = variant(place, "late", ("reply.start + 6500 ms", "reply.start + 40000 ms"), ("about: ", "about: <&> "))
    files = ("--markdown", made / "told.md", "--junit", made / "cases.xml")
    return made, callwright(*RUNS, late, "--client", "naive", *files)


def test_markdown_says_the_same_as_the_terminal(written: tuple[Path, Result]) -> None:
    place, result = written
    told = (place / "told.md").read_text("utf-8")
    assert told.startswith(
        "### naive check-in, seeds 1 to 2\n\n| metric | n | median | p90 | min | max |\n| --- | ---: |"
    )
    cells = [line.strip("| ").split(" | ") for line in told.splitlines() if line.startswith("| heard_error_ms")]
    assert cells[0] in [line.split() for line in result.stdout.splitlines()]
    assert "\n- failed unheard_words_in_transcript: wanted at most 0, got " in told
    assert "\n- runs 0 of 2 ended as they should\n- missing 2 void (seeds 1 to 2)\n" in told
    assert "\nmissing 2 void (seeds 1 to 2)\n" in result.stdout


def test_junit_has_a_case_for_each_seed_and_tells_a_failure_from_a_call_that_was_not_tried(
    written: tuple[Path, Result],
) -> None:
    place, result = written
    root = ET.fromstring((place / "cases.xml").read_text("utf-8"))
    assert [dict(suite.attrib) for suite in root] == [
        {"name": "check-in, naive", "tests": "2", "failures": "2", "errors": "0", "skipped": "0"},
        {"name": "late, naive", "tests": "2", "failures": "0", "errors": "2", "skipped": "0"},
    ]
    problems = list(root.iterfind("*/testcase/*"))
    assert [problem.get("message") for problem in problems] == result.stderr.splitlines()
    assert [problem.get("type") for problem in problems] == [*["unheard_words_in_transcript"] * 2, *["void"] * 2]


def test_a_scenario_of_which_no_run_was_finished_is_an_error_in_junit() -> None:
    (suite,) = ET.fromstring(as_junit([], [make_plan("check-in", Setup())]).partition("?>")[2])
    counts = {"tests": "1", "failures": "0", "errors": "1", "skipped": "0"}
    assert dict(suite.attrib) == {"name": "check-in, callwright", **counts}
    assert [problem.get("message") for problem in suite.iterfind("testcase/error")] == ["no run was finished"]


def test_markdown_is_printed_instead_of_the_tables() -> None:
    result = callwright("measure", "check-in", "--markdown", "-")
    assert result.stdout.startswith("### callwright check-in, seed 1\n\n| metric |")
    assert "\ncallwright  check-in" not in result.stdout


def test_two_things_cannot_go_to_standard_output() -> None:
    result = callwright(*RUNS, "--json", "--markdown", "-")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--json and --markdown - would both go to standard output" in result.stderr


def test_a_file_that_cannot_be_written_is_refused_before_a_call(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = callwright(*RUNS, "--junit", tmp_path / "file" / "cases.xml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--junit" in result.stderr
    assert "choose another file" in " ".join(result.stderr.split())
