"""A client as a process of its own: started with the addresses of a call, and gone with it, whatever it has started.

```
started ── connects ── the call ── over: it may go by itself ── SIGTERM to its group ── SIGKILL to its group
        30 s at most                          3 s                     3 s
```

It has a session and a process group of its own, so that Ctrl-C comes to whoever plays the call, who ends it in good
order. What it prints goes to a file that has no name.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from callwright.errors import UsageError
from callwright.ids import Ms
from callwright.sim.network import NetworkSettings
from callwright.sim.program.quoted import quoted

if TYPE_CHECKING:
    from callwright.sim.scenario import Scenario
    from callwright.sim.world import Options

OPTION: Final = "--client-command"
PROGRAM: Final = "command"
"""The name of a client that is a program."""
AUDIO_URL: Final = "CALLWRIGHT_AUDIO_URL"
CONNECTS_WITHIN_MS: Final[Ms] = 30_000
"""How long a program may take to connect to the audio socket."""
GOES_WITHIN_MS: Final[Ms] = 3_000
"""How long it may take to end when the call is over, and again when it is told to."""
OUTPUT_BYTES: Final = 1024 * 1024
"""How much of what it printed is kept, from the end."""
_LAST_LINES: Final = 5
_LAST_BYTES: Final = 4_096
_LINE_MAX: Final = 400
_SIGNALS: Final = {each.value: each.name for each in signal.Signals}
"""Those with a name; a real-time signal has none."""


@dataclass(frozen=True, slots=True)
class Program:
    """A client by the command that starts it. Raises UsageError for one that cannot be read."""

    command: str
    connects_within_ms: Ms = CONNECTS_WITHIN_MS
    goes_within_ms: Ms = GOES_WITHIN_MS

    def __post_init__(self) -> None:
        if not self.argv:
            raise UsageError("expected a program and its arguments; got nothing")

    @property
    def argv(self) -> list[str]:
        """The program and its arguments, as a shell would read them; nothing else of a shell's is there."""
        try:
            return shlex.split(self.command)
        except ValueError as problem:
            raise UsageError(f"{self.command!r}: {problem}") from problem


def check_scenario(scenario: Scenario, options: Options) -> None:
    """Raise UsageError for what no program can be given."""
    if options.network(scenario.connection) != NetworkSettings():
        raise UsageError(
            f"{scenario.name}: its connection opens late, stalls or breaks, and a program has a connection of its own: "
            "choose a scenario without connection"
        )


class Running:
    """A program that was started; ``output`` is the descriptor of what it prints, ``hidden`` what of it is not told."""

    def __init__(
        self, program: Program, process: asyncio.subprocess.Process, output: int, hidden: Sequence[str]
    ) -> None:
        self._program = program
        self._process = process
        self._output = output
        self._hidden = hidden
        self._is_ended = False
        self._gone = asyncio.get_running_loop().create_task(process.wait())

    @property
    def code(self) -> str | None:
        """How it ended, in words; None while it runs."""
        code = self._process.returncode
        if code is None:
            return None
        return f"exit code {code}" if code >= 0 else f"signal {_SIGNALS.get(-code, -code)}"

    @property
    def has_failed(self) -> bool:
        """Whether it ended, and not in good order."""
        return bool(self._process.returncode)

    @property
    def said(self) -> str:
        """The last of what it printed, on lines of their own."""
        printed = self.printed(_LAST_BYTES).decode(errors="replace").replace("\r", "\n").split("\n")
        lines = [quoted(line, _LINE_MAX, self._hidden) for line in printed if line.strip()][-_LAST_LINES:]
        return "\n  ".join(["its last lines:", *lines]) if lines else "it printed nothing"

    def printed(self, most: int = OUTPUT_BYTES) -> bytes:
        """What it printed, so many bytes from the end at most."""
        size = os.fstat(self._output).st_size
        return os.pread(self._output, most, max(0, size - most))

    async def connects(self, connected: asyncio.Future[None]) -> None:
        """Wait until it has connected. Raises UsageError where it ends before that, or does not do it in time."""
        seconds = self._program.connects_within_ms / 1000
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await _first_of(connected, self._gone)
        if connected.done():
            return
        what = f"did not connect to {AUDIO_URL} within {seconds:g} s"
        if self.code:
            what = f"ended ({self.code}) before it connected to {AUDIO_URL}"
        raise UsageError(f"{OPTION} {self._program.command!r} {what}; {self.said}")

    async def goes(self, within_s: float | None = None) -> bool:
        """Wait for a while until it has ended, for as long as it may take if no time is given; whether it has."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._program.goes_within_ms / 1000 if within_s is None else within_s):
                await asyncio.shield(self._gone)
        return self._gone.done()

    async def end(self, within_s: float | None = None) -> None:
        """End it, and what of its process group it leaves behind. Whoever stops waiting for that has it killed."""
        if self._is_ended:
            return
        self._is_ended = True
        try:
            if not self._gone.done():
                self._signal(signal.SIGTERM)
                await self.goes(within_s)
        finally:
            self._signal(signal.SIGKILL)
        await self._gone

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody of the group is left
            os.killpg(self._process.pid, number)


@asynccontextmanager
async def running(
    program: Program, environment: Mapping[str, str], hidden: Sequence[str] = ()
) -> AsyncIterator[Running]:
    """A program while it runs: when this is left it may go by itself, and is ended if it does not.

    It is told ``environment`` on top of this process's own; ``hidden`` is not told of what it prints. Raises UsageError
    where it cannot be started.
    """
    with tempfile.TemporaryFile() as output:
        try:
            process = await asyncio.create_subprocess_exec(
                *program.argv,
                env={**os.environ, **environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as problem:
            raise UsageError(f"{OPTION} {program.argv[0]}: cannot be started: {problem.strerror}") from problem
        started = Running(program, process, output.fileno(), hidden)
        try:
            yield started
        except BaseException:
            await started.end(within_s=1.0)
            raise
        await started.goes()
        await started.end()


async def _first_of(*awaited: asyncio.Future[Any]) -> None:
    """Wait until one of these is done."""
    done = asyncio.Event()

    def tell(_future: Awaitable[Any]) -> None:
        done.set()

    for future in awaited:
        future.add_done_callback(tell)
    try:
        await done.wait()
    finally:
        for future in awaited:
            future.remove_done_callback(tell)
