"""Processes that die: at a named point of the dispatcher, as by a kill, in the middle of whatever they do.

```
process   advance ── provider ✝ before fold
store               │ what was committed stays; the dead reach neither store nor provider any more
```

Abandoned tasks still run to their ends in a simulated death, so what they could reach is out of reach first.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callwright.errors import LedgerError
from callwright.runtime.dispatcher import POINTS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from callwright.ids import Ms
    from callwright.ledger.provider import Dispatch, Observed, Provider
    from callwright.ledger.store import Store, Transaction

POINTS_OF_DEATH = tuple(f"{when} {point}" for point in POINTS for when in ("before", "after"))
"""All of the dispatcher's named points."""
POINTS_IN_A_CALL = tuple(
    point
    for point in POINTS_OF_DEATH
    if point.split()[1] not in ("check", "recover", "pause", "left", "broken", "reconcile", "report")
)
"""Those that it comes by while it sees to what a call asks for; the others are of its start, or of a hand."""


@dataclass(frozen=True, slots=True)
class Crash:
    """The process dies the ``nth`` time that it comes by a point, and stays dead for a while."""

    point: str
    nth: int
    gap_ms: Ms


class Died(asyncio.CancelledError):
    """Ends whatever a dead process would do next, as silently as its death."""


class Life:
    """One process: it lives until a crash, and then reaches neither its store nor the provider."""

    def __init__(self, crashes: list[Crash]) -> None:
        self.is_dead = False
        self.died = asyncio.Event()
        self.crash: Crash | None = None
        self._crashes = crashes
        self._passed: Counter[str] = Counter()

    def crash_at(self, point: str) -> None:
        """Die here, if this is the place. Raises Died then, and whenever the dead go on."""
        self._passed[point] += 1
        if not self.is_dead and self._crashes:
            due = self._crashes[0]
            if (due.point, due.nth) == (point, self._passed[point]):
                self.is_dead = True
                self.crash = self._crashes.pop(0)
                self.died.set()
        self.check()

    def check(self) -> None:
        """Raise Died if the process is dead."""
        if self.is_dead:
            raise Died


class MortalStore:
    """A store as one process reaches it."""

    def __init__(self, store: Store, life: Life) -> None:
        self.is_shared = store.is_shared
        self._store = store
        self._life = life

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Begin a transaction. Raises LedgerError when the process is dead."""
        if self._life.is_dead:
            raise LedgerError("the store is out of reach")
        with self._store.transaction() as transaction:
            yield transaction

    def is_first(self) -> bool:
        """A lock would outlive a simulated death, so none is taken."""
        return True

    def check(self) -> list[str]:
        """What is wrong with the store."""
        return self._store.check()

    def close(self) -> None:
        """Leave the store to the next process."""


class MortalProvider:
    """A provider as one process reaches it: the dead send nothing, and learn nothing."""

    def __init__(self, provider: Provider, life: Life) -> None:
        self.name = provider.name
        self.traits = provider.traits
        self._provider = provider
        self._life = life

    async def send(self, dispatch: Dispatch) -> Observed:
        """Send an attempt. Raises Died when the process is dead, before it or by the time of the answer."""
        return await self._reached(self._provider.send, dispatch)

    async def look_up(self, dispatch: Dispatch) -> Observed:
        """Look an attempt up. Raises as ``send`` does."""
        return await self._reached(self._provider.look_up, dispatch)

    async def cancel(self, dispatch: Dispatch) -> Observed:
        """Cancel what an attempt did. Raises as ``send`` does."""
        return await self._reached(self._provider.cancel, dispatch)

    async def _reached(self, verb: Callable[[Dispatch], Awaitable[Observed]], dispatch: Dispatch) -> Observed:
        self._life.check()
        observed = await verb(dispatch)
        self._life.check()
        return observed
