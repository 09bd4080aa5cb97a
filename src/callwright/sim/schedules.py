"""Schedules for the ledger: what callers ask for and when, what goes wrong at the provider, and where processes die.

One seed is one schedule. It is played with the real dispatcher, adapter and record in virtual time, without a call, and
is then judged by the provider's own book. It owns the play; what went wrong is the provider's to count, and what is
wrong is the oracle's to say.

```
asks      ask ── again ── other card ──── withdraw
process   ├── record 1 ──────✝ before fold   ├── record 2 ───────────────────────────┤ judged
provider  lost reply  late ░░░░░░░░░░ lands   faults end │ nothing may stay open ────┘
```
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Any

import httpx

from callwright.declare.actions import Card, Money, Terms
from callwright.errors import LedgerError
from callwright.ids import Ms
from callwright.ledger import audit
from callwright.ledger.asking import Ask, Verdict
from callwright.ledger.page import Page, Patience
from callwright.ledger.provider import Idempotency, Traits
from callwright.ledger.rows import Attempt, Event, Operation, operation_id, write_terms
from callwright.ledger.store import MemoryStore, Store
from callwright.providers.payments import Payments
from callwright.runtime.dispatcher import Ledger
from callwright.sim.behind.dying import POINTS_OF_DEATH, Crash, Died, Life, MortalStore
from callwright.sim.behind.inspection import claim_of
from callwright.sim.provider import Answers, Charge, Desk, Destinations, Fault, ProviderSettings, oracle
from callwright.sim.provider.book import Ask as BookAsk
from callwright.sim.provider.http import serve
from callwright.sim.provider.messages import KEY_HEADER, Call, Way
from callwright.sim.provider.settings import FAULTS
from callwright.sim.seeds import stream
from callwright.sim.vloop import VirtualLoop, run_virtual

ADDRESS = "https://payments.test"
PARTY = "customer:81"
SUBJECT = "order:4417"
CAPTURED = Money(3200, "USD")
CARDS = (Card("card:4242", "Visa", "4242"), Card("card:8812", "Mastercard", "8812"))
FULL = ("full", 3200)
PARTS = (("line:1", 1200), ("line:2", 2000), ("line:3", 900))
"""Slots with their amounts in minor units; all three parts together are more than was captured."""

_MINUTE: Ms = 60_000
_HOUR: Ms = 60 * _MINUTE
QUIET_MS: Ms = 45 * _MINUTE
"""So long after the last thing that goes wrong every doubt is resolved, or a person's."""
_GAPS: tuple[Ms, ...] = (100, 5_000, 2 * _MINUTE, 30 * _MINUTE, 80 * _HOUR)
"""How long a process stays dead."""


class Wish(Enum):
    """What a caller wants."""

    ASK = "ask"
    WITHDRAW = "withdraw"


@dataclass(frozen=True, slots=True)
class Move:
    """One wish of a caller's."""

    at_ms: Ms
    wish: Wish
    slot: str
    amount: int
    card: Card


@dataclass(frozen=True, slots=True)
class Schedule:
    """Everything that happens, from one seed."""

    seed: int
    settings: ProviderSettings
    moves: tuple[Move, ...]
    crashes: tuple[Crash, ...]
    patience: Patience
    by_hand: bool
    """A person has refunded everything at the provider before anybody asks, and past the ledger."""
    twin_at_ms: Ms | None
    """A second process opens the same store then, while the first one lives."""
    lasts_ms: Ms


@dataclass(slots=True)
class Played:
    """What became of a schedule."""

    violations: list[str]
    counts: Counter[str] = field(default_factory=Counter)
    """How often which fault fired, which point was died at, and which row of the table was taken."""


