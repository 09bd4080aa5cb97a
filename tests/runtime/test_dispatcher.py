"""The dispatcher sees every operation through: at most one effect, whatever is lost, late or dies on the way."""

from __future__ import annotations

import ast
import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from tests.ledger.rows import MASTERCARD, TERMS, VISA

from callwright.errors import LedgerError
from callwright.ledger.asking import Answer, Ask, Verdict
from callwright.ledger.page import Patience
from callwright.ledger.provider import Dispatch, Idempotency, Observed, OnAmbiguous, Outcome
from callwright.ledger.rows import Attempt
from callwright.ledger.saying import FactChanged
from callwright.ledger.sqlite import SQLiteStore
from callwright.ledger.store import MemoryStore, Store, Transaction
from callwright.runtime import dispatcher
from callwright.runtime.dispatcher import POINTS, Ledger
from callwright.sim.behind.dying import POINTS_OF_DEATH, Crash, Life, MortalStore
from callwright.sim.provider import Answers, Fault, ProviderSettings, StandIn
from callwright.sim.provider.book import Sent
from callwright.sim.provider.oracle import duplicate_effects, live_effects
from callwright.sim.vloop import VirtualLoop, run_virtual

EFFECT = "refund order:4417 32.00 USD card:4242"
OTHER_EFFECT = "refund order:4417 32.00 USD card:8812"
ON_FILE = {"card:4242": replace(VISA, token="card:4242"), "card:8812": replace(MASTERCARD, token="card:8812")}


def ask(card: str = "card:4242") -> Ask:
    return Ask("refund", "full", "customer:81", "payments", replace(TERMS, card=ON_FILE[card]))


def clock() -> Callable[[], int]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.now_ms


def opened(provider: StandIn, store: Store | None = None, **options) -> Ledger:
    return Ledger(store or MemoryStore(), [provider.adapter()], clock=clock(), **options)


def stand_in(*, seed: int = 1, **settings) -> StandIn:
    faults = {name.replace("_", "-"): fault for name, fault in settings.pop("faults", {}).items()}
    return StandIn(ProviderSettings(faults=faults, **settings), seed=seed)


def done(provider: StandIn) -> list[str]:
    assert duplicate_effects(provider.book) == 0
    return [str(effect) for effect in live_effects(provider.book)]


async def milestones(provider: StandIn, *asks: tuple[int, Ask], until_ms: int = 3_600_000) -> list[str]:
    """What a party could be told, in order."""
    told: list[str] = []
    async with opened(provider) as ledger:
        ledger.subscribe(lambda fact: told.append(fact.milestone))
        for at_ms, wish in asks or ((0, ask()),):
            await asyncio.sleep(max(at_ms - clock()(), 0) / 1000)
            await ledger.propose(wish)
        await asyncio.sleep(until_ms / 1000)
        assert await ledger.problems() == ()
    return told


@pytest.mark.parametrize(
    ("faults", "told"),
    [
        ({}, "running accepted confirmed"),
        ({"lost-request": Fault(times=1)}, "running unknown accepted confirmed"),
        ({"lost-reply": Fault(times=1)}, "running unknown confirmed"),
        ({"error-after": Fault(times=1)}, "running unknown accepted confirmed"),
        ({"garbled": Fault(times=1)}, "running unknown accepted confirmed"),
        ({"declined": Fault(times=1)}, "running failed"),
        ({"refused": Fault(times=1)}, "running requested running accepted confirmed"),
        ({"refused": Fault()}, "running requested running requested running failed"),
        ({"fails": Fault()}, "running accepted failed"),
    ],
)
def test_what_is_told_follows_what_is_known(faults, told):
    provider = stand_in(faults=faults, seed=2)
    heard = run_virtual(milestones(provider))
    assert heard == told.split()
    assert done(provider) == ([] if heard[-1] == "failed" else [EFFECT])


def test_what_is_sent_again_is_said_to_be_unknown_all_the_while():
    """A key in doubt goes out again unsaid: it is neither a new try nor a result."""
    provider = stand_in(faults={"lost-request": Fault(times=2)})
    assert run_virtual(milestones(provider)) == ["running", "unknown", "accepted", "confirmed"]
    assert done(provider) == [EFFECT]


