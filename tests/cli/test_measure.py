"""``callwright measure``: figures over many calls, the same wherever and whenever they are played."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from tests.cli.calling import CHECK_IN, callwright, process, variant


def test_the_same_seeds_give_the_same_bytes_in_two_processes_and_two_hash_seeds() -> None:
    arguments = ("measure", "check-in", "--seed", 1, "--json")
    one, other = (process(*arguments, PYTHONHASHSEED=seed) for seed in ("0", "1"))
    assert one.returncode == other.returncode == 0, one.stderr
    assert one.stdout == other.stdout
    assert not one.stderr
    summary = json.loads(one.stdout)
    assert (summary["seed"], summary["runs"], summary["void"]) == (1, 1, [])
    assert list(summary["metrics"]["heard_error_ms"]) == ["runs", "n", "median", "interval", "p90", "min", "max"]
    assert summary["metrics"]["heard_error_ms"]["max"] <= 20
    assert list(summary["expectations"]) == ["passed", "failed"]


def test_each_scenario_has_a_line_of_its_own_and_one_that_fails_fails_all(tmp_path: Path) -> None:
    strict = variant(tmp_path, "strict", ("starts_over: 0", "yield_latency_ms: 0"))
    result = callwright("measure", strict, "check-in", "--json", "--quiet")
    assert result.exit_code == 1
    first, second = map(json.loads, result.stdout.splitlines())
    assert (first["scenario"], second["scenario"]) == ("strict", "check-in")
    assert [failure["name"] for failure in first["expectations"]["failed"]] == ["yield_latency_ms"]
    assert second["expectations"]["failed"] == []
    assert not result.stderr


def test_settings_are_told_and_keep_what_is_believed_from_the_server(tmp_path: Path) -> None:
    result = callwright("measure", "check-in", "--lag-ms", 1500, "--no-truncate", "--json", "--quiet")
    summary = json.loads(result.stdout)
    assert summary["settings"] == {"lag_ms": 1500, "truncate": False}
    assert summary["metrics"]["unheard_words_in_history"]["min"] > 0


def test_tools_that_wait_and_tools_that_do_not_are_measured_side_by_side() -> None:
    """In one of them an action's output waits for the outcome; of both the waiting and the claims are told."""
    traces = []
    for mode in ("async", "blocking"):
        summary = json.loads(callwright("measure", "did-it-go-through", "--tools", mode, "--json", "--quiet").stdout)
        assert summary["settings"] == {"tools": mode}
        assert {"response_latency_ms", "dead_air_ms", "false_claims_heard"} <= summary["metrics"].keys()
        traces.append(summary["trace_sha256"])
    assert traces[0] != traces[1]


def test_an_audit_is_told_and_its_replay_asks_too(tmp_path: Path) -> None:
    strict = variant(tmp_path, "strict", ("starts_over: 0", "yield_latency_ms: 0"))
    result = callwright("measure", "booking", strict, "--audit", "--json")
    booking, _ = map(json.loads, result.stdout.splitlines())
    assert booking["settings"] == {"audit": True}
    assert booking["metrics"]["tool_calls_kept"]["min"] == 1
    assert "--seed 1 --audit\n" in result.stderr