def schedule(seed: int) -> Schedule:
    """The schedule of a seed."""
    chance = stream(seed, "schedule")
    slots = (FULL,) if chance.random() < 0.6 else PARTS
    moves = tuple(_moves(chance, slots))
    crashes = tuple(
        Crash(chance.choice(POINTS_OF_DEATH), chance.randint(1, 4), chance.choice(_GAPS))
        for _ in range(chance.choice((0, 0, 1, 1, 2, 3)))
    )
    last_ms = max(move.at_ms for move in moves)
    down_ms = sum(crash.gap_ms for crash in crashes)
    by_hand = chance.random() < 0.03
    settings = _BY_HAND if by_hand else _settings(chance, until_ms=last_ms + down_ms + 10 * _MINUTE)
    days = "pending-days" in settings.faults or "reversed" in settings.faults
    long_ms = 150 * _HOUR if days else 0
    lasts_ms = last_ms + down_ms + 10 * _MINUTE + settings.late_ms[1] + QUIET_MS + long_ms
    twin_at_ms = chance.randint(0, last_ms + _MINUTE) if chance.random() < 0.1 else None
    patience = Patience(ask_ms=chance.choice((500, 2_000, 5_000)), left_ms=20 * _MINUTE)
    return Schedule(seed, settings, moves, crashes, patience, by_hand, twin_at_ms, lasts_ms)


_BY_HAND = ProviderSettings(faults={"already-refunded": Fault()})


def _moves(chance: Random, slots: tuple[tuple[str, int], ...]) -> Iterator[Move]:
    at_ms: Ms = 0
    for _ in range(chance.randint(1, 5)):
        at_ms += chance.choice((1, 20, 200, 1_000, 3_000, 8_000, 20 * _MINUTE))
        slot, amount = chance.choice(slots)
        wish = Wish.WITHDRAW if chance.random() < 0.12 else Wish.ASK
        card = CARDS[1] if chance.random() < 0.3 else CARDS[0]
        yield Move(at_ms, wish, slot, amount, card)


def _settings(chance: Random, until_ms: Ms) -> ProviderSettings:
    names = chance.sample(sorted(FAULTS), chance.choice((0, 1, 1, 2, 3, 4, 6)))
    faults = {name: Fault(chance.choice((0.3, 0.7, 1.0)), chance.choice((1, 1, 2, 4, None))) for name in names}
    return ProviderSettings(
        answers=Answers.SYNC if chance.random() < 0.25 else Answers.PENDING,
        idempotency=chance.choice(tuple(Idempotency)),
        destinations=Destinations.ORIGINAL if chance.random() < 0.1 else Destinations.ON_FILE,
        window_ms=chance.choice((12 * _MINUTE, _HOUR, 24 * _HOUR)),
        kept_ms=24 * _HOUR,
        faults=faults,
        faults_until_ms=until_ms,
    )


# The way to the provider


class MortalClient(httpx.AsyncClient):
    """The way from one process to the provider, without a network between."""

    def __init__(self, desk: Desk, life: Life, timeout_ms: Ms) -> None:
        super().__init__(transport=_NOWHERE, trust_env=False)
        self._desk = desk
        self._life = life
        self._timeout_s = timeout_ms / 1000

    async def request(self, method: str, url: Any, **options: Any) -> httpx.Response:
        """Hand a request to the provider; it goes on there when this side gives up or dies."""
        self._life.check()
        path = url.removeprefix(ADDRESS)
        call = Call(method, path, {}, options["headers"][KEY_HEADER], options["content"] or b"")
        serving = asyncio.get_running_loop().create_task(serve(self._desk, call))
        try:
            reply = await asyncio.wait_for(asyncio.shield(serving), self._timeout_s)
        except TimeoutError:
            raise httpx.ReadTimeout("no answer") from None
        match reply.way:
            case Way.ANSWER:
                return httpx.Response(reply.status, content=reply.body)
            case Way.REFUSED:
                raise httpx.ConnectError("connection refused")
            case Way.RESET:
                raise httpx.ReadError("connection reset")
            case Way.SILENCE:
                await asyncio.sleep(self._timeout_s)
        raise httpx.ReadTimeout("no answer")


