"""The options that commands share: how calls are played, and where results go."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import click

from callwright.audio.formats import FRAME_MS
from callwright.cli.server import Server
from callwright.core.session import Can
from callwright.errors import UsageError
from callwright.ids import Ms
from callwright.runtime.endpoint import Endpoint
from callwright.sim.agents import load_agent
from callwright.sim.exchange.callee import LONGEST_HOLD_S
from callwright.sim.program.process import OPTION as PROGRAM_OPTION
from callwright.sim.program.process import PROGRAM, Program
from callwright.sim.room import BEDS, ECHO_DELAY_MS, LONGEST_DELAY_MS, ROOMS, Aec, Noise
from callwright.sim.scenario import Scenario
from callwright.sim.world import CLIENTS, OURS, Options
from callwright.wire.profiles import PROFILES

_Function = TypeVar("_Function", bound=Callable[..., Any])

LIVE_CALLS = 2
"""How many calls are open at once unless it is raised: what an account on PolyAI's sign-up credit may have."""

_MODEL = re.compile(r"\?model=[\w.:-]+$")
_LONGEST_LAG_MS = 60_000
_LONGEST_CONNECT_MS = 60_000
_ASYNC, _BLOCKING = "async", "blocking"


class Pace(Enum):
    """What time it is in a call."""

    VIRTUAL = "virtual"
    """As fast as the machine can, in memory, the same every time."""
    REAL = "real"
    """By the wall clock, over a real WebSocket."""


class Audit(Enum):
    """What the server is asked at the end of a call."""

    NOTHING = "nothing"
    TOOL_CALLS = "tool calls"
    """Whether its history still has each of them."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What the options say about how calls are played."""

    client: str | None = None
    program: Program | None = None
    before: bool = False
    lag_ms: Ms | None = None
    lag_fixed_ms: Ms | None = None
    connect_ms: Ms | None = None
    no_truncate: bool = False
    pace: Pace = Pace.VIRTUAL
    dialect: str | None = None
    tools: str | None = None
    audit: Audit = Audit.NOTHING
    provider: str | None = None
    room: str | None = None
    echo: float | None = None
    echo_delay_ms: Ms | None = None
    noise: Noise | None = None
    aec: str | None = None
    hold_s: int | None = None
    max_hold_s: int | None = None
    server: str | None = None
    voice: str | None = None

    @property
    def options(self) -> Options:
        """What they change of the scenario."""
        can = ~(Can.TRUNCATE | Can.REPORT | Can.RESTATE) if self.no_truncate else None
        return Options(
            self.lag_ms,
            self.lag_fixed_ms,
            can=can,
            connect_ms=self.connect_ms,
            dialect=self.server if self.server in PROFILES else self.dialect,
            tools_wait=None if self.tools is None else self.tools == _BLOCKING,
            audit=self.audit is Audit.TOOL_CALLS,
            provider=self.provider,
            room={name: value for name, value in self._room.items() if value is not None},
            hold_s=self.hold_s,
            max_hold_s=self.max_hold_s,
            voice=self.voice,
        )

    @property
    def _room(self) -> dict[str, object]:
        """What they change of the room, by the names that it has there; None where they do not."""
        return {
            "name": self.room,
            "echo": self.echo,
            "echo_delay_ms": self.echo_delay_ms,
            "noise": self.noise,
            "aec": None if self.aec is None else Aec(self.aec),
        }

    @property
    def _ours_alone(self) -> list[tuple[str, str]]:
        """What was given that no baseline takes, each with the reason."""
        given = [
            ("--tools", self.tools, "always waits"),
            ("--max-hold", self.max_hold_s, "never gives up"),
            ("--voice", self.voice, "has none"),
        ]
        return [(option, lacks) for option, value, lacks in given if value]

    def server_for(self, scenario: Scenario) -> Server | None:
        """The live server that calls are to reach; None for the local one. An address speaks the agent's dialect.

        Raises UsageError for what names none.
        """
        if self.server is None:
            return None
        return Server.parse(self.server, self.dialect, otherwise=load_agent(scenario.agent).model.profile)

    @property
    def _no_programs(self) -> list[str]:
        """What was given that is in the hands of our clients, or says who they are."""
        given = {
            "--server": self.server,
            "--client": self.client,
            "--before": self.before,
            "--connect-ms": self.connect_ms is not None,
            "--no-truncate": self.no_truncate,
            "--audit": self.audit is not Audit.NOTHING,
            "--aec": self.aec,
        }
        return [*(option for option, value in given.items() if value), *(option for option, _ in self._ours_alone)]

    def dialect_for(self, scenario: Scenario) -> str:
        """The provider whose protocol is spoken."""
        server = self.server_for(scenario)
        return server.profile.name if server else self.dialect or load_agent(scenario.agent).model.provider

    def told(self) -> dict[str, object]:
        """What is out of the ordinary, by name, for the figures."""
        if self.program is not None:
            return {**self.options.told(), "real_time": True, "client_command": self.program.command}
        is_local_real_time = self.pace is Pace.REAL and self.server is None
        return {**self.options.told(), **({"real_time": True} if is_local_real_time else {})}

    def client_for(self, scenario: Scenario) -> str:
        """Who takes the call.

        Raises UsageError for ``--before`` with ``--client``, or without a baseline, for what no baseline has, and for
        what cannot be asked of a program.
        """
        if self.program is not None:
            for option in self._no_programs:
                raise UsageError(f"{option} cannot be asked of a program: leave out {option} or {PROGRAM_OPTION}")
            return PROGRAM
        if self.before or self.client not in (None, OURS):
            for option, lacks in self._ours_alone:
                raise UsageError(f"{option} is for {OURS}'s own calls, and a baseline {lacks}: leave one out")
        if not self.before:
            return self.client or OURS
        if self.client:
            raise UsageError("--before is the scenario's own baseline: leave out --client")
        if scenario.before is None:
            raise UsageError(f"{scenario.path}: the scenario has no baseline (before); name one with --client")
        return scenario.before.client

    def must_fail(self, scenario: Scenario) -> tuple[str, ...] | None:
        """What must fail for the run to be as it should; None where all must hold."""
        return scenario.before.must_fail if self.before and scenario.before else None

    def taker(self) -> list[str]:
        """The options that say who takes the call, as they are typed."""
        program = shlex.quote(self.program.command) if self.program else None
        return _typed({"--client": self.client, PROGRAM_OPTION: program, "--before": self.before})

    def settings(self) -> list[str]:
        """The other options, as they are typed."""
        given = {
            "--server": self.server,
            "--dialect": self.dialect,
            "--lag-ms": self.lag_ms,
            "--lag-fixed-ms": self.lag_fixed_ms,
            "--connect-ms": self.connect_ms,
            "--no-truncate": self.no_truncate,
            "--tools": self.tools,
            "--audit": self.audit is Audit.TOOL_CALLS,
            "--provider": self.provider,
            "--room": self.room,
            "--echo": self.echo,
            "--echo-delay-ms": self.echo_delay_ms,
            "--noise": None if self.noise is None else str(self.noise),
            "--aec": self.aec,
            "--hold": self.hold_s,
            "--max-hold": self.max_hold_s,
            "--voice": self.voice,
            "--real-time": self.pace is Pace.REAL and self.server is None,
        }
        return _typed(given)


