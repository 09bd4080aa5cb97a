"""What live calls will cost, before the first one: how long they take, and what the time that they are connected costs.

Each scenario is played once in virtual time, against the local server in the dialect that is asked for: so long is a
call of it, about. A model that talks more takes longer. Tokens are not estimated: a service bills them on top.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from callwright.cli.playing import progress
from callwright.errors import SimulationError, UsageError
from callwright.ids import Ms
from callwright.sim.loop import loop_ms
from callwright.sim.vloop import run_virtual
from callwright.sim.world import in_memory, take_call

if TYPE_CHECKING:
    from callwright.cli.live import Live
    from callwright.cli.plan import Plan
    from callwright.cli.server import Server

_MICRO: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Length:
    """How long a call is."""

    whole_ms: Ms
    connected_ms: Ms
    is_longest: bool = False
    """It is no longer than that, and how long is not known."""


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls that are to be played on one server."""

    live: Live
    count: int
    length: Length
    """Of each."""


def length_of(plan: Plan, seed: int) -> Length:
    """How long a call of this seed is, in virtual time; one that cannot be played there ends at its limit."""
    try:
        return run_virtual(_length(plan, seed))
    except SimulationError:
        return Length(plan.scenario.ends_ms, plan.scenario.ends_ms, is_longest=True)


async def _length(plan: Plan, seed: int) -> Length:
    record = await take_call(plan.scenario, seed, plan.client, plan.setup.options, in_memory)
    whole_ms = loop_ms()
    return Length(whole_ms, whole_ms if plan.scenario.behind.earlier else record.connected_ms)


def ask_about(counts: Sequence[tuple[Plan, int]], seed: int, at_once: int, *, is_agreed: bool, quiet: bool) -> None:
    """Before the first of so many calls of each plan: tell what the live ones come to, and ask. Raises as ``ask``."""
    live = [(plan, plan.live, count) for plan, count in counts if plan.live]
    if not live or (quiet and (is_agreed or _is_one(count for _, _, count in live))):
        return
    with progress("estimate", len(live), quiet=quiet) as advance:
        calls = []
        for plan, server, count in live:
            calls.append(Calls(server, count, length_of(plan, seed)))
            advance()
    ask(calls, at_once, is_agreed=is_agreed)


def told(calls: Sequence[Calls], at_once: int) -> list[str]:
    """What these calls come to, line by line: each server's, and how long it takes until all are over."""
    lines = [_on_server([each for each in calls if each.live.address == place]) for place in _servers(calls)]
    count = sum(each.count for each in calls)
    if count > 1:
        side_by_side = min(at_once, count)
        all_ms = sum(each.count * each.length.whole_ms for each in calls)
        left_ms = max(max(each.length.whole_ms for each in calls), all_ms // side_by_side)
        lines.append(f"{side_by_side} at a time: over in {_about(calls)} {_long(left_ms)}")
    return lines


def _servers(calls: Iterable[Calls]) -> list[str]:
    return list(dict.fromkeys(each.live.address for each in calls))


def _on_server(calls: Sequence[Calls]) -> str:
    live, count = calls[0].live, sum(each.count for each in calls)
    connected_ms = sum(each.count * each.length.connected_ms for each in calls)
    what = f"{count} live call{'s' * (count > 1)} on {live.server.profile.name} at {live.address}"
    return f"{what}: {_about(calls)} {_long(connected_ms)} connected, {_price(live.server, connected_ms)}"


def _is_one(counts: Iterable[int]) -> bool:
    """Whether this is a single call, which nobody is asked about: it was asked for."""
    return sum(counts) == 1


def _about(calls: Sequence[Calls]) -> str:
    return "at most" if any(each.length.is_longest for each in calls) else "about"


def _price(server: Server, connected_ms: Ms) -> str:
    profile = server.profile
    micro_usd = profile.micro_usd(connected_ms)
    if micro_usd is None or profile.minute_micro_usd is None:
        return f"for which {profile.name} has no price; tokens are what is billed there"
    price = f"${profile.minute_micro_usd / _MICRO:.2f} a minute"
    whose = f", if {profile.name} is who bills" if server.url else ""
    return f"${micro_usd / _MICRO:.3f} at {price}{whose}; tokens come on top"


def _long(ms: Ms) -> str:
    seconds = -(-ms // 1000)
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60} s"


def ask(calls: Sequence[Calls], at_once: int, *, is_agreed: bool) -> None:
    """Tell what live calls come to, and ask whether they are to be played if there are several.

    Raises UsageError where nobody can be asked, and KeyboardInterrupt where the answer is no.
    """
    for line in told(calls, at_once):
        click.echo(f"callwright: {line}", err=True)
    if is_agreed or _is_one(each.count for each in calls):
        return
    if not sys.stdin.isatty():
        raise UsageError("several live calls are played only if they are agreed to, and nobody can be asked: say --yes")
    try:
        click.confirm("callwright: play them?", abort=True, err=True)
    except click.Abort:
        raise KeyboardInterrupt("before the first call") from None
