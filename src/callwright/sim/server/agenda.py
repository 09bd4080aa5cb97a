"""What a session still has to do, ordered by time and then by when it was noted."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TypeAlias

from callwright.ids import Ms

Action: TypeAlias = Callable[[Ms], None]
"""Is called with the instant at which it was due."""


class Agenda:
    """Actions by due time. An action acts as of its own instant, however late the clock is looked at."""

    def __init__(self) -> None:
        self.now_ms: Ms = 0
        self._noted: list[tuple[Ms, int, Action]] = []
        self._count = 0

    @property
    def next_ms(self) -> Ms | None:
        """When the next action is due."""
        return self._noted[0][0] if self._noted else None

    def at(self, due_ms: Ms, action: Action) -> None:
        """Note an action; one that is overdue is done next."""
        self._count += 1
        heapq.heappush(self._noted, (max(due_ms, self.now_ms), self._count, action))

    def clear(self) -> None:
        """Leave everything undone."""
        self._noted.clear()

    def run(self, now_ms: Ms) -> None:
        """Do what is due up to ``now_ms``, with all that follows from it in that time."""
        while self._noted and self._noted[0][0] <= now_ms:
            due_ms, _, action = heapq.heappop(self._noted)
            self.now_ms = due_ms
            action(due_ms)
        self.now_ms = max(self.now_ms, now_ms)
