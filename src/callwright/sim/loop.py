"""What simulated calls ask of the event loop that they run on, virtual or not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from callwright.errors import SimulationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callwright.ids import Ms


def loop_ms() -> Ms:
    """The running loop's clock in whole milliseconds."""
    return round(asyncio.get_running_loop().time() * 1000)


def collect_faults() -> list[BaseException]:
    """A list that what callbacks and tasks of the running loop raise, and nobody waits for, is put into from now on."""
    faults: list[BaseException] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(_fault(context)))
    return faults


def _fault(context: Mapping[str, Any]) -> BaseException:
    return context.get("exception") or SimulationError(str(context["message"]))
