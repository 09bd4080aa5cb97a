"""An operation: what is done to one thing, at most once, and how far it has come.

Owns the states, the rows T1 to T17 that lead from one to another, and who may cause each. Does not own when a row is
due (``policy``), what evidence means (``folding``) or who is told (the call).

```
ask       caller's yes      attempt row on disk        the provider has it      it says: applied
 │ PROPOSED    │ REQUESTED      │ RUNNING ░░░░░░░░░░░░░░░░░│ ACCEPTED ░░░░░░░░░░░░░░░░│ CONFIRMED
 └ T1          └ T2             └ T5, then the first byte  └ T6                       └ T11
                                └ T8: timeout, 5xx, crash: UNKNOWN ░░ look up, T9 ░░░ ACCEPTED, CONFIRMED or FAILED
```

T1 makes an operation, so it is no row: an operation starts PROPOSED. The model causes T1 and T16 only; the clock never
causes a claim about an effect; speech, barge-in and hang-up cause nothing at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from callwright.core.table import Table
from callwright.errors import IllegalTransition


class State(Enum):
    """How far an operation has come."""

    PROPOSED = "proposed"
    """The terms are valid; nobody has authorised them."""
    REQUESTED = "requested"
    """Authorised and stored; nothing was sent."""
    RUNNING = "running"
    """An attempt is stored; bytes may have left."""
    ACCEPTED = "accepted"
    """The provider has it; the outcome is pending."""
    CONFIRMED = "confirmed"
    """The provider says that it was done."""
    FAILED = "failed"
    """The provider says that it was not done, and this attempt never will be."""
    UNKNOWN = "unknown"
    """An attempt ended without evidence."""
    CANCELLED = "cancelled"
    """Withdrawn before dispatch, or the provider confirmed a cancel."""
    REVERSED = "reversed"
    """It was done, and later undone."""


class Step(Enum):
    """What happens to an operation."""

    AUTHORIZE = "authorize"
    WITHDRAW = "withdraw"
    """Before anything was sent: by a wish, by a rule, or because nobody authorised it in time."""
    DISPATCH = "dispatch"
    """An attempt was stored, or is to be sent again; the first byte follows the commit."""
    NOT_SENT = "not_sent"
    DOUBT = "doubt"
    ACCEPT = "accept"
    APPLY = "apply"
    REJECT = "reject"
    CANCEL = "cancel"
    REVERSE = "reverse"
    RETRY = "retry"
    """A failed one is authorised anew."""
    RENEW = "renew"
    """A stopped or reversed one is proposed anew, as another revision."""


class Actor(Enum):
    """Who causes a step."""

    MODEL = "model"
    CALLER = "caller"
    POLICY = "policy"
    """The app's rules and the ledger's own."""
    HUMAN = "human"
    CLOCK = "clock"
    DISPATCHER = "dispatcher"
    RECOVERY = "recovery"
    """The start of a process that finds what another left."""
    ADAPTER = "adapter"
    """A provider's answer to what was sent."""
    RECONCILER = "reconciler"
    """A provider's answer to a look-up."""
    WEBHOOK = "webhook"
    """A provider's verified message."""


class Attempted(Enum):
    """What a row asks of the attempts that were made so far."""

    ANY = "any"
    YES = "yes"
    """There is one: an effect without an attempt is somebody else's."""


@dataclass(frozen=True, slots=True)
class Row:
    """One legal step."""

    name: str
    source: State
    step: Step
    target: State
    actors: tuple[Actor, ...]
    attempted: Attempted = Attempted.ANY


_ASKS = (Actor.POLICY, Actor.CALLER, Actor.HUMAN)
_STOPS = (Actor.CALLER, Actor.POLICY, Actor.HUMAN, Actor.CLOCK)
_SHOWS = (Actor.ADAPTER, Actor.RECONCILER, Actor.WEBHOOK, Actor.HUMAN)
"""Whoever brings evidence: what it is worth depends on what it says, not on the door that it came through."""

