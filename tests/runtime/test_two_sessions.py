"""Two connections of one call: the first has nothing more to say, and is closed before the second one is opened."""

from __future__ import annotations

import asyncio
import json

from tests.runtime.calls import CREATED, UPDATED, calls, ended, reply, run, started
from tests.runtime.test_many_calls import PlainLine

import callwright as cw
from callwright.core.ports import ModelSink
from callwright.runtime.call import SESSION_MS_MIN
from callwright.sim.vloop import run_virtual
from callwright.testing.scripted import APPEND, Emit, Step


class Connection:
    """A connection whose server is the test; the first one takes a while to close, and still speaks meanwhile."""

    def __init__(self, sink: ModelSink, log: list[str]) -> None:
        self.sink = sink
        self.number = sum("opened" in entry for entry in log)
        self._log = log
        log.append(f"{self.number} opened")

    def send(self, message: bytes) -> None:
        if (kind := json.loads(message)["type"]) != APPEND:
            self._log.append(f"{self.number} hears {kind}")

    async def close(self) -> None:
        if self.number == 0:
            self.says(*reply("Too late.", item_id="late", response_id="r9"), calls("look", "k9", "r9"))
            await asyncio.sleep(0.5)
            self.says(started("r10"), calls("look", "k10", "r10"), ended("r10"))
        self._log.append(f"{self.number} closed")

    def says(self, *steps: Step) -> None:
        for step in steps:
            if isinstance(step, Emit):
                self.sink.on_message(step.data)


class Servers:
    """Connects to one after the other."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.all: list[Connection] = []

    async def connect(self, sink: ModelSink) -> Connection:
        self.all.append(Connection(sink, self.log))
        return self.all[-1]


async def handed_over(servers: Servers) -> cw.CallResult:
    """A call that goes from its first session to a second, in which a reply is heard."""
    line = PlainLine()
    call = asyncio.get_running_loop().create_task(run(line, servers, longest_session_ms=SESSION_MS_MIN))
    await asyncio.sleep(1)
    servers.all[0].says(CREATED, UPDATED, *reply("First."))
    await asyncio.sleep(SESSION_MS_MIN / 1000)
    servers.all[1].says(CREATED, UPDATED, *reply("Second.", item_id="b", response_id="r2"))
    await asyncio.sleep(2)
    line.close()
    return await call


def test_c110_what_a_connection_that_was_let_go_still_says_is_heard_by_nobody() -> None:
    """No reply of it is played or written down, no tool of it is run, and its end is not the new one's."""
    servers = Servers()
    result = run_virtual(handed_over(servers))
    assert [turn.written for turn in result.turns] == ["First.", "Second."]
    assert b'"k9"' not in result.trace
    assert b'"k10"' not in result.trace
    assert (result.sessions, result.ending.by) == (2, "caller")


def test_c110_one_connection_is_closed_before_the_next_is_opened() -> None:
    servers = Servers()
    run_virtual(handed_over(servers))
    opened = [entry for entry in servers.log if "hears" not in entry]
    assert opened == ["0 opened", "0 closed", "1 opened", "1 closed"]
    assert "1 hears session.update" in servers.log