def _typed(given: Mapping[str, str | float | bool | None]) -> list[str]:
    """Each option that was given, with its value; a flag has none."""
    return [
        name if value is True else f"{name} {value}"
        for name, value in given.items()
        if value is not None and value is not False
    ]


def _program(ctx: click.Context, param: click.Parameter, value: str | None) -> Program | None:
    """A client by the command that starts it."""
    try:
        return None if value is None else Program(value)
    except UsageError as problem:
        raise click.BadParameter(str(problem), ctx, param) from problem


def _noise(ctx: click.Context, param: click.Parameter, value: str | None) -> Noise | None:
    """A bed and its level."""
    try:
        return None if value is None else Noise.parse(value)
    except UsageError as problem:
        raise click.BadParameter(str(problem), ctx, param) from problem


def _address(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A server. Its address is in all that is printed and written, so that nothing secret may be in it."""
    if value is not None and "://" in value and _MODEL.sub("", value) != Endpoint(value).address:
        told = "expected an address without user and query, but for ?model=NAME: it is printed; a key goes into .env"
        raise click.BadParameter(told, ctx, param)
    return value


class _FixedLag(click.IntRange):
    """A time in whole frames, the steps in which a line's fixed lag comes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        lag_ms = super().convert(value, param, ctx)
        if lag_ms % FRAME_MS:
            self.fail(f"expected a multiple of {FRAME_MS} ms; got {lag_ms}", param, ctx)
        return lag_ms


class _Place(click.Path):
    """A file or directory to write to. That it can be made is seen before a call is played: a live one costs money."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        there = next((each for each in (path, *path.parents) if os.access(each, os.F_OK)), path)
        is_usable = os.access(there, os.W_OK) and (there.is_dir() or there == path)
        if not is_usable:
            self.fail(f"{value} cannot be written, because {there} is in the way: choose another", param, ctx)
        return path


class _Directory(_Place):
    """A directory to write to; what is empty names none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("expected a directory; got nothing", param, ctx)
        return super().convert(value, param, ctx)


def _all(*options: Callable[[_Function], _Function]) -> Callable[[_Function], _Function]:
    def decorate(function: _Function) -> _Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


real_time = click.option(
    "--real-time",
    "pace",
    type=click.UNPROCESSED,
    flag_value=Pace.REAL,
    default=Pace.VIRTUAL,
    help="By the wall clock and over a real WebSocket, instead of in virtual time.",
)
dialect = click.option(
    "--dialect",
    type=click.Choice(tuple(PROFILES)),
    help="Whose protocol client and server speak.  [default: the agent's]",
)
server = click.option(
    "--server",
    callback=_address,
    metavar="NAME|URL",
    help=f"Call a live server: {', '.join(PROFILES)}, or an address. The key comes from the environment or .env.",
)
live_calls = click.option(
    "--live-calls",
    type=click.IntRange(1),
    default=LIVE_CALLS,
    show_default=True,
    metavar="N",
    help="How many calls to a live server are open at once.",
)
yes = click.option("--yes", "is_agreed", is_flag=True, help="Play several calls to a live server without asking first.")
hold = click.option(
    "--hold",
    "hold_s",
    type=click.IntRange(0, LONGEST_HOLD_S),
    metavar="SECONDS",
    help="How long a call that the agent makes is on hold.  [default: the scenario's time, or 30]",
)
max_hold = click.option(
    "--max-hold",
    "max_hold_s",
    type=click.IntRange(1, LONGEST_HOLD_S),
    metavar="SECONDS",
    help="How long the agent waits on hold before it gives up.  [default: the scenario's time, or for ever]",
)
playing = _all(
    server,
    click.option("--client", type=click.Choice(CLIENTS), help="Who takes the calls.  [default: callwright]"),
    click.option(
        PROGRAM_OPTION,
        "program",
        callback=_program,
        metavar="CMD",
        help="A program of your own takes the calls, in real time, at an audio socket.",
    ),
    click.option("--before", is_flag=True, help="Take the scenario's own baseline, which must fail as it says."),
    dialect,
    click.option(
        "--lag-ms",
        type=click.IntRange(0, _LONGEST_LAG_MS),
        metavar="MS",
        help="Playback behind the stream that nobody reports and a clear empties, as in a phone bridge.",
    ),
    click.option(
        "--lag-fixed-ms",
        type=_FixedLag(0, _LONGEST_LAG_MS),
        metavar="MS",
        help="Playback behind the stream that is reported and cannot be emptied, as in wireless headphones.",
    ),
    click.option(
        "--connect-ms",
        type=click.IntRange(0, _LONGEST_CONNECT_MS),
        metavar="MS",
        help="How long the connection to the server takes to open; the caller may speak meanwhile.",
    ),
    click.option("--no-truncate", is_flag=True, help="Stop the voice, but do not tell the server where."),
    click.option(
        "--tools",
        type=click.Choice((_ASYNC, _BLOCKING)),
        help="Whether an action's output comes at once, or waits for the outcome, 10 s at most.  [default: async]",
    ),
    click.option(
        "--audit",
        type=click.UNPROCESSED,
        flag_value=Audit.TOOL_CALLS,
        default=Audit.NOTHING,
        help="Ask the server at the end whether its history still has every tool call.",
    ),
    click.option(
        "--provider",
        metavar="KIND[,KEY=VALUE...]",
        help="Another provider than the scenario's: sync or pending, and any of its keys; a list has + between.",
    ),
    click.option("--room", type=click.Choice(ROOMS), help="The room that the caller is in.  [default: dry]"),
    click.option(
        "--echo",
        type=click.FloatRange(0, 1),
        metavar="GAIN",
        help="How loud the loudspeaker is at the caller's microphone: 0.3 is 30 % of what it plays.  [default: 0]",
    ),
    click.option(
        "--echo-delay-ms",
        type=click.IntRange(0, LONGEST_DELAY_MS),
        metavar="MS",
        help=f"How late that is.  [default: {ECHO_DELAY_MS}]",
    ),
    click.option(
        "--noise",
        callback=_noise,
        metavar="BED:LEVEL",
        help=f"What sounds at the caller's end ({', '.join(BEDS)}), and its level in dBFS: news:-35.",
    ),
    click.option(
        "--aec",
        type=click.Choice([aec.value for aec in Aec]),
        help="Whether the client cancels its echo. auto: on a sound card with an echo, not for a baseline.",
    ),
    hold,
    max_hold,
    click.option(
        "--voice",
        type=click.Choice(["own"]),
        help="Let the server write, and the client say it by a voice of its own: the agent's recorded lines.",
    ),
    real_time,
)
"""The fields of `Setup`."""

seed = click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, metavar="S", help="What makes a run unique."
)
json_lines = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per scenario, one a line.")
quiet = click.option("--quiet", is_flag=True, help="Print no progress, and no remarks on single runs.")


def out(default: str | None) -> Callable[[_Function], _Function]:
    """The option that says where recordings, traces and figures go."""
    return click.option(
        "--out",
        type=_Directory(file_okay=False, path_type=Path),
        default=default,
        show_default=default is not None,
        metavar="DIR",
        help="Where each call's files go: DIR/SCENARIO-CLIENT-SEED, with the settings given before the seed.",
    )


def report(what: str) -> Callable[[_Function], _Function]:
    """The option that says where the page goes that shows ``what``."""
    return click.option(
        "--report",
        type=_Place(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"Write {what} as one HTML file that opens in any browser.",
    )


export = click.option(
    "--export",
    type=_Directory(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write each call to DIR/SCENARIO-CLIENT-SEED for another judge: its sound, words and events.",
)
