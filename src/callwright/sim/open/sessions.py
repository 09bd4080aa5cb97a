"""Sessions for free speech, each with a thinker of its own, and what they share: the senses and the HTTP client."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import httpx

from callwright.runtime.endpoint import USER_AGENT
from callwright.sim.open.chat import ChatThinker
from callwright.sim.open.peer import OpenPeer
from callwright.sim.open.recorded import RecordedThinker
from callwright.sim.open.senses import AnySound
from callwright.sim.open.workers import open_senses
from callwright.sim.rules import RulesModel
from callwright.sim.seeds import stream
from callwright.sim.server import ServerSession, ServerSettings
from callwright.sim.speech import Speech

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping
    from typing import Any

    from callwright.sim.open.chat import ChatEndpoint
    from callwright.sim.open.senses import Recogniser, Thinker
    from callwright.sim.scenario import Scenario

AT_ONCE: Final[Mapping[str, Any]] = {
    "ready_after_ms": (0, 0),
    "update_takes_ms": 0,
    "stop_told_ms": (0, 0),
    "done_after_ms": (20, 20),
    "cancelled_first_rate": 0.0,
}
"""Delays that stand for a network and a service: here there are real ones."""


def open_peer(dialect: str, recogniser: Recogniser, thinker: Thinker, rng: random.Random) -> OpenPeer:
    """One session in this dialect. Raises UsageError for a dialect that does not exist."""
    settings = ServerSettings.for_dialect(dialect, AT_ONCE)
    return OpenPeer(ServerSession(None, {}, AnySound(), rng, settings), recogniser, thinker)


@asynccontextmanager
async def free_speech(
    dialect: str, scenario: Scenario | None, chat: ChatEndpoint | None, seed: int = 1
) -> AsyncIterator[Callable[[], OpenPeer]]:
    """What makes the sessions: they think by the chat endpoint, or else by the rules of the scenario.

    Raises UsageError where the extra ``local`` is not installed, and ScenarioError.
    """
    async with open_senses() as senses, httpx.AsyncClient(headers={"User-Agent": USER_AGENT}) as client:
        seeds = itertools.count(seed)
        if chat is not None:
            thinkers: Iterator[Thinker] = itertools.repeat(ChatThinker(chat, senses, client))
        else:
            assert scenario is not None
            speech = Speech.load(scenario.speech)
            model = RulesModel.load(scenario.rules, speech, scenario.rates)
            thinkers = (RecordedThinker(model, speech, stream(each, "model")) for each in itertools.count(seed))

        def session() -> OpenPeer:
            return open_peer(dialect, senses, next(thinkers), stream(next(seeds), "server"))

        yield session
