"""One call that a program takes, from beginning to end.

The program is started before the line opens, and told by its environment where everything is. Of the call nothing is
known but what could be heard and what went over the wire: no trace and no transcript of the client's, unless it tells
the audio socket what it holds to have been heard.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from callwright.audio.formats import parse_format
from callwright.core.plan import Ending
from callwright.core.transcript import Source, Speaker, Turn
from callwright.ids import Ms
from callwright.runtime.call import CallResult
from callwright.runtime.trace import Trace
from callwright.sim.line import LineKind, SimulatedLine
from callwright.sim.live import fastest_loop
from callwright.sim.loop import loop_ms
from callwright.sim.program.audio_socket import FORMAT, AudioSocket
from callwright.sim.program.process import AUDIO_URL, PROGRAM, Program, Running, check_scenario, running
from callwright.sim.program.streamed import StreamedReplies
from callwright.sim.program.wiretap import WireTap
from callwright.sim.record import Tells
from callwright.sim.server.memory import MemoryConnector
from callwright.sim.server.websocket import RealtimeServer
from callwright.sim.world import Options, take_call
from callwright.wire.profiles import OPENAI, Profile

if TYPE_CHECKING:
    from callwright.core.ports import Connector
    from callwright.declare.agent import Agent
    from callwright.ledger.provider import Provider
    from callwright.sim.provider import Desk
    from callwright.sim.record import CallRecord
    from callwright.sim.scenario import Scenario
    from callwright.sim.server import ServerSession

STRANGE_MS: Final[Ms] = 500
"""So much sound that belongs to no reply is told of: a beep or a breath is shorter."""
FAILS_WITHIN_S: Final = 10.0
"""How long a program that closed its audio socket without hanging up may take to say that it failed."""
_ENDS: Final = (signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class TakenCall:
    """A call that a program took."""

    record: CallRecord
    output: bytes
    """What it printed, both streams, as it came; the last megabyte."""


def play_program(scenario: Scenario, seed: int, program: Program, options: Options | None = None) -> TakenCall:
    """Play one call with a program as the client, in real time.

    Raises UsageError for a program that cannot be started, or does not come to the audio socket, and for a scenario
    that needs what no program can be given; and as ``play`` does. What ends this process ends the program, too.
    """
    check_scenario(scenario, options or Options())
    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        return runner.run(_until_terminated(take_program(scenario, seed, program, options)))


async def take_program(scenario: Scenario, seed: int, program: Program, options: Options | None = None) -> TakenCall:
    """The same on a running loop, whose signals are whoever's it is."""
    client = _Client(program)
    at_socket = replace(scenario, line=replace(scenario.line, kind=LineKind.PHONE, format=FORMAT))
    record = await take_call(at_socket, seed, PROGRAM, options or Options(), client.reach, {PROGRAM: client.made})
    return client.call.taken(record)


def addresses(profile: Profile, url: str, key: str) -> dict[str, str]:
    """Where the model is, and the key that it asks for: under our names, and under those of the provider's clients."""
    own = {"CALLWRIGHT_MODEL_URL": url, "CALLWRIGHT_MODEL_KEY": key, profile.url_env: url, profile.key_env: key}
    if profile.name == OPENAI.name:
        own["OPENAI_BASE_URL"] = url.replace("ws", "http", 1).removesuffix("/realtime")
    return own


async def _until_terminated(call: Awaitable[TakenCall]) -> TakenCall:
    """Take a call. A signal that would end this process cancels it first, so that the program ends, too."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    asked: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        asked.append(number)
        task.cancel()

    handled = _ENDS if threading.current_thread() is threading.main_thread() else ()
    for number in handled:
        loop.add_signal_handler(number, end, number)
    try:
        return await call
    except asyncio.CancelledError:
        if asked:
            sys.exit(128 + asked[0])
        raise
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


class _Client:
    """Makes the program's calls: one, or an earlier one and the one that is measured."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._sessions: Callable[[], ServerSession]
        self.call: _Call

    @asynccontextmanager
    async def reach(self, next_session: Callable[[], ServerSession], _line: SimulatedLine) -> AsyncIterator[Connector]:
        """Note the sessions of the next call, to which the program finds its own way."""
        self._sessions = next_session
        yield MemoryConnector(next_session)

    def made(
        self, agent: Agent, line: SimulatedLine, *, deps: Any, party: str | None, provider: Provider | None
    ) -> _Call:
        """The next call."""
        self.call = _Call(self._program, agent.model.profile, line, self._sessions, provider)
        return self.call


