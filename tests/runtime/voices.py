"""Calls with a voice of one's own, and a server that writes for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from tests.runtime.calls import ANYTHING, OPENING, Taken, after, ended
from tests.runtime.calls import started as response_started
from tests.runtime.calls import take as take_call

import callwright as cw
from callwright.ids import Ms
from callwright.runtime.replay import Outcome, replay
from callwright.testing.scripted import Emit, emit
from callwright.wire import server

WORD_MS = 200
RATE_HZ = 16_000
STARTED, PROGRESS, STOPPED = (f"poly.output_audio.{kind}" for kind in ("started", "delta", "stopped"))
FIVE, TEN = "one two three four five", "one two three four five six seven eight nine ten"


def loud(ms: Ms) -> bytes:
    return b"\x00\x20\x00\xe0" * (ms * RATE_HZ // 2000)


class Speaks:
    """Says each word in 200 ms, ``delay_ms`` after it has all of them; ``tells`` which word each piece holds."""

    rate_hz = RATE_HZ

    def __init__(self, *, tells: bool = True, delay_ms: Ms = 0, gap_ms: Ms = 0) -> None:
        self.tells, self.delay_ms, self.gap_ms = tells, delay_ms, gap_ms
        self.texts: list[str] = []
        """What it was given."""
        self.closed: list[str] = []
        """What it had said of each, when it was closed or through."""
        self.pieces: list[str] = []

    async def speak(self, text: AsyncIterator[str]) -> AsyncGenerator[bytes | cw.Said, None]:
        said: list[str] = []
        try:
            whole = ""
            async for piece in text:
                self.pieces.append(piece)
                whole += piece
            self.texts.append(whole)
            await asyncio.sleep(self.delay_ms / 1000)
            for word in whole.split():
                await asyncio.sleep(self.gap_ms / 1000)
                said.append(word)
                yield cw.Said(loud(WORD_MS), word) if self.tells else loud(WORD_MS)
        finally:
            self.closed.append(" ".join(said))


def agent_of(voice: Any, model: cw.ModelChoice | None = None) -> cw.Agent:
    agent = cw.Agent("desk", model=model or cw.polyai(), instructions="Be brief.", voice=voice)

    @agent.tool
    async def look_up(ctx: cw.Context[None], holding: cw.Spoken) -> cw.Facts:
        """Look it up."""
        await asyncio.sleep(0.5)
        return {"found": True}

    @agent.tool(after=cw.AfterOutput.HANG_UP)
    async def end_call(ctx: cw.Context[None], reason: str, goodbye: cw.Spoken) -> str:
        """End the call."""
        return reason

    return agent


def take(voice: Any, *steps: Any, model: cw.ModelChoice | None = None, **options: Any) -> Taken:
    options.setdefault("ignoring", ANYTHING)
    taken = take_call(*OPENING, *steps, agent=agent_of(voice, model), **options)
    assert replay(taken.result.trace).outcome is Outcome.IDENTICAL
    return taken


def delta(piece: str, item_id: str = "a", response_id: str = "r1") -> Emit:
    return emit(server.ResponseOutputTextDelta(response_id=response_id, item_id=item_id, delta=piece))


def done(text: str, item_id: str = "a", response_id: str = "r1") -> Emit:
    return emit(server.ResponseOutputTextDone(response_id=response_id, item_id=item_id, text=text))


def written(text: str, item_id: str = "a", response_id: str = "r1") -> tuple[Any, ...]:
    """A whole reply of the server's, in two pieces."""
    half = len(text) // 2
    return (
        response_started(response_id),
        delta(text[:half], item_id, response_id),
        after(20),
        delta(text[half:], item_id, response_id),
        done(text, item_id, response_id),
        ended(response_id),
    )


def reports(taken: Taken) -> list[dict[str, Any]]:
    return [event for _, event in taken.model.sent if event["type"].startswith("poly.")]