@pytest.mark.parametrize(("scenario", "option"), [("did-it-go-through", "--tools blocking"), ("hold", "--max-hold 60")])
@pytest.mark.parametrize("taker", ["--before", "--client naive"])
def test_what_only_our_client_has_cannot_be_chosen_for_a_baseline(scenario: str, option: str, taker: str) -> None:
    result = callwright("measure", scenario, *option.split(), *taker.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert option.split()[0] in result.stderr


def test_only_a_call_that_the_agent_makes_can_be_on_hold() -> None:
    for option in ("--hold", "--max-hold"):
        result = callwright("measure", "check-in", option, "60")
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"leave out {option}" in result.stderr


def test_a_dialect_has_its_own_expectations_and_is_told() -> None:
    result = callwright("measure", "check-in", "booking", "--dialect", "openai", "--json", "--quiet")
    assert result.exit_code == 0
    assert [json.loads(line)["server"] for line in result.stdout.splitlines()] == ["openai", "openai"]
    before = callwright("measure", "check-in", "--dialect", "openai", "--before", "--json", "--quiet")
    assert before.exit_code == 0
    assert json.loads(before.stdout)["client"] == "naive"


def test_the_replay_of_a_run_names_its_dialect() -> None:
    result = callwright("measure", "check-in", "--dialect", "plain", "--lag-ms", 1500)
    assert result.exit_code == 1
    assert "callwright call check-in --seed 1 --dialect plain --lag-ms 1500\n" in result.stderr


@pytest.mark.parametrize("baseline", [[], ["--before"]])
def test_a_dialect_that_mends_no_history_says_in_the_scenario_what_it_cannot_hold(baseline: list[str]) -> None:
    result = callwright("measure", "check-in", "booking", "--dialect", "plain", "--json", "--quiet", *baseline)
    assert result.exit_code == 0, result.output


def test_the_replay_of_a_scenario_given_by_path_finds_it_though_its_name_is_another_s(tmp_path: Path) -> None:
    (tmp_path / "my calls").mkdir()
    path = variant(tmp_path / "my calls", "check-in", ("reply.start + 6500 ms", "reply.start + 40000 ms"))
    result = callwright("measure", path)
    assert result.stderr.endswith(f"; replay: callwright call '{path}' --seed 1\n")
    shipped = callwright("measure", CHECK_IN, "--client", "naive")
    assert shipped.stderr.endswith("; replay: callwright call check-in --seed 1 --client naive\n")


def test_calls_that_would_write_over_each_other_are_refused(tmp_path: Path) -> None:
    path = variant(tmp_path, "check-in")
    result = callwright("measure", path, "check-in", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert f"{path} and {CHECK_IN} would both write to" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_call_ended_at_its_limit_says_so_and_what_it_waited_for(tmp_path: Path) -> None:
    path = variant(
        tmp_path, "stuck", ("reply.end + 1000 ms", "reply.end + 90000 ms"), ("before:", "limit_ms: 60000\nbefore:")
    )
    result = callwright("measure", path)
    assert result.stderr.startswith(
        "CENSORED stuck seed 1: the call broke off: ended at limit_ms 60000; step 4 (reply.end + 90000 ms) never came"
    )


def test_a_figure_that_was_expected_and_not_measured_says_why(tmp_path: Path) -> None:
    path = variant(
        tmp_path,
        "calm",
        ("  - {when: reply.start + 6500 ms, says: ask-parking} # 4 s into the answer, behind the notice\n", ""),
    )
    result = callwright("measure", path, "--json")
    (failure,) = [f for f in json.loads(result.stdout)["expectations"]["failed"] if f["name"] == "heard_error_ms"]
    assert failure["got"] == ["not measured (no reply was cut)"]


def test_a_failed_run_is_told_with_the_command_that_plays_it_again(tmp_path: Path) -> None:
    result = callwright("measure", "check-in", "--client", "naive", "--seed", 4, "--runs", 2, "--lag-fixed-ms", 300)
    remark, _, replay = result.stderr.splitlines()[0].partition("; replay: callwright ")
    assert remark.startswith("FAILED check-in seed 4: unheard_words_in_transcript: wanted at most 0, got ")
    again = callwright(*shlex.split(replay), "--json", "--out", tmp_path)
    failed = json.loads(again.stdout)["expectations"]["failed"]
    assert [failure["got"] for failure in failed] == [[remark.rpartition(" ")[2]]]
    assert f" in 2 of 2; callwright {replay}\n" in result.stdout  # however narrow the terminal is


def test_a_void_run_fails_and_its_replay_finds_a_scenario_given_by_path(tmp_path: Path) -> None:
    path = variant(tmp_path, "late", ("reply.start + 6500 ms", "reply.start + 40000 ms"))
    result = callwright("measure", path)
    assert result.exit_code == 1
    assert result.stderr.startswith("VOID late seed 1: ")
    assert result.stderr.endswith(f"; replay: callwright call {path} --seed 1\n")
    assert "VOID late seed 1" in result.stdout


def test_figures_over_many_runs_are_a_table_and_files_are_written_on_request(tmp_path: Path) -> None:
    result = callwright("measure", "check-in", "--runs", 2, "--before", "--out", tmp_path)
    assert result.exit_code == 0
    heading, _, head, *rows = result.stdout.splitlines()
    assert heading == "naive  check-in, seeds 1 to 2"
    assert head.split() == ["metric", "n", "median", "p90", "min", "max"]
    assert rows[0].split()[:2] == ["heard_error_ms", "2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["check-in-naive-1", "check-in-naive-2"]


def test_another_provider_is_told_and_its_replay_has_it_too() -> None:
    result = callwright("measure", "wrong-card", "--provider", "sync,after_ms=200", "--json")
    summary = json.loads(result.stdout)
    assert summary["settings"] == {"provider": "sync,after_ms=200"}
    assert "--seed 1 --provider sync,after_ms=200\n" in result.stderr
    failed = {failure["name"]: failure["got"] for failure in summary["expectations"]["failed"]}
    assert failed["effects"] == ["refund order:4417 32.00 USD card:4242"]


@pytest.mark.parametrize(
    ("scenario", "provider", "problem"),
    [
        ("wrong-card", "sink", '--provider:1:1: answers: expected one of pending, sync; got "sink"'),
        ("wrong-card", "sync,after=5", "--provider:1:6: expected one of 12 names, nearest after_ms"),
        ("wrong-card", "sync,after_ms=soon", "--provider:1:6: after_ms: expected a whole number"),
        ("wrong-card", "faults=lost-reply+lost", "--provider:1:1: faults 2: fault 'lost'"),
        ("wrong-card", "late_ms=9", "--provider:1:1: late_ms: expected a list of two times"),
        ("check-in", "sync", "this scenario has none"),
    ],
)
def test_a_provider_that_means_nothing_is_refused_before_a_call(scenario: str, provider: str, problem: str) -> None:
    result = callwright("measure", scenario, "--provider", provider)
    assert (result.exit_code, result.stdout) == (2, "")
    assert problem in result.stderr
