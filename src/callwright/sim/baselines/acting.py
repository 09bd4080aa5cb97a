"""A baseline's actions: it sends at once, waits until the provider has settled it, and tells the model the result.

```
call     tool call ── send ── look up ... look up ── settled ── output, and a reply is asked for (or is not)
caller              ^ speaks: some stop waiting here
```

There is no record: what a client remembers is what it holds by its key, for as long as the call lasts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from callwright.core.toolcalls import AfterOutput
from callwright.declare.actions import Terms
from callwright.declare.tools import Context, Tool
from callwright.errors import Refuse, UsageError
from callwright.ids import Ms
from callwright.ledger.provider import Dispatch, Outcome, Provider
from callwright.ledger.saying import what
from callwright.sim.baselines.habits import Acts, Key, OnHold, Tells
from callwright.wire import server

LOOK_EVERY_MS: Final[Ms] = 500
LOOKS: Final = 40
"""So often a provider that has not settled is asked."""

_SAID: Final[Mapping[Outcome, str]] = {
    Outcome.APPLIED: "The {what} is done.",
    Outcome.ACCEPTED: "The {what} has been submitted; there is no result yet.",
    Outcome.CANCELLED: "The {what} was stopped.",
}
_NOT_SAID: Final = "The {what} did not go through."
"""What such a client makes of everything else, a timeout above all."""
_ON_ITS_WAY: Final = "It cannot be stopped any more. The {what} is on its way."

_KEYS: Final[Mapping[Key, Callable[[Terms, str], str]]] = {
    Key.CALL: lambda terms, call_id: call_id,
    Key.ORDER: lambda terms, call_id: terms.subject,
    Key.ORDER_AND_CARD: lambda terms, call_id: f"{terms.subject} {terms.card.token if terms.card else ''}",
}


class Floor:
    """Asks for the reply to a result once no response is open, since the server refuses it before."""

    def __init__(self, on_hold: OnHold, ask: Callable[[], None]) -> None:
        self._on_hold = on_hold
        self._ask = ask
        self._is_open = False
        self._is_wanted = False

    def posted(self, after: AfterOutput) -> None:
        """A tool's output was posted, and is to be followed by this: ask, unless that is silence and is kept to."""
        if after is AfterOutput.REPLY or self._on_hold is OnHold.ASKS:
            self.ask()

    def ask(self) -> None:
        """Ask now, or as soon as the response that is open is done."""
        if self._is_open:
            self._is_wanted = True
        else:
            self._ask()

    def message(self, event: object) -> None:
        """Take one event of the server."""
        match event:
            case server.ResponseCreated():
                self._is_open = True
            case server.ResponseDone():
                self._is_open = False
                if self._is_wanted:
                    self._is_wanted = False
                    self._ask()
            case _:
                pass


class Acting:
    """What one call of a baseline does on the world."""

    def __init__(self, acts: Acts, provider: Provider | None, floor: Floor) -> None:
        self.floor = floor
        self._acts = acts
        self._provider = provider
        self._made: dict[str, tuple[asyncio.Task[str], str]] = {}
        """What is under way or done by its key, and in which words."""
        self._turns = 0
        self._said: list[str] = []

    def caller_spoke(self) -> None:
        """The caller began to speak."""
        self._turns += 1
        if self._acts.stops_waiting:
            for task, _ in self._made.values():
                task.cancel()

    def agent_said(self, text: str) -> None:
        """The model wrote a reply."""
        self._said.append(text)

    async def act(self, tool: Tool, context: Context[Any], arguments: Mapping[str, Any]) -> tuple[str, Tells]:
        """Carry out a call of an action: the output, and what is done with it. Raises UsageError without a provider."""
        turns, replies = self._turns, len(self._said)
        try:
            terms = await tool.function(context, **arguments)
        except Refuse as reason:
            return msgspec.json.encode({"asked": "refused", "why": str(reason)}).decode(), Tells.RESULT
        assert isinstance(terms, Terms)
        assert tool.action
        sentence = what(tool.action.kind, terms)
        key = _KEYS[self._acts.key](terms, context.tool_call_id)
        made, first = self._made.get(key, (None, ""))
        if made is None:
            dispatch = Dispatch("naive", 1, 1, key, tool.action.kind, tool.action.slot_of(terms), terms, "")
            made = asyncio.get_running_loop().create_task(self._done(dispatch, sentence))
            self._made[key] = (made, sentence)
        elif self._acts.tells is Tells.UNLESS_NAMED and not made.done():
            return _output("conflict", _ON_ITS_WAY.format(what=first)), Tells.RESULT
        try:
            said = await asyncio.shield(made)
        except asyncio.CancelledError:
            if not made.cancelled():
                raise
            said = f"The {sentence} was stopped."
        return _output("done", said), self._tells(turns, self._said[replies:], terms)

    def _tells(self, turns: int, replies: Sequence[str], terms: Terms) -> Tells:
        """What is done with the result of a call behind which came so many turns, and these replies."""
        match self._acts.tells:
            case Tells.UNLESS_SPOKEN:
                is_told = turns != self._turns
            case Tells.UNLESS_NAMED:
                is_told = terms.card is not None and any(terms.card.last4 in _digits(text) for text in replies)
            case other:
                return other
        return Tells.NOTHING if is_told else Tells.RESULT

    async def _done(self, dispatch: Dispatch, sentence: str) -> str:
        """Send, and wait for the end of it."""
        if self._provider is None:
            raise UsageError("an action needs a provider: add provider to the scenario")
        observed = await self._provider.send(dispatch)
        for _ in range(LOOKS):
            if observed.outcome is not Outcome.ACCEPTED:
                break
            await asyncio.sleep(LOOK_EVERY_MS / 1000)
            observed = await self._provider.look_up(dispatch)
        return _SAID.get(observed.outcome, _NOT_SAID).format(what=sentence)


def _output(asked: str, say: str) -> str:
    return msgspec.json.encode({"asked": asked, "say": say}).decode()


def _digits(text: str) -> str:
    """The digits of a text, one behind the other."""
    return "".join(filter(str.isdigit, text))