def test_an_error_that_is_replayed_is_left_to_a_person_and_never_called_failed():
    provider = stand_in(faults={"error-before": Fault(times=1)})

    async def main() -> tuple[FactChanged, ...]:
        async with opened(provider) as ledger:
            await ledger.propose(ask())
            await asyncio.sleep(3_600)
            assert [each.reason for each in await ledger.outbox()] == ["unknown"]
            return await ledger.snapshot("customer:81")

    (fact,) = run_virtual(main())
    assert fact.milestone == "unknown"
    assert "Somebody will look at it" in fact.sentence
    assert done(provider) == []


@pytest.mark.parametrize("mode", [Idempotency.SUCCESS_ONLY, Idempotency.NONE])
def test_a_key_that_does_not_protect_is_sent_once(mode):
    provider = stand_in(idempotency=mode, faults={"lost-request": Fault(times=1)})

    async def main() -> None:
        async with opened(provider) as ledger:
            await ledger.propose(ask())
            await asyncio.sleep(3_600)
            assert [each.reason for each in await ledger.outbox()] == ["unknown"]

    run_virtual(main())
    assert done(provider) == []


def test_nothing_is_sent_again_once_the_window_nears_its_end():
    """Down for longer than the key is remembered: what is not found then is a person's."""
    provider = stand_in(faults={"lost-request": Fault(times=1)}, window_ms=3_600_000)
    store = MemoryStore()

    async def main() -> None:
        async with opened(provider, store) as ledger:
            await ledger.propose(ask())
            await asyncio.sleep(1)
        await asyncio.sleep(7_200)
        async with opened(provider, store) as ledger:
            await asyncio.sleep(60)
            assert [each.reason for each in await ledger.outbox()] == ["unknown"]

    run_virtual(main())
    assert done(provider) == []


def test_a_change_while_it_is_pending_stops_the_first_and_makes_one_to_the_other_card():
    provider = stand_in()
    told = run_virtual(milestones(provider, (0, ask()), (500, ask("card:8812"))))
    assert told[-1] == "confirmed"
    assert done(provider) == [OTHER_EFFECT]


def test_a_change_is_in_time_at_whatever_instant_of_the_look_ups_it_is_asked_for():
    """It leaves behind the look-up that is under way, and waits for no other one."""
    for at_ms in range(2_500, 4_000, 50):
        provider = stand_in(settles_ms=4_000 + 2 * ProviderSettings().lookup_ms)
        run_virtual(milestones(provider, (0, ask()), (at_ms, ask("card:8812")), until_ms=60_000))
        assert done(provider) == [OTHER_EFFECT], f"asked for at {at_ms} ms"


def test_a_change_while_nothing_can_be_stopped_is_refused_and_the_first_is_told():
    provider = stand_in(answers=Answers.SYNC)

    async def main() -> Answer:
        async with opened(provider) as ledger:
            await ledger.propose(ask())
            await asyncio.sleep(0.5)
            answer = await ledger.propose(ask("card:8812"))
            await asyncio.sleep(60)
            return answer

    assert run_virtual(main()).verdict is Verdict.AMEND_BLOCKED
    assert done(provider) == [EFFECT]


def test_a_change_that_comes_too_late_is_dropped_and_left_to_a_person():
    provider = stand_in(faults={"cancel-too-late": Fault()})

    async def main() -> FactChanged:
        async with opened(provider) as ledger:
            await ledger.propose(ask())
            await asyncio.sleep(0.5)
            assert (await ledger.propose(ask("card:8812"))).verdict is Verdict.AMENDING
            await asyncio.sleep(60)
            assert [each.reason for each in await ledger.outbox()] == ["change_too_late"]
            return (await ledger.snapshot("customer:81"))[0]

    fact = run_virtual(main())
    assert fact.milestone == "confirmed"
    assert fact.terms.card == ON_FILE["card:4242"]
    assert done(provider) == [EFFECT]


class Counting(MemoryStore):
    """Counts what is committed."""

    commits = 0

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with super().transaction() as tx:
            yield tx
        self.commits += 1


def test_i2_one_commit_lies_between_a_wish_and_its_first_byte():
    """A commit on a disk takes tens of milliseconds, and the caller waits for each."""
    store = Counting()
    begun: list[int] = []

    class Noting(Raising):
        async def send(self, dispatch: Dispatch) -> Observed:
            begun.append(store.commits)
            return await super().send(dispatch)

    async def main() -> tuple[int, Answer]:
        async with Ledger(store, [Noting(ProviderSettings().traits)], clock=clock()) as ledger:
            before = store.commits
            answer = await ledger.propose(ask())
            await asyncio.sleep(1)
            return before, answer

    before, answer = run_virtual(main())
    assert (answer.verdict, answer.fact.milestone) == (Verdict.CREATED, "running")
    assert begun == [before + 1]


