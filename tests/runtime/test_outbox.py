"""What a call leaves untold is in somebody's hands: in the outbox, in its file, and in the next call."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.rows import TERMS
from tests.runtime.calls import ANYTHING, OPENING, Taken, calls, delta, ended, reply, started, written
from tests.runtime.refunds import CARDS, EFFECT, PARTY, Shop, notes, now_ms, outputs, play, refund, stand_in, take_call

from callwright.ledger.asking import Ask
from callwright.ledger.sqlite import SQLiteStore
from callwright.runtime.dispatcher import Ledger
from callwright.sim.behind.dying import Crash, Life, MortalStore
from callwright.sim.provider import Fault, ProviderSettings, StandIn
from callwright.sim.vloop import run_virtual
from callwright.testing.scripted import after, expect

ASKS = (started(), delta(400), written("One moment."), calls("issue_refund", arguments=refund()), ended())
DONE = "The refund of 32 dollars to the Visa ending in 4 2 4 2 is done."


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line]


async def hung_up(ledger: Ledger, hang_up_ms: int = 1_000) -> Taken:
    """A call whose caller hangs up before there is an outcome."""
    return await take_call(ledger, *OPENING, *ASKS, hang_up_ms=hang_up_ms, ignoring=ANYTHING)


def test_what_a_call_ends_without_is_named_and_owed_and_comes_to_the_outbox_with_its_outcome() -> None:
    shop = Shop()

    async def go(ledger: Ledger) -> None:
        taken = await hung_up(ledger)
        (left,) = taken.result.untold
        assert (left.milestone, left.sentence) == (
            "accepted",
            "The refund of 32 dollars to the Visa ending in 4 2 4 2 has been submitted; there is no result yet.",
        )
        assert await ledger.outbox() == ()
        await asyncio.sleep(30)
        assert [(row.kind, row.reason) for row in await ledger.outbox()] == [("untold", DONE)]
        assert [fact.sentence for fact in await ledger.untold(PARTY)] == [DONE]

    play(shop, go)


def test_who_rings_again_before_there_is_an_outcome_is_told_it_on_the_line() -> None:
    """It is on the outbox from the outcome on, and off it once he heard."""
    shop = Shop(stand_in(settles_ms=8_000))

    async def go(ledger: Ledger) -> None:
        await hung_up(ledger)
        tells = (expect("response.create"), *reply(DONE, 8_000, "c", "r5"))
        others = [each for each in ANYTHING if each != "response.create"]
        taken = await take_call(ledger, *OPENING, *tells, after(500), hang_up_ms=20_000, ignoring=others)
        assert [note["state"] for note in notes(taken)] == ["accepted", "confirmed"]
        assert await ledger.outbox() == ()

    play(shop, go)
    assert shop.effects == [EFFECT]


def test_the_outbox_file_has_each_row_once_over_several_processes(tmp_path: Path) -> None:
    path = tmp_path / "outbox.jsonl"
    shop = Shop()

    async def go() -> None:
        async with shop.ledger(outbox=path) as ledger:
            await hung_up(ledger)
            await asyncio.sleep(30)
            assert len(lines(path)) == 1
        for _ in range(2):
            async with shop.ledger(outbox=path):
                await asyncio.sleep(1)

    run_virtual(go())
    (row,) = lines(path)
    assert (row["kind"], row["party"], row["sentence"]) == ("untold", PARTY, DONE)
    assert "card:4242" not in path.read_text()


def test_a_line_that_was_cut_short_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "outbox.jsonl"
    shop = Shop()

    async def go() -> None:
        async with shop.ledger(outbox=path) as ledger:
            await hung_up(ledger)
            await asyncio.sleep(30)
        whole = path.read_bytes()
        path.write_bytes(whole[:40])
        async with shop.ledger(outbox=path):
            pass
        assert path.read_bytes() == whole[:40] + b"\n" + path.read_bytes()[41:]
        assert [row["kind"] for row in map(json.loads, path.read_text().splitlines()[1:])] == ["untold"]

    run_virtual(go())


def test_a_file_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    shop = Shop()

    async def go() -> None:
        async with shop.ledger(outbox=tmp_path / "nowhere" / "outbox.jsonl") as ledger:
            await hung_up(ledger)
            await asyncio.sleep(30)
            assert len(await ledger.outbox()) == 1

    run_virtual(go())
    assert shop.effects == [EFFECT]


def test_what_a_person_has_to_look_at_is_in_the_file_too(tmp_path: Path) -> None:
    path = tmp_path / "outbox.jsonl"
    shop = Shop(StandIn(ProviderSettings(faults={"garbled": Fault()})))

    async def go() -> None:
        async with shop.ledger(outbox=path) as ledger:
            terms = replace(TERMS, card=CARDS["4242"])
            await ledger.propose(Ask("refund", "full", PARTY, "payments", terms))
            await asyncio.sleep(3_600)

    run_virtual(go())
    assert "person" in [row["kind"] for row in lines(path)]


def test_what_was_wanted_too_late_is_in_the_file_too(tmp_path: Path) -> None:
    path = tmp_path / "outbox.jsonl"
    shop = Shop()

    async def go() -> None:
        async with shop.ledger(outbox=path) as ledger:
            for card in ("4242", "8812"):
                await ledger.propose(Ask("refund", "full", PARTY, "payments", replace(TERMS, card=CARDS[card])))
                await asyncio.sleep(60)
            assert [row["kind"] for row in lines(path)] == ["conflict"]

    run_virtual(go())


@pytest.mark.parametrize("point", ["before provider", "after provider", "before fold", "after fold"])
def test_a_process_that_dies_in_the_call_is_followed_by_one_that_knows(point: str, tmp_path: Path) -> None:
    """One effect, owed to the caller at once; if he rings again he is told from the file that both processes use."""
    shop = Shop()
    file = tmp_path / "refunds.db"

    async def go() -> Taken:
        life = Life([Crash(point, 1, 0)])
        adapter = shop.provider.adapter()
        with closing(SQLiteStore(file)) as left_behind:  # by the dead process, whose files the system closes
            first = Ledger(MortalStore(left_behind, life), [adapter], clock=now_ms, crash_at=life.crash_at)
            async with first:
                await hung_up(first, 2_000)
        async with Ledger(SQLiteStore(file), [shop.provider.adapter()], clock=now_ms) as second:
            await asyncio.sleep(120)
            assert [(row.kind, row.reason) for row in await second.outbox()] == [("untold", DONE)]
            again = await take_call(second, *OPENING, *ASKS, ignoring=ANYTHING)
            assert await second.problems() == ()
            return again

    taken = run_virtual(go())
    assert shop.effects == [EFFECT]
    assert notes(taken)[0]["state"] == "confirmed"
    assert outputs(taken)["k1"]["asked"] == "replayed"
