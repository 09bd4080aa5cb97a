"""What a process holds, taken again and again while it works, and whether it grows.

What is counted must not grow at all. What is measured, memory, is judged by its middle over the first rows behind the
warm-up and over the last ones: caches fill at first. Whatever Python keeps shows in objects and blocks, to a few of
them. The bounds of the other two are wider, as caches of samples fill late: a recorded line that is rarely said is kept
from the first call on that says it, 0.8 MB with all that is computed of it.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median
from typing import Final

WARM_UP: Final = 2
"""So many rows from the beginning are not judged."""
JUDGED: Final = 3
"""So many rows are compared with as many at the end."""
MAY_GROW: Final = {"objects": 500, "blocks": 2_000, "heap_kib": 8 * 1_024, "resident_kib": 16 * 1_024}
"""By how much what is measured may be more at the end."""
_PAGE_KIB: Final = os.sysconf("SC_PAGE_SIZE") / 1_024


_HEAP: Final = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
    *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
)


class _Heap(ctypes.Structure):
    """``struct mallinfo2`` of glibc."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _HEAP)


def heap_kib() -> int:
    """What code in C has allocated and not freed, as glibc counts it: samples, for the most part. 0 elsewhere.

    What was freed goes back to the system first, so that it is not counted as resident.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        return 0
    libc.malloc_trim(0)
    libc.mallinfo2.restype = _Heap
    heap = libc.mallinfo2()
    return int(heap.uordblks + heap.hblkhd) // 1_024


@dataclass(frozen=True, slots=True)
class Census:
    """What this process holds at one instant, without what nobody refers to."""

    tasks: int
    """Tasks that are not done, of all loops that ever were."""
    loops: int
    threads: int
    descriptors: int
    objects: int
    """What the collector of garbage knows."""
    blocks: int
    """What Python has allocated."""
    heap_kib: int
    resident_kib: int
    """As the system counts it."""

    @classmethod
    def taken(cls) -> Census:
        """Collect what is garbage, and count."""
        gc.collect()
        known = gc.get_objects()
        return cls(
            tasks=sum(isinstance(each, asyncio.Task) and not each.done() for each in known),
            loops=sum(isinstance(each, asyncio.AbstractEventLoop) for each in known),
            threads=threading.active_count(),
            descriptors=sum(1 for _ in Path("/proc/self/fd").iterdir()),
            objects=len(known),
            blocks=sys.getallocatedblocks(),
            heap_kib=heap_kib(),
            resident_kib=round(int(Path("/proc/self/statm").read_text("ascii").split()[1]) * _PAGE_KIB),
        )

    def row(self, name: str) -> str:
        """A row of the table."""
        return f"{name:>10}" + "".join(f"{getattr(self, each):>14}" for each in NAMES)


NAMES: Final = tuple(each.name for each in fields(Census))


def head(unit: str) -> str:
    """What stands over the rows."""
    return f"{unit:>10}" + "".join(f"{name:>14}" for name in NAMES)


def grown(rows: Sequence[Census]) -> list[str]:
    """What has grown, a line each; none if nothing has. Too few rows are a line, too: they show nothing."""
    if len(rows) < WARM_UP + 2 * JUDGED:
        return [f"{len(rows)} rows are too few to judge by: {WARM_UP} are the warm-up, {2 * JUDGED} are compared"]
    first, last = rows[WARM_UP : WARM_UP + JUDGED], rows[-JUDGED:]
    found = []
    for name in NAMES:
        before, after = (median(getattr(row, name) for row in part) for part in (first, last))
        if after - before > MAY_GROW.get(name, 0):
            found.append(f"{name} have grown from {before} to {after}")
    return found


def told(what: str, rows: Sequence[Census]) -> bool:
    """Print what has grown; True if nothing has."""
    found = grown(rows)
    print("\n".join(f"{what}: {line}" for line in found or ["nothing has grown"]), flush=True)
    return not found