def test_i8_a_send_that_was_held_up_for_longer_than_a_requests_life_does_not_leave():
    """The process was stopped after its commit, and others may have settled it meanwhile: it asks the record anew."""
    provider, store = stand_in(idempotency=Idempotency.RESUME), Counting()
    held_up_ms = provider.adapter().traits.request_max_ms
    keys: list[str] = []

    async def main() -> None:
        now_ms = clock()
        before = 0

        def late() -> int:
            return now_ms() + (held_up_ms if before and store.commits > before else 0)

        patience = Patience(consent_ms=3 * held_up_ms)
        async with Ledger(store, [provider.adapter()], clock=late, patience=patience) as ledger:
            before = store.commits
            await ledger.propose(ask())
            await asyncio.sleep(60)
            assert await ledger.problems() == ()
            keys.extend(await ledger.commit(lambda page: [each.provider_key for each in page.tx.find(Attempt)]))

    run_virtual(main())
    assert [entry.key for entry in provider.book.entries if isinstance(entry, Sent)] == keys[1:]
    assert done(provider) == [EFFECT]


def test_a_ledger_that_is_not_entered_notes_a_wish_and_begins_nothing():
    async def main() -> Answer:
        return await opened(stand_in()).propose(ask())

    assert run_virtual(main()).fact.milestone == "requested"


@pytest.mark.parametrize("at_ms", [0, 3, 100, 500, 10_000])
def test_f32_a_tool_that_is_cancelled_cancels_no_attempt(at_ms):
    """A barge-in or hang-up cancels the task that waits for the ledger, at whatever instant."""
    provider = stand_in()

    async def main() -> None:
        async with opened(provider) as ledger:
            waiting = asyncio.get_running_loop().create_task(_propose_and_wait(ledger))
            await asyncio.sleep(0.001 + at_ms / 1000)
            waiting.cancel()
            await asyncio.sleep(60)
            assert [fact.milestone for fact in await ledger.snapshot("customer:81")] == ["confirmed"]

    run_virtual(main())
    assert done(provider) == [EFFECT]


async def _propose_and_wait(ledger: Ledger) -> None:
    await ledger.propose(ask())
    await asyncio.get_running_loop().create_future()


def test_the_same_wish_five_times_at_once_is_one_operation():
    provider = stand_in()

    async def main() -> list[Answer]:
        async with opened(provider) as ledger:
            answers = await asyncio.gather(*[ledger.propose(ask()) for _ in range(5)])
            await asyncio.sleep(60)
            return answers

    answers = run_virtual(main())
    assert [answer.verdict for answer in answers] == [Verdict.CREATED, *[Verdict.JOINED] * 4]
    assert done(provider) == [EFFECT]


def test_i23_two_processes_on_one_store_and_one_effect():
    provider = stand_in(faults={"lost-reply": Fault(times=1)})
    store = MemoryStore()

    async def main() -> None:
        async with opened(provider, store) as first, opened(provider, store) as second:
            answers = await asyncio.gather(first.propose(ask()), second.propose(ask()))
            assert [answer.verdict for answer in answers] == [Verdict.CREATED, Verdict.JOINED]
            await asyncio.sleep(60)
            assert await first.problems() == await second.problems() == ()

    run_virtual(main())
    assert done(provider) == [EFFECT]


def test_a_reversal_days_later_is_seen_and_said():
    provider = stand_in(faults={"reversed": Fault()}, reversed_ms=(3_600_000, 3_600_000))
    assert run_virtual(milestones(provider, until_ms=86_400_000))[-2:] == ["confirmed", "reversed"]
    assert done(provider) == []


def test_reconciling_by_hand_asks_at_once():
    provider = stand_in(settles_ms=3_600_000)

    async def main() -> FactChanged:
        async with opened(provider, patience=Patience(ask_ms=86_400_000)) as ledger:
            answer = await ledger.propose(ask())
            await asyncio.sleep(7_200)
            return await ledger.reconcile(answer.op_id)

    assert run_virtual(main()).milestone == "confirmed"