ROWS: tuple[Row, ...] = (
    Row("T2", State.PROPOSED, Step.AUTHORIZE, State.REQUESTED, _ASKS),
    Row("T3", State.PROPOSED, Step.WITHDRAW, State.CANCELLED, _STOPS),
    Row("T4", State.REQUESTED, Step.WITHDRAW, State.CANCELLED, _STOPS),
    Row("T5", State.REQUESTED, Step.DISPATCH, State.RUNNING, (Actor.DISPATCHER,)),
    Row("T6", State.RUNNING, Step.ACCEPT, State.ACCEPTED, _SHOWS, Attempted.YES),
    Row("T6", State.RUNNING, Step.APPLY, State.CONFIRMED, _SHOWS, Attempted.YES),
    Row("T6", State.RUNNING, Step.REJECT, State.FAILED, _SHOWS, Attempted.YES),
    Row("T7", State.RUNNING, Step.NOT_SENT, State.REQUESTED, (Actor.ADAPTER,), Attempted.YES),
    Row("T8", State.RUNNING, Step.DOUBT, State.UNKNOWN, (*_SHOWS, Actor.CLOCK, Actor.RECOVERY), Attempted.YES),
    Row("T9", State.UNKNOWN, Step.ACCEPT, State.ACCEPTED, _SHOWS, Attempted.YES),
    Row("T9", State.UNKNOWN, Step.APPLY, State.CONFIRMED, _SHOWS, Attempted.YES),
    Row("T9", State.UNKNOWN, Step.REJECT, State.FAILED, _SHOWS, Attempted.YES),
    Row("T10", State.UNKNOWN, Step.DISPATCH, State.RUNNING, (Actor.DISPATCHER,), Attempted.YES),
    Row("T11", State.ACCEPTED, Step.APPLY, State.CONFIRMED, _SHOWS, Attempted.YES),
    Row("T11", State.ACCEPTED, Step.REJECT, State.FAILED, _SHOWS, Attempted.YES),
    Row("T12", State.ACCEPTED, Step.CANCEL, State.CANCELLED, _SHOWS, Attempted.YES),
    Row("T13", State.CONFIRMED, Step.REVERSE, State.REVERSED, _SHOWS, Attempted.YES),
    Row("T14", State.FAILED, Step.RETRY, State.REQUESTED, (Actor.POLICY, Actor.HUMAN), Attempted.YES),
    Row("T15", State.FAILED, Step.APPLY, State.CONFIRMED, _SHOWS, Attempted.YES),
    Row("T15", State.CANCELLED, Step.APPLY, State.CONFIRMED, _SHOWS, Attempted.YES),
    Row("T16", State.CANCELLED, Step.RENEW, State.PROPOSED, (Actor.MODEL, Actor.CALLER, Actor.HUMAN, Actor.POLICY)),
    Row("T17", State.REVERSED, Step.RENEW, State.PROPOSED, (Actor.HUMAN,), Attempted.YES),
)

_BY_PAIR = {(row.source, row.step): row for row in ROWS}

OPERATION: Table[State, Step] = Table("operation", State.PROPOSED, {pair: row.target for pair, row in _BY_PAIR.items()})

SETTLED = (State.CONFIRMED, State.FAILED, State.CANCELLED, State.REVERSED)
"""Nothing is under way; only evidence or a new wish leads on."""

UNDER_WAY = (State.RUNNING, State.ACCEPTED, State.UNKNOWN)
"""Something was sent, and its outcome is not known."""

LIVE = (State.REQUESTED, State.RUNNING, State.ACCEPTED, State.UNKNOWN, State.CONFIRMED)
"""What counts against a cap: it has had its effect, or may have."""


def after(state: State, step: Step, actor: Actor, *, attempted: bool) -> State:
    """The state that follows; ``attempted`` says whether the operation has an attempt.

    Raises IllegalTransition for a step that is no row, an actor that may not cause it, or an effect without an attempt.
    """
    target = OPERATION.after(state, step)
    row = _BY_PAIR[state, step]
    if actor not in row.actors:
        raise IllegalTransition(OPERATION.name, state.name, f"{step.name} by {actor.name}")
    if row.attempted is Attempted.YES and not attempted:
        raise IllegalTransition(OPERATION.name, state.name, f"{step.name} without an attempt")
    return target
