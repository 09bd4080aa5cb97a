"""The joint of one call and the ledger: what its actions ask for, what it may say of them, and what was heard of that.

```
model    calls ── plan ── propose ── output, worded from the record
ledger                    │ running ── accepted ── confirmed │ heard, noted
core                      └─ FactChanged ┴────────────┴─ told ┘
```

It owns nothing that lasts: what was asked for lives in the ledger, and goes on when this call ends. Facts reach the
call once its session is ready; the first ones are of what its caller asked for earlier. What the call has to write goes
to the ledger in order, and nothing waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from callwright.claims.facts import ClaimFacts, Milestone
from callwright.claims.lexicon import Lexicon
from callwright.core import commands as do
from callwright.core.events import Consent, FactChanged, ToolOutcome
from callwright.declare.actions import Action, Authority, Terms
from callwright.declare.tools import Facts, Tool
from callwright.errors import UsageError
from callwright.ids import Ms
from callwright.ledger import saying
from callwright.ledger.asking import Ask
from callwright.ledger.operation import Actor
from callwright.ledger.rows import operation_id
from callwright.runtime.answers import facts_of, in_doubt, not_asked, output_of, withdrawn
from callwright.runtime.dispatcher import Ledger
from callwright.runtime.problems import Whole

PROPOSE_MS: Final[Ms] = 5_000
"""How long the ledger may take to note a wish; after it the model is told that this is not known."""
OUTCOME_MS: Final[Ms] = 10_000
"""How long an outcome is waited for at most, where a tool's output is to hold it."""
WRITE_MS: Final[Ms] = 1_000
"""How long the end of a call waits for what it still writes."""
EARLIER: Final = 20
"""So many of a caller's earlier operations a call is told of, the latest ones, beside all that he is still owed."""

_log = logging.getLogger(__name__)


class Output(NamedTuple):
    """How a tool ended, the text for the model, and whether it is spoken about (None: as declared)."""

    outcome: ToolOutcome
    text: str
    speaks: bool | None = None
    raised: str = ""
    """The type of the exception that ended it."""
    knowledge: str = ""
    """Topics that come with it, as JSON."""


def check_actions(agent: str, tools: Mapping[str, Tool], ledger: Ledger | None) -> None:
    """Raise UsageError if the ledger is missing that an agent's actions need, or lacks one of their providers."""
    for tool in tools.values():
        if tool.action is None:
            continue
        if ledger is None:
            raise UsageError(f"agent {agent} has the action {tool.name}, so the call needs run(..., ledger=...)")
        if tool.action.provider not in ledger.providers:
            known = ", ".join(ledger.providers) or "none"
            raise UsageError(
                f"action {tool.name} of agent {agent} needs the provider {tool.action.provider!r}; open the ledger "
                f"with it (it has: {known})"
            )


