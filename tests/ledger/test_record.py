"""The door to the ledger on an event loop: what is committed is published, whoever waits or does not."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace

import pytest
from tests.ledger.pages import TRAITS, ask

from callwright.errors import LedgerError
from callwright.ledger.asking import Answer, Verdict
from callwright.ledger.operation import Actor, State
from callwright.ledger.provider import Dispatch, Observed, Outcome
from callwright.ledger.record import Record
from callwright.ledger.rows import Event, Operation, provider_key
from callwright.ledger.saying import FactChanged
from callwright.ledger.sending import advance
from callwright.ledger.sqlite import SQLiteStore
from callwright.ledger.store import MemoryStore
from callwright.sim.vloop import run_virtual


class Nowhere:
    """A provider that nobody reaches here: the record itself sends nothing."""

    name = "payments"
    traits = TRAITS

    async def send(self, dispatch: Dispatch) -> Observed:
        raise AssertionError

    async def look_up(self, dispatch: Dispatch) -> Observed:
        raise AssertionError

    async def cancel(self, dispatch: Dispatch) -> Observed:
        raise AssertionError


def record(store=None, **options) -> Record:
    return Record(store or MemoryStore(), [Nowhere()], **options)


def test_a_fact_is_published_once_for_each_commit_and_to_its_party_only():
    async def main() -> None:
        kept, everybodys, others = record(), [], []
        end = kept.subscribe(everybodys.append)
        kept.subscribe(others.append, party="customer:82")
        await kept.propose(ask())
        await kept.propose(ask())
        assert [fact.milestone for fact in everybodys] == ["requested"]
        assert others == []
        end()
        await kept.propose(ask(slot="line:1"))
        assert len(everybodys) == 1
        kept.close()

    run_virtual(main())


def test_f32_a_cancelled_wish_is_committed_and_published_all_the_same():
    async def main() -> None:
        kept, facts = record(), []
        kept.subscribe(facts.append)
        wish = asyncio.get_running_loop().create_task(kept.propose(ask()))
        await asyncio.sleep(0)
        wish.cancel()
        await asyncio.sleep(1)
        assert wish.cancelled()
        assert [fact.milestone for fact in facts] == ["requested"]
        assert [fact.milestone for fact in await kept.snapshot("customer:81")] == ["requested"]
        kept.close()

    run_virtual(main())


def test_i14_a_snapshot_shows_a_party_its_own():
    async def main() -> tuple[FactChanged, ...]:
        kept = record()
        await kept.propose(ask())
        await kept.propose(ask(subject="order:4418", party="customer:82"))
        return await kept.snapshot("customer:82")

    assert [fact.terms.subject for fact in run_virtual(main())] == ["order:4418"]


def test_f30_time_never_runs_backwards():
    times = iter([1_000, 400, 1_200])
    kept = record(clock=lambda: next(times))
    assert [kept.now_ms() for _ in range(3)] == [1_000, 1_000, 1_200]
    kept.close()


async def _running(kept: Record) -> Answer:
    answer = await kept.propose(ask())
    await kept.commit(lambda page: advance(page, answer.op_id))
    return answer


def test_f18_a_message_that_comes_twice_is_one_and_one_about_nothing_of_ours_is_refused():
    async def main() -> None:
        kept, facts = record(), []
        answer = await _running(kept)
        kept.subscribe(facts.append)
        key = provider_key(answer.op_id, 1, 1)
        for _ in range(2):
            fact = await kept.observe(key, Observed(Outcome.APPLIED, "re_1", version=2))
            assert fact.milestone == "confirmed"
        assert len(facts) == 1
        with pytest.raises(LedgerError, match="no attempt"):
            await kept.observe("another key", Observed(Outcome.APPLIED))
        kept.close()

    run_virtual(main())


def test_a_person_settles_a_doubt_with_a_reference():
    async def main() -> None:
        kept = record()
        answer = await _running(kept)
        key = provider_key(answer.op_id, 1, 1)
        await kept.observe(key, Observed(Outcome.UNKNOWN), Actor.HUMAN)
        fact = await kept.observe(key, Observed(Outcome.NOT_APPLIED, "re_1"), Actor.HUMAN)
        assert fact.milestone == "failed"
        assert await kept.problems() == ()
        kept.close()

    run_virtual(main())


def test_what_a_person_has_seen_to_leaves_the_outbox_and_a_doubt_stays_his():
    async def main() -> None:
        kept = record()
        answer = await _running(kept)
        key = provider_key(answer.op_id, 1, 1)
        await kept.observe(key, Observed(Outcome.UNKNOWN, reason="mismatch", escalates=True))
        (row,) = await kept.outbox()
        assert (row.kind, row.reason) == ("person", "mismatch")
        assert "Somebody will look at it" in (await kept.done(row.op_id, row.version)).sentence
        assert await kept.outbox() == ()
        await kept.observe(key, Observed(Outcome.APPLIED, "re_1"), Actor.HUMAN)
        assert (await kept.done(row.op_id, row.version)).sentence.endswith("is done.")
        assert await kept.problems() == ()
        with pytest.raises(LedgerError, match="nothing of operation"):
            await kept.done(row.op_id, 99)
        kept.close()

    run_virtual(main())


def test_what_was_told_is_kept_for_each_fact():
    async def main() -> None:
        kept = record()
        answer = await kept.propose(ask())
        await kept.note_told(answer.op_id, "confirmed", 4, "owed")
        await kept.note_told(answer.op_id, "confirmed", 4, "heard")
        await kept.note_told(answer.op_id, "reversed", 5, "owed")
        rows = [(row.milestone, row.version, row.state) for row in await kept.told(answer.op_id)]
        assert rows == [("confirmed", 4, "heard"), ("reversed", 5, "owed")]
        kept.close()

    run_virtual(main())


def test_a_wish_for_a_provider_that_the_ledger_does_not_have_is_an_error_and_leaves_nothing():
    async def main() -> None:
        kept = record()
        with pytest.raises(LedgerError, match="'elsewhere'"):
            await kept.propose(replace(ask(), provider="elsewhere"))
        assert await kept.snapshot("customer:81") == ()
        kept.close()

    run_virtual(main())


def test_on_a_real_loop_commits_run_off_it_one_after_another(tmp_path):
    async def main() -> list[Answer]:
        kept = record(SQLiteStore(tmp_path / "ledger.db"))
        answers = await asyncio.gather(*[kept.propose(ask()) for _ in range(20)])
        assert await kept.problems() == ()
        kept.close()
        return answers

    verdicts = [answer.verdict for answer in asyncio.run(main())]
    assert verdicts == [Verdict.CREATED] + [Verdict.JOINED] * 19


def test_two_ledgers_on_one_file_make_one_operation(tmp_path):
    async def main() -> list[Answer]:
        kept = [record(SQLiteStore(tmp_path / "ledger.db")) for _ in range(2)]
        answers = await asyncio.gather(*[each.propose(ask()) for each in kept * 5])
        for each in kept:
            each.close()
        return answers

    verdicts = [answer.verdict for answer in asyncio.run(main())]
    assert verdicts.count(Verdict.CREATED) == 1
    assert verdicts.count(Verdict.JOINED) == 9


# What the audit finds


TAMPERED = {
    "DELETE FROM event WHERE seq = 2": "I12",
    "UPDATE event SET target = 'failed' WHERE seq = 3": "I12",
    "UPDATE event SET actor = 'model' WHERE step = 'dispatch'": "I6",
    "UPDATE operation SET state = 'failed'": "I12",
    "DELETE FROM evidence": "I5",
    "DELETE FROM authorization": "I7",
    "UPDATE attempt SET params_hash = 'other'": "I7",
}


@pytest.mark.parametrize(("tampering", "invariant"), TAMPERED.items())
def test_a_record_that_was_tampered_with_says_so(tampering, invariant, tmp_path):
    async def main() -> tuple[str, ...]:
        store = SQLiteStore(tmp_path / "ledger.db")
        kept = record(store)
        answer = await _running(kept)
        await kept.observe(provider_key(answer.op_id, 1, 1), Observed(Outcome.APPLIED, "re_1"))
        assert await kept.problems() == ()
        with sqlite3.connect(tmp_path / "ledger.db") as other:
            other.execute(tampering)
        other.close()
        found = await kept.problems()
        with pytest.raises(LedgerError, match="does not agree"):
            await kept.check()
        kept.close()
        return found

    assert any(invariant in problem for problem in run_virtual(main()))


def test_every_version_of_an_operation_is_an_event():
    async def main() -> None:
        kept = record()
        answer = await _running(kept)
        (operation,), events = await kept.commit(lambda page: (page.tx.find(Operation), page.tx.find(Event)))
        assert operation.op_id == answer.op_id
        assert operation.state is State.RUNNING
        assert [event.seq for event in events] == list(range(1, operation.state_version + 1))
        kept.close()

    run_virtual(main())


def test_c088_a_message_that_is_delivered_again_while_the_first_is_taken_in_changes_nothing_more():
    async def main() -> None:
        kept, facts = record(), []
        op_id = (await kept.propose(ask())).op_id
        await kept.commit(lambda page: advance(page, op_id))
        kept.subscribe(facts.append)
        key = provider_key(op_id, 1, 1)
        done = Observed(Outcome.APPLIED, "re_1", version=2)
        first, second = await asyncio.gather(kept.observe(key, done), kept.observe(key, done))
        await kept.observe(key, done)
        assert first == second
        assert [fact.milestone for fact in facts] == ["confirmed"]
        events = await kept.commit(lambda page: page.tx.find(Event, op_id=op_id))
        assert sum(event.target is State.CONFIRMED for event in events) == 1
        kept.close()

    run_virtual(main())
