"""Calls to a live server: how many are open at once, and what is done while the server has no room.

A service lets an account have so many sessions at once, two on PolyAI's sign-up credit, and answers the next handshake
with 429. That says nothing against the key: the call waits and is played anew, its caller too, since he would have
spoken to nobody meanwhile. A key that is refused is another matter: no further call is tried with it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import click

from callwright.cli.live import NO_ROOM
from callwright.errors import ConnectionFailed
from callwright.sim.live import fastest_loop, take_elsewhere

if TYPE_CHECKING:
    from callwright.cli.plan import Plan
    from callwright.sim.record import CallRecord

PAUSES_S: Final = (2.0, 5.0, 10.0, 20.0, 30.0)
"""How long is waited before a call is played again, each time in a row; the last counts for all further ones."""
PATIENCE_S: Final = 600.0
"""A call is waited for no longer than this, in all."""
_REFUSED: Final = (401, 403)


@dataclass(slots=True)
class Patience:
    """Decides about calls that did not come about, and tells of each that waits."""

    tell: Callable[[str], None]
    refusal: ConnectionFailed | None = None
    """Why a key was refused, which no other call need find out."""
    _tries: dict[str, int] = field(default_factory=dict)
    _waited_s: dict[str, float] = field(default_factory=dict)

    def pause_s(self, plan: Plan, seed: int, problem: Exception, others: int = 0) -> float | None:
        """How long to wait before this call is played again; None where nothing is waited for.

        While ``others`` of ours go on they are what it waits for, and that has an end: only without them it gives up.
        Raises ConnectionFailed, with what to do, where waiting helps nothing. A key that is refused is kept in mind:
        every other call would fare the same.
        """
        if plan.live is None or not isinstance(problem, ConnectionFailed):
            return None
        if problem.status in _REFUSED:
            told = f"{problem}; {plan.live.advice()}"
            self.refusal = ConnectionFailed(told, is_final=True, status=problem.status)
            raise self.refusal
        if problem.status != NO_ROOM:
            told = f"{problem}{'' if str(problem).endswith('?') else ';'} {plan.live.look()}"
            raise ConnectionFailed(told, is_final=problem.is_final, status=problem.status) from problem
        name, call = f"{plan.scenario.name} seed {seed}", plan.replay(seed)
        tries, waited_s = self._tries.get(call, 0), self._waited_s.get(call, 0.0)
        pause_s = PAUSES_S[min(tries, len(PAUSES_S) - 1)]
        if problem.retry_after_s is not None:
            pause_s = max(problem.retry_after_s, PAUSES_S[0])
        if others:
            pause_s = min(pause_s, PATIENCE_S)
        else:
            waited_s += pause_s
        if waited_s > PATIENCE_S:
            in_use = "all sessions of the account are"
            if pause_s > PATIENCE_S:
                self.tell(f"{name} is not waited for: {in_use} in use for another {pause_s:.0f} s")
            else:
                self.tell(f"{name} has waited long enough, and {in_use} still in use")
            return None
        self._tries[call], self._waited_s[call] = tries + 1, waited_s
        until = f"{pause_s:.0f} s" + ", or until another call is over," * bool(others)
        self.tell(f"{name} waits {until} and is played again: all sessions of the account are in use (HTTP 429)")
        return pause_s


def told_on_stderr(*, quiet: bool) -> Patience:
    """Patience that tells of calls that wait, unless it is to be quiet."""
    return Patience(lambda text: None if quiet else click.echo(f"callwright: {text}", err=True))


def play_live(plan: Plan, seed: int) -> CallRecord:
    """Play one call. Raises as ``take_elsewhere``."""
    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        return runner.run(_take(plan, seed))


def play_patiently(
    plans: Sequence[Plan], seed: int, at_once: int, patience: Patience
) -> list[CallRecord | BaseException]:
    """Play a call of each plan, so many at the same time; what the server has no room for is played again.

    Of a call that failed it returns what was raised, as ``Patience`` and ``take_elsewhere`` raise it, and of one that
    Ctrl-C ended a KeyboardInterrupt.
    """
    together = _Together(seed, at_once, patience)
    outcomes: list[CallRecord | BaseException] = [KeyboardInterrupt()] * len(plans)

    async def play(number: int, plan: Plan) -> None:
        try:
            outcomes[number] = await together.play(plan)
        except Exception as problem:  # whatever it is: the other calls go on, and cost money
            outcomes[number] = problem

    async def play_all() -> None:
        await asyncio.gather(*(play(number, plan) for number, plan in enumerate(plans)))

    with asyncio.Runner(loop_factory=fastest_loop()) as runner, contextlib.suppress(KeyboardInterrupt):
        runner.run(play_all())
    return outcomes


class _Together:
    """Calls that are played at the same time on one loop."""

    def __init__(self, seed: int, at_once: int, patience: Patience) -> None:
        self._seed = seed
        self._patience = patience
        self._room = asyncio.Semaphore(at_once)
        self._open = 0
        self._freed = asyncio.Event()
        """One of them was over since somebody began to wait."""

    async def play(self, plan: Plan) -> CallRecord:
        """Play a call when there is room for it. Raises as ``Patience`` and ``take_elsewhere``."""
        while True:
            async with self._room:
                if self._patience.refusal:
                    raise self._patience.refusal
                self._open += 1
                try:
                    record = await _take(plan, self._seed)
                    self._freed.set()
                    return record
                except ConnectionFailed as problem:
                    pause_s = self._patience.pause_s(plan, self._seed, problem, self._open - 1)
                    if pause_s is None:
                        raise
                finally:
                    self._open -= 1
            self._freed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._freed.wait(), pause_s)


async def _take(plan: Plan, seed: int) -> CallRecord:
    """One try on the running loop. A call that nobody was let in for is none, whoever ended it."""
    assert plan.live is not None
    door, profile = plan.live.door(), plan.live.server.profile
    record = await take_elsewhere(plan.scenario, seed, door, profile, client=plan.client, options=plan.setup.options)
    if door.refusal:
        raise door.refusal
    return record
