"""Who is called in a scenario, in place of a caller: a phone tree, who answers in it, and how long one is on hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callwright.sim.exchange.tree import Tree, read_tree

if TYPE_CHECKING:
    from pathlib import Path

    from callwright.sim.speech import Speech
    from callwright.sim.yamlfile import Field

HOLD_S = 30
LONGEST_HOLD_S = 6 * 3600
RINGS = 1
HISS_DBFS = (-90, -30)
"""From how soft to how loud a line may hiss."""

KEYS = ("tree", "answers", "rings", "hold_s", "hiss_dbfs")
REQUIRED = ("tree",)


@dataclass(frozen=True, slots=True)
class Callee:
    """Who is called."""

    tree: Tree
    answers: str
    """The node of the tree that picks up."""
    rings: int = RINGS
    """How often it rings before."""
    hold_s: int = HOLD_S
    """Music in every queue, in all."""
    hiss_dbfs: int | None = None
    """How loud the line hisses, over which only 300 to 3400 Hz come then; None for a line that changes nothing."""


def read_callee(field: Field, locate: Callable[[Field], Path], speech: Speech) -> Callee:
    """The ``callee`` of a scenario; ``locate`` finds the file of the tree. Raises ScenarioError."""
    parts = field.mapping(KEYS, REQUIRED)
    tree = read_tree(locate(parts["tree"]), speech)
    return Callee(
        tree,
        parts["answers"].choice(tree.nodes) if "answers" in parts else tree.answers,
        parts["rings"].whole(0, 100) if "rings" in parts else RINGS,
        parts["hold_s"].whole(0, LONGEST_HOLD_S) if "hold_s" in parts else HOLD_S,
        parts["hiss_dbfs"].whole(*HISS_DBFS) if "hiss_dbfs" in parts else None,
    )
