"""``callwright ledger``: what is in a ledger's file, and what a person does about it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.ledger.pages import TRAITS
from tests.ledger.rows import MASTERCARD, OP_ID, TERMS

from callwright.cli.main import main
from callwright.ledger.asking import Ask, Verdict
from callwright.ledger.page import Patience
from callwright.ledger.provider import Dispatch, Observed, OnAmbiguous, Outcome
from callwright.ledger.sqlite import SQLiteStore
from callwright.runtime.dispatcher import Ledger


class Bank:
    """A provider that answers as it is told to, and knows of nothing until then."""

    name = "payments"
    traits = replace(TRAITS, on_ambiguous=OnAmbiguous.QUARANTINE)

    def __init__(self, sent: Outcome = Outcome.UNKNOWN, found: Outcome = Outcome.APPLIED) -> None:
        self._sent = sent
        self._found = found

    async def send(self, dispatch: Dispatch) -> Observed:
        return Observed(self._sent, reason="timeout")

    async def look_up(self, dispatch: Dispatch) -> Observed:
        return Observed(self._found, None if self._found is Outcome.UNKNOWN else "re_1")

    async def cancel(self, dispatch: Dispatch) -> Observed:
        raise AssertionError


bank = Bank()
PROVIDER = ("--provider", "tests.cli.test_ledger:bank")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A ledger with one refund of which nobody knows what became, and a caller who hung up without."""

    async def ask() -> None:
        store = SQLiteStore(tmp_path / "refunds.db")
        patience = Patience(ask_ms=3_600_000, doubt_ms=0)
        async with Ledger(store, [Bank(found=Outcome.UNKNOWN)], patience=patience) as ledger:
            is_doubtful = asyncio.Event()
            ledger.subscribe(lambda fact: is_doubtful.set() if "Somebody" in fact.sentence else None)
            answer = await ledger.propose(Ask("refund", "full", "customer:81", "payments", TERMS, is_waited_for=True))
            await asyncio.wait_for(is_doubtful.wait(), 5)
            assert answer.fact is not None
            version = (await ledger.snapshot("customer:81"))[0].version
            await ledger.note_told(answer.op_id, "unknown", version, "deferred")

    asyncio.run(ask())
    return tmp_path / "refunds.db"


def called(file: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["ledger", *words, "--db", str(file)])