_NOWHERE = httpx.MockTransport(lambda request: httpx.Response(500))


# Playing


def play(plan: Schedule) -> Played:
    """Play a schedule in virtual time, and judge it."""

    async def main() -> Played:
        return await _Play(plan).run()

    return run_virtual(main())


class _Play:
    def __init__(self, plan: Schedule) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._now_ms = loop.now_ms
        self._plan = plan
        self._store = MemoryStore(is_shared=True)
        self._desk = Desk(plan.settings, [Charge(SUBJECT, CAPTURED, tuple(card.token for card in CARDS))], plan.seed)
        self._crashes = list(plan.crashes)
        self._grants: list[oracle.Grant] = []
        self._problems: list[str] = []
        self._counts: Counter[str] = Counter()
        self._wishes: list[tuple[str, Terms, Ms]] = []
        self._ledger: Ledger | None = None
        self._opened = asyncio.Event()

    async def run(self) -> Played:
        if self._plan.by_hand:
            self._desk.book.open(BookAsk(SUBJECT, CAPTURED, CARDS[0].token, "by hand", "by hand"), "by hand", 0)
        moves = asyncio.get_running_loop().create_task(self._move())
        twin = asyncio.get_running_loop().create_task(self._twin())
        await self._live()
        moves.cancel()
        for ended in await asyncio.gather(moves, twin, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended
        self._judge()
        return Played(self._problems, self._counts)

    def _open(self, life: Life) -> Ledger:
        client = MortalClient(self._desk, life, 10_000)
        payments = Payments(ADDRESS, self._desk.settings.traits, client=client)
        store, patience = MortalStore(self._store, life), self._plan.patience
        return Ledger(store, [payments], clock=self._now_ms, patience=patience, crash_at=life.crash_at)

    async def _live(self) -> None:
        """One process after another, until the schedule is over."""
        while self._now_ms() < self._plan.lasts_ms:
            life = Life(self._crashes)
            try:
                async with self._open(life) as self._ledger:
                    self._opened.set()
                    await self._until(life)
            except Died:
                self._counts["died while starting"] += 1
            except LedgerError as problem:
                self._problems.append(f"record: {problem}")
                return
            self._opened.clear()
            if life.crash:
                self._counts[f"died {life.crash.point}"] += 1
                await asyncio.sleep(life.crash.gap_ms / 1000)

    async def _until(self, life: Life) -> None:
        left_ms = self._plan.lasts_ms - self._now_ms()
        try:
            await asyncio.wait_for(life.died.wait(), left_ms / 1000)
        except TimeoutError:
            return

    async def _twin(self) -> None:
        """A second process on the same store, for two minutes."""
        if self._plan.twin_at_ms is not None:
            await asyncio.sleep(self._plan.twin_at_ms / 1000)
            try:
                async with self._open(Life([])):
                    self._counts["two processes"] += 1
                    await asyncio.sleep(120)
            except LedgerError as problem:
                self._problems.append(f"record: {problem}")

    async def _move(self) -> None:
        """Let the callers call; where no process is there to answer, they call again later."""
        for move in self._plan.moves:
            await asyncio.sleep(max(move.at_ms - self._now_ms(), 0) / 1000)
            await self._opened.wait()
            assert self._ledger is not None
            try:
                await self._wish(self._ledger, move)
            except (LedgerError, Died):
                self._counts["died meanwhile"] += 1

    async def _wish(self, ledger: Ledger, move: Move) -> None:
        if move.wish is Wish.WITHDRAW:
            op_id = operation_id("refund", SUBJECT, move.slot)
            try:
                answer = await ledger.withdraw(op_id, PARTY)
            except LedgerError:
                return
            self._counts[f"answer {answer.verdict.value}"] += 1
            return
        terms = Terms(SUBJECT, Money(move.amount, "USD"), move.card, cap=CAPTURED)
        asked_ms = self._now_ms()
        try:
            answer = await ledger.propose(Ask("refund", move.slot, PARTY, "payments", terms))
        except Died:  # it may have been stored, and sent by the process that follows
            self._wishes.append((operation_id("refund", SUBJECT, move.slot), terms, asked_ms))
            raise
        self._counts[f"answer {answer.verdict.value}"] += 1
        if answer.verdict in _GRANTING:
            self._grants.append(_grant(answer.op_id, move.slot, terms, asked_ms))
        elif answer.verdict is Verdict.AMENDING:
            self._wishes.append((answer.op_id, terms, asked_ms))

    # Judging

    def _judge(self) -> None:
        self._desk.book.advance(self._now_ms() + 240 * _HOUR)
        with self._store.transaction() as tx:
            operations, attempts, events = tx.find(Operation), tx.find(Attempt), tx.find(Event)
        record = oracle.Record(
            (*self._grants, *self._taken_hold(operations, attempts)),
            tuple(oracle.Attempt(each.provider_key, each.opened_at_ms) for each in attempts),
            tuple(claim_of(each, attempts) for each in operations),
        )
        traits = self._desk.settings.traits
        found = oracle.check(self._desk.book, record, traits, healed=True)
        self._problems += [f"{violation.invariant}: {violation.what}" for violation in found]
        self._counts.update({f"fault {name}": count for name, count in self._desk.faults.fired.items() if count})
        self._counts.update(f"{event.source.name} {event.step.name}" for event in events if event.step and event.source)
        self._counts.update(f"escalated {each.escalated}" for each in operations if each.escalated)
        self._problems += [f"record: {problem}" for problem in _audit(self._store, traits)]

    def _taken_hold(self, operations: list[Operation], attempts: list[Attempt]) -> Iterator[oracle.Grant]:
        """A change that was wished for is authorised from the attempt on that it was made with."""
        slots = {operation.op_id: operation.slot for operation in operations}
        for op_id, terms, asked_ms in self._wishes:
            for attempt in attempts:
                is_it = attempt.op_id == op_id and attempt.terms_json == write_terms(terms)
                if is_it and attempt.opened_at_ms >= asked_ms:
                    yield _grant(op_id, slots[op_id], terms, attempt.opened_at_ms)


def _grant(op_id: str, slot: str, terms: Terms, at_ms: Ms) -> oracle.Grant:
    assert terms.amount is not None
    assert terms.card is not None
    return oracle.Grant(at_ms, op_id, SUBJECT, slot, terms.amount, terms.card.token)


def _audit(store: Store, traits: Traits) -> list[str]:
    """What the record finds wrong with itself."""
    with store.transaction() as tx:
        return list(audit.problems(Page(tx, 0, {"payments": traits}, Patience())))


_GRANTING = (Verdict.CREATED, Verdict.JOINED, Verdict.AMENDED)


def sweep(seeds: range) -> tuple[list[str], Counter[str]]:
    """Play many schedules; returns every violation with its seed, and how often everything happened."""
    violations, counts = [], Counter[str]()
    for seed in seeds:
        played = play(schedule(seed))
        violations += [f"seed {seed}: {violation}" for violation in played.violations]
        counts.update(played.counts)
    return violations, counts


def wanted() -> tuple[str, ...]:
    """What has to happen sometimes in a sweep that is worth its name: every fault, and a death at every point."""
    deaths = [point for point in POINTS_OF_DEATH if point.split()[1] not in _UNREACHED]
    return (*(f"fault {name}" for name in FAULTS), *(f"died {point}" for point in deaths), "two processes")


_UNREACHED: Mapping[str, str] = {
    "broken": "a store that fails is one of a dead process here",
    "reconcile": "nobody asks by hand",
    "report": "nobody asks by hand",
}
