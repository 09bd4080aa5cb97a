"""A literal transition table, shared by all machines: what is legal, what follows, and how it is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Generic, TypeVar

from callwright.errors import IllegalTransition

State = TypeVar("State", bound=Enum)
Input = TypeVar("Input", bound=Enum)


class Table(Generic[State, Input]):
    """Rows ``(state, input) -> state`` of one machine; whatever is not a row is illegal."""

    def __init__(self, name: str, start: State, rows: Mapping[tuple[State, Input], State]) -> None:
        self.name = name
        self.start = start
        self.rows = rows

    def allows(self, state: State, given: Input) -> bool:
        """Whether there is a row for this pair."""
        return (state, given) in self.rows

    def after(self, state: State, given: Input) -> State:
        """The state that follows. Raises IllegalTransition; nothing has changed then."""
        try:
            return self.rows[state, given]
        except KeyError:
            raise IllegalTransition(self.name, state.name, given.name) from None

    def diagram(self) -> str:
        """The table as a Mermaid state diagram, one line per pair of states, inputs joined."""
        arrows: dict[tuple[str, str], list[str]] = {}
        for (state, given), then in self.rows.items():
            arrows.setdefault((state.name, then.name), []).append(given.name.lower())
        lines = ["stateDiagram-v2", f"    [*] --> {self.start.name}"]
        lines += [f"    {source} --> {target}: {', '.join(inputs)}" for (source, target), inputs in arrows.items()]
        return "\n".join(lines) + "\n"
