"""``callwright demo``: what a newcomer sees first."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from click.testing import Result
from tests.cli.calling import callwright

from callwright.cli.demo import DEMOS

Shown = Callable[[str, int], tuple[Result, Path]]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """A demo by name, so many columns wide, and where its files are; each is played once."""

    @cache
    def play(name: str, columns: int) -> tuple[Result, Path]:
        directory = tmp_path_factory.mktemp("demo")
        page = directory.with_suffix(".html")
        return callwright("demo", name, "--out", directory, "--report", page, columns=columns), directory

    return play


@pytest.mark.parametrize(
    ("name", "columns"), [("refunds", 80), ("check-in", 120), ("pickup", 80), ("room", 80), ("pharmacy", 80)]
)
def test_the_demo_fits_the_terminal_and_is_plain_in_a_pipe(name: str, columns: int, demo: Shown) -> None:
    result, directory = demo(name, columns)
    assert result.exit_code == 0, result.output
    lines = [line for line in result.stdout.splitlines() if str(directory) not in line]
    assert max(map(len, lines)) <= columns
    assert [line for line in lines if line != line.rstrip()] == []
    assert "\x1b" not in result.stdout
    assert not result.stderr


def test_the_demo_marks_what_the_naive_client_believes_and_nobody_heard(demo: Shown) -> None:
    result, directory = demo("check-in", 120)
    naive, ours = result.stdout.split("\ncallwright  ")
    assert "[of one hundred dollars" in naive.replace("\n", " ")
    assert "words that the caller never heard" in naive
    assert "Client and server believe what the caller heard, and nothing else." in ours
    assert "[of one" not in ours
    assert {path.name for path in directory.iterdir()} == {
        "check-in-naive-lag-ms-1500-1",
        "check-in-callwright-lag-ms-1500-1",
    }


def test_the_demo_of_actions_shows_record_and_book_of_who_is_never_told_and_of_who_is(demo: Shown) -> None:
    result, directory = demo("refunds", 80)
    calls = [" ".join(part.split()) for part in re.split(r"\n(?=\S+  \S+, seed 1\n)", result.stdout)[1:]]
    never_told, told, paid_twice, changed = calls
    assert "ledger none: what suppresses-reply knows ends with the call" in never_told
    assert "The caller never heard what became of 1 effect." in never_told
    assert "told confirmed: heard at" in told
    assert paid_twice.count(": succeeded at") == 2
    assert "The provider's book holds 1 effect too many." in paid_twice
    assert "attempt 1 refund order:4417 32.00 USD card:4242: cancelled" in changed
    assert changed.count(": succeeded at") == 1
    for ours in (told, changed):
        assert "What was done was done once, and he heard the outcome." in ours
    assert {path.name for path in directory.iterdir()} == {
        "did-it-go-through-suppresses-reply-1",
        "did-it-go-through-callwright-1",
        "wrong-card-cancels-on-barge-in-1",
        "wrong-card-callwright-1",
    }


def test_a_demo_that_there_is_not_is_answered_with_those_that_there_are() -> None:
    result = callwright("demo", "pharmcy")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(
        "callwright: there is no demo 'pharmcy': expected refunds, check-in, pickup, room, pharmacy, or a scenario"
    )
    assert result.stderr.endswith('; did you mean "pharmacy"?\n')


def test_the_page_of_the_demo_has_all_of_its_calls(demo: Shown) -> None:
    _, directory = demo("refunds", 80)
    page = directory.with_suffix(".html").read_text("utf-8")
    assert page.count("<audio ") == 4
    assert page.count('class="badge held"') == page.count('class="badge must"') == 2


def test_the_demo_of_the_edges_shows_what_was_lost_and_how_much_of_the_goodbye_was_heard(demo: Shown) -> None:
    result, directory = demo("pickup", 80)
    calls = [" ".join(part.split()) for part in re.split(r"\n(?:naive|callwright)  ", result.stdout)[1:]]
    naive, ours, naive_talk_over, ours_talk_over = calls
    for before in (naive, naive_talk_over):
        assert "The model never heard 6 words of the caller's." in before
        assert "The caller heard 1.01 s of a goodbye of 4.74 s." in before
    assert "hung up on a caller who spoke" in naive_talk_over
    for after in (ours, ours_talk_over):
        assert "No word of the caller's was lost, and he heard the whole goodbye." in after
    assert "taken back: the call went on" in ours_talk_over
    assert {path.name for path in directory.iterdir()} == {
        f"{scenario}-{client}-1" for scenario in DEMOS["pickup"].scenarios for client in ("naive", "callwright")
    }


def test_the_demo_of_a_room_shows_a_client_that_its_own_voice_cuts_off_and_one_that_cancels_it(demo: Shown) -> None:
    result, directory = demo("room", 80)
    naive, ours = [" ".join(part.split()) for part in re.split(r"\n(?:naive|callwright)  ", result.stdout)[1:]]
    assert "Its own voice cut the agent off 5 times, and 4 turns of the caller's are its own words." in naive
    assert "starts over 1" in naive
    assert "Client and server believe what the caller heard, and nothing else." in ours
    assert {path.name for path in directory.iterdir()} == {"speakers-naive-1", "speakers-callwright-1"}