def rows(file: Path, *words: str) -> list[dict[str, Any]]:
    result = called(file, *words, "--json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.output.splitlines()]


def test_a_list_names_each_operation_with_what_may_be_said_of_it(file: Path) -> None:
    (row,) = rows(file, "list")
    assert (row["op_id"], row["party"], row["state"]) == (OP_ID, "customer:81", "unknown")
    assert row["sentence"].startswith("I can't tell yet whether the refund of 32 dollars")
    assert OP_ID[:8] in called(file, "list").output


def test_an_operation_is_shown_whole_by_the_beginning_of_its_id_and_without_a_secret(file: Path) -> None:
    (shown,) = rows(file, "show", OP_ID[:6])
    assert [event["target"] for event in shown["event"]][-1] == "unknown"
    assert shown["attempt"][0]["outcome"] == "unknown"
    plain = called(file, "show", OP_ID[:6]).output
    assert all(secret not in f"{shown} {plain}" for secret in ("tok_visa", "provider_key"))


@pytest.mark.parametrize("columns", ["70", "80", "120"])
def test_instants_are_times_where_people_read_them_and_milliseconds_in_json(
    file: Path, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    (shown,) = rows(file, "show", OP_ID)
    at = datetime.fromtimestamp(shown["event"][0]["at_ms"] / 1000, UTC)
    plain = called(file, "show", OP_ID).output
    assert "at (UTC)" in plain
    assert f"{at:%Y-%m-%d %H:%M:%S}" in plain
    assert shown["evidence"][0]["evidence_id"] not in plain


def test_a_doubt_is_asked_about_and_nothing_is_sent(file: Path) -> None:
    (row,) = rows(file, "reconcile", *PROVIDER)
    assert (row["op_id"], row["state"]) == (OP_ID, "confirmed")
    assert [row["state"] for row in rows(file, "list")] == ["confirmed"]
    assert rows(file, "reconcile", *PROVIDER) == []


def test_what_a_person_found_out_settles_it(file: Path) -> None:
    (row,) = rows(file, "settle", OP_ID, "applied", "--reference", "re_7", *PROVIDER)
    assert row["state"] == "confirmed"
    (shown,) = rows(file, "show", OP_ID)
    assert [(each["source"], each["reference"]) for each in shown["evidence"]][-1] == ("human", "re_7")


def test_an_outcome_that_a_person_found_out_leaves_the_caller_to_be_told(file: Path) -> None:
    assert "a person has to look: unknown" in called(file, "problems").output
    rows(file, "settle", OP_ID, "applied", *PROVIDER)
    assert "the caller has to be told: The refund of 32 dollars" in called(file, "problems").output
    rows(file, "settle", OP_ID, "told")
    assert called(file, "problems").output == "the record agrees with itself, and nothing waits for a person\n"
    assert rows(file, "problems") == []
    assert [row["owed"] for row in rows(file, "list")] == [""]


def test_what_was_wanted_too_late_is_a_problem_until_somebody_has_seen_to_it(file: Path) -> None:
    rows(file, "settle", OP_ID, "applied", *PROVIDER)
    rows(file, "settle", OP_ID, "told")

    async def want_another_card() -> None:
        ledger = Ledger(SQLiteStore(file), [Bank()])
        answer = await ledger.propose(Ask("refund", "full", "customer:81", "payments", replace(TERMS, card=MASTERCARD)))
        assert answer.verdict is Verdict.CONFLICT
        ledger.close()

    asyncio.run(want_another_card())
    result = called(file, "problems")
    assert result.exit_code == 1
    assert result.output.startswith(f"refund order:4417 full ({OP_ID[:8]}): the caller wanted something else")
    assert "refund of 32 dollars to the Mastercard ending in 8 8 1 2" in result.output
    assert rows(file, "settle", OP_ID[:8], "seen_to")[0]["state"] == "confirmed"
    assert rows(file, "problems") == []


def test_a_record_that_does_not_agree_exits_with_1_and_says_why(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE operation SET state = 'confirmed', state_version = 9")
    result = called(file, "problems")
    assert result.exit_code == 1
    assert "events have a gap (I12)" in result.output


def test_a_provider_that_is_given_is_held_against_the_record_and_nothing_is_taken_in(file: Path) -> None:
    name = "refund order:4417 full: the record says unknown, and payments says applied"
    result = called(file, "problems", *PROVIDER)
    assert (result.exit_code, result.output.splitlines()[0]) == (1, name)
    assert name not in called(file, "problems").output, "nobody is asked who was not named"
    assert [row["state"] for row in rows(file, "list")] == ["unknown"]
    rows(file, "reconcile", *PROVIDER)
    assert "the record says" not in called(file, "problems", *PROVIDER).output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("show",), "expected: callwright ledger show OP"),
        (("show", "zzz"), "no operations begin with 'zzz'"),
        (("settle", OP_ID), "expected: callwright ledger settle OP WORD, with applied, not_applied"),
        (("settle", OP_ID, "perhaps"), "expected: callwright ledger settle OP WORD"),
        (("settle", "", "applied"), "no operations begin with ''"),
        (("settle", OP_ID, "told"), "nothing of that operation waits to be told"),
        (("reconcile", "--provider", "nowhere:bank"), "--provider nowhere:bank: expected MODULE:NAME"),
        (
            ("list", "--provider", "os:path"),
            "--provider os:path: expected MODULE:NAME of a provider; what is there has no",
        ),
        (("list", "--provider", "bank"), "--provider bank: expected MODULE:NAME"),
        (("burn",), "'burn' is not one of"),
    ],
)
def test_wrong_use_exits_with_2_and_says_what_to_do(file: Path, words: tuple[str, ...], told: str) -> None:
    result = called(file, *words)
    assert result.exit_code == 2
    assert told in result.output


def test_without_its_provider_an_operation_cannot_be_asked_about(file: Path) -> None:
    result = called(file, "reconcile")
    assert result.exit_code == 1
    assert "needs the provider 'payments'" in result.output


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    result = called(tmp_path / "none.db", "list")
    assert result.exit_code == 2
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("text", ["def broken(:", "raise RuntimeError('no')", "raise SystemExit(3)"])
def test_a_provider_whose_module_cannot_be_imported_is_wrong_use(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "shop_that_breaks.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    result = called(file, "list", "--provider", "shop_that_breaks:bank")
    assert result.exit_code == 2
    assert "--provider shop_that_breaks:bank: expected MODULE:NAME of a provider; " in result.output
    assert "shop_that_breaks.py:1" in result.output


def test_what_is_written_in_the_record_is_shown_as_it_is(file: Path) -> None:
    """No order's name is markup, or a little picture."""
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE operation SET slot = '[/]', party = ':x:'")
    assert all(name in called(file, "list").output for name in ("[/]", ":x:"))