def test_c084_a_retry_after_a_time_out_asks_first_and_charges_once():
    """The provider acts after 32 s, the limit is 30 s, and the caller asks again at 31 s."""
    provider = stand_in(faults={"late": Fault(times=1)}, late_ms=(32_000, 32_000), lag_ms=60_000)

    async def main() -> list[str]:
        told: list[str] = []
        async with Ledger(MemoryStore(), [provider.adapter(timeout_ms=30_000)], clock=clock()) as ledger:
            ledger.subscribe(lambda fact: told.append(fact.milestone))
            await ledger.propose(ask())
            await asyncio.sleep(31)
            assert (await ledger.propose(ask())).verdict is Verdict.JOINED
            await asyncio.sleep(600)
            return told

    assert run_virtual(main()) == ["running", "unknown", "accepted", "confirmed"]
    assert done(provider) == [EFFECT]
    assert len([entry for entry in provider.book.entries if isinstance(entry, Sent)]) == 1


class Raising:
    """An adapter that breaks, in whatever way."""

    def __init__(self, traits) -> None:
        self.name = "payments"
        self.traits = traits
        self.sends = 0

    async def send(self, dispatch: Dispatch) -> Observed:
        self.sends += 1
        raise RuntimeError("a bug, with card:4242 in its message")

    async def look_up(self, dispatch: Dispatch) -> Observed:
        raise KeyError(dispatch.key)

    async def cancel(self, dispatch: Dispatch) -> Observed:
        raise AssertionError


def test_an_adapter_that_raises_leaves_a_doubt_and_logs_no_word_of_it(caplog):
    traits = replace(ProviderSettings().traits, on_ambiguous=OnAmbiguous.QUARANTINE)
    provider = Raising(traits)

    async def main() -> str:
        async with Ledger(MemoryStore(), [provider], clock=clock()) as ledger:
            await ledger.propose(ask())
            await asyncio.sleep(7_200)
            return (await ledger.snapshot("customer:81"))[0].milestone

    assert run_virtual(main()) == "unknown"
    assert provider.sends == 1
    assert "card:4242" not in caplog.text


def test_i12_nothing_is_dispatched_from_a_record_that_was_tampered_with(tmp_path):
    store = SQLiteStore(tmp_path / "ledger.db")
    provider = stand_in()

    async def main() -> None:
        async with opened(provider, store) as ledger:
            await ledger.propose(ask())
            await asyncio.sleep(60)
        again = SQLiteStore(tmp_path / "ledger.db")
        again._connection.execute("UPDATE operation SET state = 'requested'")
        with pytest.raises(LedgerError, match="I12"):
            await opened(provider, again).__aenter__()
        again.close()

    run_virtual(main())
    assert done(provider) == [EFFECT]


# Neighbours


NEIGHBOURLY = Patience(left_ms=5_000)


@pytest.mark.parametrize(
    ("point", "faults"),
    [
        ("after ask", {}),
        ("before provider", {}),
        ("after provider", {}),
        ("before fold", {}),
        ("after fold", {"refused": Fault(times=1)}),
        ("before wait", {"refused": Fault(times=1)}),
        ("after fold", {"lost-reply": Fault(times=1)}),
        ("after fold", {}),
    ],
)
def test_i23_a_neighbour_that_dies_is_followed_by_whoever_lives_without_a_new_start(point, faults):
    """Requested, running, accepted or in doubt: it is seen to once it has been due for long, and done once."""
    provider, store = StandIn(ProviderSettings(faults=faults), seed=1), MemoryStore(is_shared=True)
    life = Life([Crash(point, 1, 0)])

    async def dying() -> None:
        ledger = opened(provider, MortalStore(store, life), crash_at=life.crash_at, patience=NEIGHBOURLY)
        async with ledger:
            await ledger.propose(ask())
            await life.died.wait()

    async def main() -> list[str]:
        told: list[str] = []
        async with opened(provider, store, patience=NEIGHBOURLY) as living:
            living.subscribe(lambda fact: told.append(fact.milestone))
            await asyncio.gather(dying(), return_exceptions=True)
            await asyncio.sleep(3_600)
            assert await living.problems() == ()
        return told

    assert run_virtual(main())[-1] == "confirmed"
    assert life.is_dead
    assert done(provider) == [EFFECT]


