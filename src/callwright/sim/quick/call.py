"""One call without samples from beginning to end: settings and seed in, what is known of it out.

```
script ── quick line ── our client (core and runtime) ── connection ── server session ── model
   └── all on one virtual loop, all chance from one seed ──┘
```
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from callwright.runtime.call import run
from callwright.sim.behind.backend import Backend, Books
from callwright.sim.behind.settings import TIMEOUT_MS
from callwright.sim.caller import drawn
from callwright.sim.line import LineKind, LineSettings
from callwright.sim.loop import collect_faults, loop_ms
from callwright.sim.models import AgentSaid, ToolAnswered, ToolRequested
from callwright.sim.network import Network, NetworkSettings
from callwright.sim.quick.books import QuickProvider
from callwright.sim.quick.gathering import Gathering
from callwright.sim.quick.line import QuickLine
from callwright.sim.quick.script import Script
from callwright.sim.quick.told import ToldEar, ToldTrack
from callwright.sim.server import MemoryConnector, ServerSession, ServerSettings
from callwright.sim.server.common import Samples
from callwright.sim.sessions import Sessions, known_limit
from callwright.sim.vloop import run_virtual

if TYPE_CHECKING:
    from callwright.core.plan import Untold
    from callwright.core.session import Ending
    from callwright.core.transcript import Turn
    from callwright.declare.agent import Agent
    from callwright.ids import ItemId, Ms
    from callwright.sim.caller import Step
    from callwright.sim.models import HistoryItem, Model
    from callwright.sim.quick.told import ToldSpeech
    from callwright.sim.record import CallerLine, Confirmation, EarSpan, SpokenItem

LIMIT_MS: Ms = 120_000
"""A call that is still open then is ended by fault."""


@dataclass(frozen=True, slots=True)
class QuickCall:
    """What is played: who calls, what he says when, and how server, line and network behave."""

    agent: Agent
    model: Model
    speech: ToldSpeech
    caller: Sequence[Step]
    line: LineSettings = field(default_factory=lambda: LineSettings(LineKind.PHONE))
    server: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the local server, by name."""
    network: NetworkSettings = field(default_factory=NetworkSettings)
    """How the connection to the server opens and stalls."""
    deps: object = None
    """Handed to the tools."""
    party: str | None = None
    provider: QuickProvider | None = None
    """What the agent's actions reach, by way of a ledger in memory."""
    limit_ms: Ms = LIMIT_MS


@dataclass(frozen=True, slots=True)
class QuickResult:
    """What is known of a call afterwards. All instants are on the call's one clock."""

    turns: tuple[Turn, ...]
    """The client's transcript."""
    ear: tuple[EarSpan, ...]
    """What reached the caller's ear when, by the line's own books."""
    spoken: tuple[SpokenItem, ...]
    """Every reply as the model made it."""
    history: tuple[HistoryItem, ...]
    """The server's, at the end."""
    caller_lines: tuple[CallerLine, ...]
    unspoken: tuple[Step, ...]
    """What the caller did not come to."""
    confirmations: tuple[Confirmation, ...]
    """Each time the server found that the caller speaks over a reply."""
    ended_ms: Ms
    """When the line ended."""
    ending: Ending
    anomalies: tuple[str, ...]
    trace: bytes
    """The client's events and commands, JSON Lines."""
    untold: tuple[Untold, ...] = ()
    """What the client says that the caller was owed, and did not hear."""
    books: Books | None = None
    """The provider's and the ledger's, where there are any."""

    def heard_ms(self, item_id: ItemId) -> Ms:
        """How much of an item's audio reached the ear."""
        return sum(span.to_ms - span.from_ms for span in self.ear if span.item_id == item_id)

    def outputs(self, tool: str) -> tuple[tuple[str, ...], ...]:
        """For each call of a tool, in order, the outputs that the server's history holds of it."""
        calls = [item for item in self.history if isinstance(item, ToolRequested) and item.name == tool]
        answers = [item for item in self.history if isinstance(item, ToolAnswered)]
        return tuple(tuple(each.output for each in answers if each.tool_call_id == call.tool_call_id) for call in calls)

    def said(self) -> tuple[str, ...]:
        """The agent's replies as the server's history holds them."""
        return tuple(item.text for item in self.history if isinstance(item, AgentSaid))


def play_quick(call: QuickCall, seed: int) -> QuickResult:
    """Play a call in virtual time: the same call and seed give the same result.

    Raises UsageError for a setting that does not exist, and whatever the agent's own code raises outside its tools.
    """
    return run_virtual(_take(call, seed))


async def _take(call: QuickCall, seed: int) -> QuickResult:
    broken = collect_faults()
    settings = ServerSettings.for_dialect(call.agent.model.provider, call.server)
    samples = Samples(track=partial(ToldTrack, settings), render=call.speech.render)
    ear = ToldEar(call.speech)
    sessions = Sessions(lambda rng: ServerSession(call.model, call.speech, ear, rng, settings, samples), seed)
    script = Script(drawn(call.caller, seed), sessions.tool_of)
    line = QuickLine(call.line.until(call.limit_ms), call.speech, script)
    connector = Network(Gathering(MemoryConnector(sessions.next)), call.network, lambda: line.now_ms)
    provider = call.provider
    async with provider.backend(seed) if provider else Backend(None, TIMEOUT_MS) as behind:
        deps, party = call.deps, call.party
        result = await run(
            call.agent,
            line,
            connector=connector,
            ledger=behind.ledger,
            deps=deps,
            party=party,
            longest_session_ms=known_limit(call.server),
        )
        opened_ms = loop_ms() - line.now_ms
        await asyncio.sleep(provider.after_ms / 1000 if provider else 0)
        books = await behind.books(opened_ms)
    if broken:
        raise broken[0]
    assert line.ended_ms is not None
    return QuickResult(
        turns=result.turns,
        ear=line.ear,
        spoken=sessions.spoken,
        history=sessions.history,
        caller_lines=script.lines(line.ear),
        unspoken=script.unspoken,
        confirmations=sessions.confirmations,
        ended_ms=line.ended_ms,
        ending=result.ending,
        anomalies=result.anomalies,
        trace=result.trace,
        untold=result.untold,
        books=books,
    )