class Actions:
    """What one call has to do with the ledger."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        ledger: Ledger,
        party: str | None,
        *,
        handle: Callable[[FactChanged], None],
        note: Callable[[str], None],
        waits: bool = False,
    ) -> None:
        actions = [tool.action for tool in tools.values() if tool.action]
        self._lexicons: Mapping[str, Lexicon | None] = {action.kind: action.lexicon for action in actions}
        self._ledger = ledger
        self._party = party
        self._handle = handle
        self._note = note
        self._waits = waits
        self._ours: dict[str, None] = {}
        """The operations that were asked for in this call, or that an earlier one left untold."""
        self._latest: dict[str, saying.FactChanged] = {}
        self._held: dict[str, FactChanged] | None = {}
        """What the core is to be told as soon as the session is ready; None from then on."""
        self._is_news: dict[str, asyncio.Event] = {}
        self._writes: dict[asyncio.Task[None], None] = {}
        self._earlier: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self.commands: Mapping[type, Callable[[Any], None]] = {
            do.RecordTold: self._told,
            do.Authorize: self._authorize,
            do.Withdraw: self._withdraw,
        }
        """What carries out the commands that are for the ledger."""

    def open(self) -> None:
        """Begin to listen, and read what this caller asked for earlier."""
        if self._party is None:
            return
        self._unsubscribe = self._ledger.subscribe(self._changed, party=self._party)
        self._earlier = asyncio.get_running_loop().create_task(self._read_earlier(self._party))

    def ready(self) -> None:
        """The session is ready: what was held is told now, everything else as it comes."""
        held, self._held = self._held or {}, None
        for fact in held.values():
            self._handle(fact)

    async def close(self) -> None:
        """Stop listening, and let what is being written come to its end, for at most ``WRITE_MS``. Idempotent."""
        if self._unsubscribe:
            self._unsubscribe()
        if self._earlier:
            self._earlier.cancel()
        writes = list(self._writes)
        try:
            async with asyncio.timeout(WRITE_MS / 1000):
                await asyncio.shield(asyncio.gather(*writes, return_exceptions=True))
        except TimeoutError:
            self._note(f"the ledger did not take what was told within {WRITE_MS // 1000} s; it is still being written")

    # --- asking

    async def ask(self, tool: Tool, action: Action, terms: Terms) -> Output:
        """Ask the ledger for what was planned, and word the answer. Never raises for what the ledger does."""
        party = self._party
        if party is None:
            return Output(ToolOutcome.RETURNED, not_asked("it is not known who the caller is"), True)
        try:
            slot = action.slot_of(terms)
            self._claim_facts(action.kind, Milestone.REQUESTED, action.must_hear, terms)
        except Exception as problem:  # a mistake of the app's, in a function of its own or in its terms
            _log.error("action %s planned what cannot be told: %s", tool.name, type(problem).__name__)
            _log.debug("action %s planned what cannot be told\n%s", tool.name, Whole(problem))
            return Output(ToolOutcome.RAISED, not_asked("it could not be planned"), True, type(problem).__name__)
        wish = Ask(
            action.kind, slot, party, action.provider, terms, action.authority, action.must_hear, is_waited_for=True
        )
        self._ours[operation_id(action.kind, terms.subject, slot)] = None
        try:
            async with asyncio.timeout(PROPOSE_MS / 1000):
                answer = await self._ledger.propose(wish)
        except Exception as problem:  # whatever a store does, the caller gets an answer
            _log.error("action %s: the ledger raised %s", tool.name, type(problem).__name__)
            _log.debug("action %s: the ledger raised\n%s", tool.name, Whole(problem))
            return Output(ToolOutcome.RAISED, in_doubt(), True, type(problem).__name__)
        fact = answer.fact
        if self._waits and fact is not None:
            fact = await self._outcome(fact)
        text, speaks = output_of(answer, fact)
        return Output(ToolOutcome.RETURNED, text, speaks or self._waits)

    async def _outcome(self, fact: saying.FactChanged) -> saying.FactChanged:
        """The fact that an operation has come to rest in, or the latest one after ``OUTCOME_MS``."""
        news = self._is_news.setdefault(fact.op_id, asyncio.Event())
        latest = fact
        try:
            async with asyncio.timeout(OUTCOME_MS / 1000):
                while True:
                    news.clear()
                    seen = self._latest.get(fact.op_id, fact)
                    latest = seen if seen.version >= latest.version else latest
                    if latest.is_settled or (latest.milestone == Milestone.PROPOSED):
                        return latest
                    await news.wait()
        except TimeoutError:
            return latest

    # --- facts

    def _changed(self, fact: saying.FactChanged) -> None:
        """Something else may be said of one of this caller's operations."""
        self._latest[fact.op_id] = fact
        if fact.op_id in self._is_news:
            self._is_news[fact.op_id].set()
        self._tell(fact)

    def _tell(self, fact: saying.FactChanged) -> None:
        if fact.kind not in self._lexicons:
            return  # another agent's: this one has no words for it
        try:
            facts = self._claim_facts(fact.kind, Milestone(fact.milestone), fact.must_hear, fact.terms)
        except UsageError as problem:
            self._note(f"operation {fact.op_id} cannot be told in this call: {problem}")
            return
        is_wanted = fact.milestone == Milestone.PROPOSED and fact.authority is Authority.CALLER
        consent = Consent(fact.rev, fact.params_hash) if is_wanted else None
        is_ours = fact.op_id in self._ours
        event = FactChanged(fact.op_id, fact.version, facts, fact.sentence, fact.is_settled, is_ours, consent)
        if self._held is None:
            self._handle(event)
        else:
            self._held[fact.op_id] = event

    def _claim_facts(self, kind: str, milestone: Milestone, must_hear: tuple[str, ...], terms: Terms) -> ClaimFacts:
        """Terms as a sentence can tell them. Raises UsageError for what no sentence here can."""
        amount, card = terms.amount, terms.card
        return ClaimFacts(
            kind,
            milestone,
            must_hear,
            amount_minor=amount.minor if amount else None,
            currency=amount.currency if amount else "",
            exponent=saying.exponent_of(amount.currency) if amount else 2,
            brand=card.brand if card else "",
            last4=card.last4 if card else "",
            subject=terms.subject,
            texts=tuple(sorted(terms.details.items())),
            words=self._lexicons.get(kind),
        )

    async def _read_earlier(self, party: str) -> None:
        """Take up what this caller asked for before, and what of it he was not told."""
        try:
            every = await self._ledger.snapshot(party)
            untold = [fact.op_id for fact in await self._ledger.untold(party)]
        except Exception as problem:
            _log.debug("what the caller asked for earlier cannot be read\n%s", Whole(problem))
            self._note(f"what the caller asked for earlier cannot be read from the ledger ({type(problem).__name__})")
            return
        self._ours.update(dict.fromkeys(untold))
        latest = [fact.op_id for fact in every[-EARLIER:]]
        for fact in every:
            if fact.op_id not in self._latest and (fact.op_id in untold or fact.op_id in latest):
                self._changed(fact)

    # --- what a tool may read: see `Context`

    async def operations(self) -> tuple[Facts, ...]:
        """What may be said of each of the caller's operations."""
        facts = await self._ledger.snapshot(self._party) if self._party is not None else ()
        return tuple(facts_of(fact) for fact in facts)

    async def facts(self, kind: str, subject: str, slot: str) -> Facts:
        """What may be said of one of them."""
        return facts_of(await self._fact(kind, subject, slot))

    async def look_up(self, kind: str, subject: str, slot: str) -> Facts:
        """The same, after the provider was asked where the outcome is unknown."""
        fact = await self._fact(kind, subject, slot)
        if fact is not None and fact.milestone == Milestone.UNKNOWN:
            fact = await self._ledger.reconcile(fact.op_id)
        return facts_of(fact)

    async def withdraw(self, kind: str, subject: str, slot: str) -> Facts:
        """Withdraw one of them, as long as nothing was sent."""
        fact = await self._fact(kind, subject, slot)
        if fact is None or self._party is None:
            return facts_of(None)
        self._ours[fact.op_id] = None
        return withdrawn(await self._ledger.withdraw(fact.op_id, self._party))

    async def _fact(self, kind: str, subject: str, slot: str) -> saying.FactChanged | None:
        """An operation of this caller's own; another's is none to him."""
        if self._party is None:
            return None
        op_id = operation_id(kind, subject, slot)
        return next((fact for fact in await self._ledger.snapshot(self._party) if fact.op_id == op_id), None)

    # --- what the core wants written

    def _told(self, command: do.RecordTold) -> None:
        """Keep how far a telling has come."""
        key = command.op_id, command.milestone.value, command.version, command.state.value
        self._write(self._ledger.note_told(*key))

    def _authorize(self, command: do.Authorize) -> None:
        """Pass on the caller's yes."""
        self._write(self._ledger.authorize(command.op_id, command.rev, command.params_hash, Actor.CALLER))

    def _withdraw(self, command: do.Withdraw) -> None:
        """Pass on the caller's no."""
        if self._party is not None:
            self._write(self._ledger.withdraw(command.op_id, self._party))

    def _write(self, verb: Awaitable[object]) -> None:
        """Begin to write; verbs reach the ledger in the order in which they are begun."""
        task = asyncio.get_running_loop().create_task(self._written(verb))
        self._writes[task] = None
        task.add_done_callback(lambda done: self._writes.pop(done, None))

    async def _written(self, verb: Awaitable[object]) -> None:
        try:
            await verb
        except Exception as problem:
            _log.debug("the ledger raised\n%s", Whole(problem))
            self._note(f"the ledger could not keep what was told ({type(problem).__name__})")
