"""Draws the state machines into the documentation, from their tables.

    python scripts/draw_machines.py            rewrite the diagrams in docs/explanation/machines.md
    python scripts/draw_machines.py --check    exit with 1 if they differ from the tables

Each diagram stands between two comments, ``<!-- NAME -->`` and ``<!-- end of NAME -->``; the prose around them is kept.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from callwright.core.consent import CONSENT
from callwright.core.giveup import GIVE_UP
from callwright.core.goodbye import GOODBYE
from callwright.core.handover import HANDOVER
from callwright.core.heard import HEARING
from callwright.core.hold import HOLD
from callwright.core.keeping import KEEPING
from callwright.core.keys import KEYS
from callwright.core.lull import LULL
from callwright.core.notice import NOTICE
from callwright.core.opening import OPENING
from callwright.core.pickup import PICKUP
from callwright.core.playout import PLAYOUT
from callwright.core.table import Table
from callwright.core.told import TOLD
from callwright.core.toolcalls import TOOL_CALLS
from callwright.core.turns import TURNS
from callwright.core.voicing import VOICING
from callwright.ledger.operation import OPERATION

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "machines.md"
CALL = (
    PICKUP,
    HANDOVER,
    OPENING,
    TURNS,
    PLAYOUT,
    HEARING,
    VOICING,
    TOOL_CALLS,
    GOODBYE,
    LULL,
    KEYS,
    HOLD,
    GIVE_UP,
    NOTICE,
    KEEPING,
    TOLD,
    CONSENT,
)
TABLES: tuple[Table[Any, Any], ...] = (*CALL, OPERATION)


def drawn(text: str) -> str:
    """The page with every diagram as its table has it. Raises LookupError for a machine that has no place in it."""
    for table in TABLES:
        begin, end = f"<!-- {table.name} -->\n", f"<!-- end of {table.name} -->"
        block = f"{begin}```mermaid\n{table.diagram()}```\n{end}"
        place = re.escape(begin) + ".*?" + re.escape(end)
        text, count = re.subn(place, block, text, flags=re.DOTALL)
        if count != 1:
            raise LookupError(f"{PAGE.name}: {count} places for {table.name}; write {begin.strip()} and {end} once")
    return text


def main(arguments: list[str]) -> int:
    """Rewrite the page, or compare it (``--check``). Returns the exit code."""
    text = PAGE.read_text(encoding="utf-8")
    if arguments == ["--check"]:
        if drawn(text) == text:
            return 0
        print(f"{PAGE.name} differs from the tables; run: python scripts/draw_machines.py")
        return 1
    PAGE.write_text(drawn(text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