def test_a_neighbour_that_lives_is_left_to_it():
    """Who had it looks it up again and again; who has not asks nothing, however long it takes."""
    provider, store = stand_in(settles_ms=120_000), MemoryStore(is_shared=True)

    async def main() -> list[str]:
        told: list[str] = []
        async with opened(provider, store, patience=NEIGHBOURLY) as owner:
            async with opened(provider, store, patience=NEIGHBOURLY) as other:
                other.subscribe(lambda fact: told.append(fact.milestone))
                await owner.propose(ask())
                await asyncio.sleep(110)
            await asyncio.sleep(60)
            assert [fact.milestone for fact in await owner.snapshot("customer:81")] == ["confirmed"]
        return told

    assert run_virtual(main()) == []
    assert done(provider) == [EFFECT]


# Deaths


async def two_lives(provider: StandIn, crash: Crash, first: Store, second: Callable[[], Store]) -> str | None:
    """Ask, change, die at a point, start again; returns the last milestone, or None if the point was not passed."""
    life = Life([crash])
    ledger = opened(provider, MortalStore(first, life), crash_at=life.crash_at)
    try:
        async with ledger:
            await ledger.propose(ask())
            await asyncio.wait_for(life.died.wait(), 200)
    except (asyncio.CancelledError, TimeoutError):
        if not life.is_dead:
            return None
    await asyncio.sleep(crash.gap_ms / 1000)
    async with opened(provider, second()) as ledger:
        await ledger.propose(ask())
        await asyncio.sleep(1_800)
        assert await ledger.problems() == ()
        return (await ledger.snapshot("customer:81"))[0].milestone


REACHED = [point for point in POINTS_OF_DEATH if point.split()[1] not in ("broken", "reconcile", "report")]


@pytest.mark.parametrize("gap_ms", [10, 90_000])
@pytest.mark.parametrize("point", REACHED)
def test_f26_a_death_at_every_point_is_survived_with_one_effect(point, gap_ms):
    passed = 0
    for nth in range(1, 7):
        store = MemoryStore(is_shared=True)
        provider = stand_in(faults={"lost-reply": Fault(times=1)})
        told = run_virtual(two_lives(provider, Crash(point, nth, gap_ms), store, lambda store=store: store))
        if told is None:
            break
        passed += 1
        assert told == "confirmed"
        assert done(provider) == [EFFECT]
    assert passed


@pytest.mark.parametrize("point", ["after advance", "before provider", "after provider", "before fold", "after fold"])
def test_f26_the_same_with_a_file(point, tmp_path):
    provider = stand_in(faults={"lost-reply": Fault(times=1)})
    first = SQLiteStore(tmp_path / "ledger.db")
    told = run_virtual(two_lives(provider, Crash(point, 1, 1_000), first, lambda: SQLiteStore(tmp_path / "ledger.db")))
    first.close()
    assert told == "confirmed"
    assert done(provider) == [EFFECT]


def test_every_await_has_a_name_and_every_name_is_listed():
    tree = ast.parse(inspect.getsource(dispatcher.Dispatcher))
    inner = ("_through", "_wait", "close")
    names: list[str] = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.AsyncFunctionDef) or function.name in inner:
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Await):
                call = node.value
                assert isinstance(call, ast.Call)
                called = ast.unparse(call.func)
                if called in ("self._carry_out", "self._next"):
                    continue
                assert called == "self._through", f"line {node.lineno}: {ast.unparse(node)} has no name"
                names.append(ast.literal_eval(call.args[0]))
    assert sorted(names) == sorted(POINTS)


def test_a_ledger_that_closes_as_an_answer_comes_waits_for_nothing():
    """The cancel and the answer meet in one step of the loop; neither may be forgotten."""

    class Prompt:
        name = "payments"
        traits = StandIn(ProviderSettings()).adapter().traits

        def __init__(self) -> None:
            self.is_asked = asyncio.Event()

        async def send(self, dispatch: Dispatch) -> Observed:
            self.is_asked.set()
            return Observed(Outcome.APPLIED, "re_1")

        look_up = cancel = send

    async def go() -> int:
        provider = Prompt()
        async with Ledger(MemoryStore(), [provider], clock=clock()) as ledger:
            await ledger.propose(ask())
            await provider.is_asked.wait()
        return clock()()

    assert run_virtual(go()) < 100