class _Call:
    """One call of a program's."""

    def __init__(
        self,
        program: Program,
        profile: Profile,
        line: SimulatedLine,
        sessions: Callable[[], ServerSession],
        provider: Provider | None,
    ) -> None:
        self._program = program
        self._profile = profile
        self._line = line
        self._sessions = sessions
        self._desk: Desk | None = getattr(provider, "desk", None)
        self._replies = StreamedReplies(FORMAT.rate_hz)
        self._taps: list[WireTap] = []
        self._opened_ms: Ms = 0
        self._output = b""
        self._has_transcript = False

    async def run(self, _connector: Connector) -> CallResult:
        """Take the call. Raises UsageError where the program does not come to it."""
        async with AsyncExitStack() as stack:
            key = secrets.token_urlsafe(16)
            server = await stack.enter_async_context(RealtimeServer(self._next_session, key=key, drain_ms=0))
            socket = await stack.enter_async_context(AudioSocket(self._line, self._replies))
            told = addresses(self._profile, server.url, key) | {AUDIO_URL: socket.url}
            if self._desk is not None:
                told["CALLWRIGHT_PROVIDER_URL"] = await _served(stack, self._desk)
            process = await stack.enter_async_context(running(self._program, told, (key, socket.token)))
            await process.connects(socket.connected)
            self._opened_ms = loop_ms() - self._line.now_ms
            ending = await _ending(socket, process)
            ended_ms = loop_ms()
            await process.goes()
            await process.end()  # what it prints when it is told to go is its output, too
            self._output = process.printed()
            return self._result(ending, ended_ms, socket)
        raise AssertionError("a call has an end")

    def _next_session(self) -> WireTap:
        formed = parse_format(msgspec.to_builtins(self._profile.output_format))
        self._taps.append(WireTap(self._sessions(), self._replies, formed))
        return self._taps[-1]

    def _result(self, ending: Ending, ended_ms: Ms, socket: AudioSocket) -> CallResult:
        ready_ms = [tap.ready_ms for tap in self._taps if tap.ready_ms is not None]
        self._has_transcript = socket.heard is not None
        heard = socket.heard or {}
        return CallResult(
            turns=tuple(Turn(Speaker.AGENT, item_id, text, text, Source.ESTIMATED) for item_id, text in heard.items()),
            ending=ending,
            trace=self._trace(),
            session_ready_ms=max(0, min(ready_ms) - self._opened_ms) if ready_ms else None,
            held_sent_ms=0,
            lost_ms=0,
            connected_ms=sum(tap.connected_between(self._opened_ms, ended_ms) for tap in self._taps),
            anomalies=tuple(f"the server refused: {message}" for tap in self._taps for message in tap.refused),
            unknown={},
            sessions=len(self._taps),
        )

    def _trace(self) -> bytes:
        """What went over the wire, on the call's clock; what came before the line opened stands at its beginning."""
        trace = Trace({"client": PROGRAM, "model": self._profile.name})
        for at_ms, kind, content in sorted((row for tap in self._taps for row in tap.rows), key=lambda row: row[0]):
            trace.note(max(0, at_ms - self._opened_ms), kind, content)
        return trace.lines()

    def taken(self, record: CallRecord) -> TakenCall:
        """The call with what was heard by replies, and with the server's instants on its own clock."""
        since_ms, strange_ms = self._opened_ms, self._replies.strange_ms
        strange = f"{strange_ms} ms of what the client played are part of no reply: nothing of them is judged"
        return TakenCall(
            replace(
                record,
                anomalies=(*record.anomalies, *([strange] if strange_ms >= STRANGE_MS else [])),
                tells=Tells.HEARD if self._has_transcript else Tells.NOTHING,
                has_witness=self._desk is None or bool(self._desk.book.entries),
                ear=self._replies.spans(record.ear),
                spoken=tuple(replace(each, started_ms=each.started_ms - since_ms) for each in record.spoken),
                truncations=tuple(replace(each, at_ms=each.at_ms - since_ms) for each in record.truncations),
                confirmations=tuple(
                    replace(each, at_ms=each.at_ms - since_ms, onset_ms=each.onset_ms - since_ms)
                    for each in record.confirmations
                ),
            ),
            self._output,
        )


async def _served(stack: AsyncExitStack, desk: Desk) -> str:
    """Serve a stand-in provider, and tell where."""
    from callwright.sim.provider.server import ProviderServer

    server = await stack.enter_async_context(ProviderServer(desk))
    return server.url


async def _ending(socket: AudioSocket, process: Running) -> Ending:
    """How the call ended. A program that fails has not hung up, whatever became of its socket.

    Many fail because the socket was closed to them, so that what went wrong there stands before how they ended.
    """
    ending = await asyncio.shield(socket.ended)
    within_s = None if socket.is_hung_up else FAILS_WITHIN_S
    if ending.by != "caller" and await process.goes(within_s) and process.has_failed:
        first = f"{ending.reason}; " if ending.by == "fault" else ""
        return Ending("fault", f"{first}the client ended ({process.code}); {process.said}")
    return ending
