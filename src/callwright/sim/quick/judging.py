"""A refund call judged from outside: by the provider's book, and by the words that reached the caller's ear.

It owns the verdict. A heard reply is read from the line's own books and the words that the model spoke; what it claims
is held against the provider's book at the instant at which its last word was heard. Of the product's own tables only
beliefs are read, to be refuted: "he heard it", "it is done", "this was sent under that key".

| | holds at every point |
|---|---|
| I1 - I10 | the provider's book: see ``callwright.sim.provider.oracle`` |
| I6, I12 | the ledger's rows lead from one to another without a gap |
| I15, I21 | no outcome is heard that the book did not hold then, unless the truth is heard later or owed outside |
| I16, I17 | what counts as heard was heard: whole, of the right card, in a reply that began after the fact |
| I19 | what was heard last of the outcome is what became of it, or somebody is to tell him |
| I20 | one outcome is told three times at most, and as often again as he speaks |
| I22 | in the end every doubt is resolved or a person's; what is done is told before it was silent for 2.5 s |
| I24 | one output for each tool call; no reply is asked for while another one is open |
| EFFECT | what he asked for was done, or is a person's; to the card that he asked for in time; withdrawn in time, not |
| END | the call ends |

Of a caller who wants several refunds, each is held to this on its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from callwright.claims.facts import ClaimFacts, Milestone, Said, Verdict
from callwright.claims.matcher import claimed, judge
from callwright.claims.words import Heard
from callwright.declare.actions import Money
from callwright.ledger.owing import CONFLICT, DEFERRED
from callwright.sim.behind.inspection import claim_of
from callwright.sim.models import ToolRequested
from callwright.sim.provider import oracle
from callwright.sim.provider.book import Refund, Status

if TYPE_CHECKING:
    from callwright.ids import Ms
    from callwright.sim.behind.backend import Books
    from callwright.sim.provider import ProviderSettings
    from callwright.sim.quick.call import QuickResult

GOODBYE = "end_call"
TELLINGS_MAX = 3
SILENCE_MS: Ms = 2_500
"""So long nobody speaks at most while an outcome is known and not told."""
KNOWN_MS: Ms = 2_000
"""So long after the settlement the ledger knows of it."""
SLACK_MS: Ms = 700
"""A change of card that comes so near to the settlement may go either way."""

_TELLS = {
    Said.DONE: Milestone.CONFIRMED,
    Said.FAILED: Milestone.FAILED,
    Said.CANCELLED: Milestone.CANCELLED,
    Said.REVERSED: Milestone.REVERSED,
}
_NOT_DONE: Mapping[Status | None, tuple[Said, ...]] = {
    None: (Said.FAILED, Said.CANCELLED),
    Status.CANCELLED: (Said.CANCELLED,),
    Status.FAILED: (Said.FAILED,),
    Status.REVERSED: (Said.REVERSED,),
}
"""What may be said last of what was not done, by what the book has of it."""
_OTHER_TASKS = ("change_too_late",)
"""What a person has to see to beside the outcome, which the caller is to hear all the same, or from that person."""
_BRANDS = {"4242": "Visa", "8812": "Mastercard"}


@dataclass(frozen=True, slots=True)
class Utterance:
    """What reached the ear of one reply, or part of a reply."""

    words: tuple[tuple[str, Ms], ...]
    """The words of which every sample was heard, with the instants at which each had been."""
    whole: str
    """All that the model said."""
    began_ms: Ms
    """When its first sample left the model."""
    tool: str | None

    @property
    def text(self) -> str:
        """The words."""
        return " ".join(word for word, _ in self.words)

    @property
    def ended_ms(self) -> Ms:
        """When the last of them had been heard."""
        return self.words[-1][1]

    @property
    def heard(self) -> Heard:
        """For the matcher."""
        return Heard(self.text, cut=self.text != self.whole)

    def heard_by(self, at_ms: Ms) -> Heard:
        """What had been heard of it at an instant."""
        text = " ".join(word for word, heard_ms in self.words if heard_ms <= at_ms)
        return Heard(text, cut=text != self.whole)


def utterances(call: QuickResult) -> tuple[Utterance, ...]:
    """All that was heard, in order."""
    found = []
    for item in call.spoken:
        spans = [span for span in call.ear if span.item_id == item.item_id]
        words = tuple(
            (word.text, span.at_ms + word.end_ms - span.from_ms)
            for word in item.words
            for span in spans
            if span.from_ms <= word.start_ms and word.end_ms <= span.to_ms
        )
        if words:
            whole = " ".join(word.text for word in item.words)
            found.append(Utterance(words, whole, item.started_ms, item.tool))
    return tuple(found)


_PRICE = Money(3200, "USD")


@dataclass(frozen=True, slots=True)
class Errand:
    """One refund that a caller wants, and the tools that are called for it."""

    subject: str = "order:4417"
    slot: str = "full"
    amount: Money = _PRICE
    action: str = "issue_refund"
    withdrawal: str = "withdraw_refund"


@dataclass(frozen=True, slots=True)
class Case:
    """One caller, and what he had his reasons to expect."""

    settings: ProviderSettings
    errands: tuple[Errand, ...] = (Errand(),)
    strict_cards: bool = False
    """Whether nothing went wrong, so that a change of card in time must take hold."""
    says_what_it_is_told: bool = True
    """Whether the model has no bad habits, so that each reply that is asked for tells what is owed."""


@dataclass(slots=True)
class _Trial:
    """One errand of a call before its judge."""

    case: Case
    errand: Errand
    call: QuickResult
    books: Books
    said: tuple[Utterance, ...]
    rows: list[list[Any]]

    @property
    def cards(self) -> tuple[str, ...]:
        return tuple(card.removeprefix("card:") for card in self.books.book.charges[self.errand.subject].cards)

    @property
    def is_lost_in_goodbye(self) -> bool:
        """Whether the connection broke while the agent said goodbye: no other one follows, and that ends the call."""
        return self.call.ending.by == "model" and not all(self.call.outputs(GOODBYE))

    @property
    def op_ids(self) -> tuple[str, ...]:
        """The ledger's name of the errand, if it has come to that."""
        errand = self.errand.subject, self.errand.slot
        return tuple(each.op_id for each in self.books.operations if (each.subject, each.slot) == errand)

    def facts(self, milestone: Milestone, last4: str) -> ClaimFacts:
        errand = self.errand
        return ClaimFacts(
            "refund",
            milestone,
            ("amount", "card"),
            amount_minor=errand.amount.minor,
            currency=errand.amount.currency,
            brand=_BRANDS[last4],
            last4=last4,
            subject=errand.subject,
        )

    def tells(self, heard: Heard, milestone: Milestone, last4: str) -> bool:
        return judge(heard, self.facts(milestone, last4)).verdict is Verdict.TOLD

    def refunds(self, at_ms: Ms) -> list[Refund]:
        """The refunds of the order as they were at an instant of the call."""
        book = self.books.book
        seen = (book.as_of(each.id, at_ms + self.books.opened_ms) for each in book.refunds())
        return [each for each in seen if each is not None and each.ask.charge == self.errand.subject]

    def final(self) -> list[Refund]:
        return [each for each in self.books.book.refunds() if each.ask.charge == self.errand.subject]

    def is_true(self, said: Said, last4: str | None, at_ms: Ms) -> bool:
        """Whether the book bears out an outcome; without a card, of any card."""
        of_card = [each for each in self.refunds(at_ms) if last4 is None or each.card == f"card:{last4}"]
        match said:
            case Said.DONE:
                return any(each.status is Status.SUCCEEDED for each in of_card)
            case Said.REVERSED:
                return any(each.status is Status.REVERSED for each in of_card)
        return not any(each.status.is_live for each in of_card)

    def outcomes(self, utterance: Utterance) -> list[tuple[Said, str | None]]:
        """What an utterance claims of the outcome, with the cards that it names for it."""
        said = claimed(utterance.heard, self.facts(Milestone.CONFIRMED, self.cards[0])).said
        if said not in _TELLS or self.is_of_another(utterance.heard, _TELLS[said]):
            return []
        named = [card for card in self.cards if self.tells(utterance.heard, _TELLS[said], card)]
        return [(said, card) for card in named] or [(said, None)]

    def is_of_another(self, heard: Heard, milestone: Milestone) -> bool:
        """Whether this tells how another errand stands."""
        others = [replace(self, errand=each) for each in self.case.errands if each != self.errand]
        return any(other.tells(heard, milestone, card) for other in others for card in other.cards)

    def is_owed_outside(self) -> bool:
        """Whether somebody is to tell the caller, or to look into what became of it."""
        left = [(told.op_id, told.version) for told in self.books.told if told.state == DEFERRED]
        return any(
            row.reason not in _OTHER_TASKS or (row.op_id, row.version) in left
            for row in self.books.outbox
            if row.done_at_ms is None and row.kind != CONFLICT and row.op_id in self.op_ids
        )


def judged(call: QuickResult, case: Case) -> list[str]:
    """Every violation, as ``invariant: what``; empty where all holds."""
    assert call.books is not None
    rows = [row for line in call.trace.splitlines() if len(row := json.loads(line)) == 4]
    first, *others = (_Trial(case, each, call, call.books, utterances(call), rows) for each in case.errands)
    found = [f"{name}: {what}" for name, check in (*_CALL_CHECKS, *_CHECKS) for what in check(first)]
    for trial in others:
        found += [f"{name}: {trial.errand.subject}: {what}" for name, check in _CHECKS for what in check(trial)]
    return found


def _by_the_book(trial: _Trial) -> Iterator[str]:
    books = trial.books
    trials = [replace(trial, errand=each) for each in trial.case.errands]
    record = oracle.Record(
        grants=tuple(
            oracle.Grant(
                at_ms + books.opened_ms, op_id, of.errand.subject, of.errand.slot, of.errand.amount, f"card:{card}"
            )
            for of in trials
            for op_id in of.op_ids
            for at_ms, card in _wishes(of)
        ),
        attempts=tuple(oracle.Attempt(each.provider_key, each.opened_at_ms) for each in books.attempts),
        claims=tuple(claim_of(each, books.attempts) for each in books.operations),
    )
    for violation in oracle.check(books.book, record, trial.case.settings.traits, healed=True):
        yield f"{violation.invariant} {violation.what}"


def _wishes(trial: _Trial) -> Iterator[tuple[Ms, str]]:
    """When the model asked for the refund, and to which card."""
    for at_ms, arguments in _calls(trial, trial.errand.action):
        named = arguments["card_last4"]
        yield at_ms, next((last4 for last4, brand in _BRANDS.items() if brand == named), named)


def _calls(trial: _Trial, tool: str) -> Iterator[tuple[Ms, dict[str, Any]]]:
    """When the model called a tool for the errand's order, and with which arguments."""
    for at_ms, kind, name, content in trial.rows:
        if (kind, name) == ("do", "StartTool") and content["name"] == tool:
            arguments = json.loads(content["arguments"])
            if f"order:{arguments['order_id']}" == trial.errand.subject:
                yield at_ms, arguments


def _record_agrees(trial: _Trial) -> Iterable[str]:
    return trial.books.problems


def _nothing_false(trial: _Trial) -> Iterator[str]:
    for at, utterance in enumerate(trial.said):
        for said, card in trial.outcomes(utterance):
            if trial.is_true(said, card, utterance.ended_ms):
                continue
            mended = any(
                trial.is_true(other, named, later.ended_ms) and named is not None
                for later in trial.said[at + 1 :]
                for other, named in trial.outcomes(later)
            )
            if not mended and not trial.is_owed_outside():
                yield f"{utterance.text!r}, heard until {utterance.ended_ms} ms, was false, and was never put right"


def _heard_is_heard(trial: _Trial) -> Iterator[str]:
    told_as = {milestone: said for said, milestone in _TELLS.items()}
    for at_ms, kind, name, content in trial.rows:
        is_kept = (kind, name) == ("do", "RecordTold") and content["state"] == "heard"
        if is_kept and content["op_id"] in trial.op_ids:
            milestone = Milestone(content["milestone"])
            is_judged = milestone is Milestone.UNKNOWN or milestone in told_as
            if is_judged and not any(_tells_by(trial, each, milestone, at_ms) for each in trial.said):
                yield f"{milestone.value} counts as heard at {at_ms} ms, and nobody heard it"


def _tells_by(trial: _Trial, utterance: Utterance, milestone: Milestone, at_ms: Ms) -> bool:
    """Whether an utterance told a milestone by then, truly, in a reply that began when it was true already."""
    if utterance.tool is not None:
        return False
    said = {value: key for key, value in _TELLS.items()}.get(milestone)
    heard = utterance.heard_by(at_ms)
    return any(
        trial.tells(heard, milestone, card) and (said is None or trial.is_true(said, card, utterance.began_ms))
        for card in trial.cards
    )


def _last_is_true(trial: _Trial) -> Iterator[str]:
    if not trial.op_ids or trial.is_owed_outside():
        return
    final = trial.final()
    live = [each for each in final if each.status.is_live]
    heard = [(utterance, outcome) for utterance in trial.said for outcome in trial.outcomes(utterance)]
    became = "done" if live else final[-1].status.value if final else "not done"
    if not heard:
        yield f"it is {became}, he heard of no outcome, and nobody is to tell him"
        return
    utterance, (said, card) = heard[-1]
    is_right = card is not None and (
        said is Said.DONE and any(each.card == f"card:{card}" for each in live)
        if live
        else said in _NOT_DONE[final[-1].status if final else None]
    )
    if not is_right:
        yield f"it is {became}, the last that he heard is {utterance.text!r}, and nobody is to tell him"


def _told_in_time(trial: _Trial) -> Iterator[str]:
    """Nobody is left in silence with an outcome that is known."""
    live = [each for each in trial.final() if each.status is Status.SUCCEEDED]
    if len(live) != 1 or not trial.op_ids or not trial.case.says_what_it_is_told:
        return
    card = live[0].card.removeprefix("card:")
    known_ms = live[0].at_ms - trial.books.opened_ms + KNOWN_MS
    for from_ms, to_ms in _silences(trial, known_ms):
        before = [each for each in trial.said if each.began_ms < to_ms]
        tellings = [each for each in before if trial.tells(Heard(each.whole), Milestone.CONFIRMED, card)]
        is_heard = any(trial.tells(each.heard, Milestone.CONFIRMED, card) for each in tellings)
        if not is_heard and len(tellings) < TELLINGS_MAX:
            yield f"nobody spoke from {from_ms} to {to_ms} ms, and the outcome was not told"


def _silences(trial: _Trial, after_ms: Ms) -> Iterator[tuple[Ms, Ms]]:
    """Stretches of silence that are too long, between two sounds of anybody's."""
    call = trial.call
    sounds = [(span.at_ms, span.at_ms + span.to_ms - span.from_ms) for span in call.ear]
    sounds += [(line.started_ms, line.ended_ms) for line in call.caller_lines]
    until_ms = after_ms
    for began_ms, ended_ms in sorted(sounds):
        if began_ms - until_ms > SILENCE_MS:
            yield until_ms, began_ms
        until_ms = max(until_ms, ended_ms)


def _not_too_often(trial: _Trial) -> Iterator[str]:
    for milestone in _TELLS.values():
        for card in trial.cards:
            tellings = [each for each in trial.said if trial.tells(Heard(each.whole), milestone, card)]
            if tellings:
                spoke = sum(line.ended_ms > tellings[0].began_ms for line in trial.call.caller_lines)
                if len(tellings) > TELLINGS_MAX + spoke:
                    yield f"{milestone.value}, {card}, was told {len(tellings)} times"


def _one_output(trial: _Trial) -> Iterator[str]:
    for tool in dict.fromkeys(each.name for each in trial.call.history if isinstance(each, ToolRequested)):
        for number, outputs in enumerate(trial.call.outputs(tool), 1):
            if len(outputs) != 1 and not (tool == GOODBYE and trial.is_lost_in_goodbye):
                yield f"call {number} of {tool} has {len(outputs)} outputs"


def _one_reply(trial: _Trial) -> Iterator[str]:
    is_open, is_awaited = dict[str, None](), False
    for at_ms, kind, name, content in trial.rows:
        match kind, name:
            case "on", "ResponseStarted":
                is_open[content["response_id"]], is_awaited = None, False
            case "on", "ResponseEnded":
                is_open.pop(content["response_id"], None)
            case "on", "RequestRefused":
                is_awaited = False
            case "do", "Connect":  # whatever the old session had open is over
                is_open, is_awaited = {}, False
            case "do", "RequestReply":
                if is_open or is_awaited:
                    yield f"a reply was asked for at {at_ms} ms, while another one was {'open' if is_open else 'due'}"
                is_awaited = True


def _effect(trial: _Trial) -> Iterator[str]:
    wishes = list(_wishes(trial))
    if not wishes:
        return
    asked_ms, card = wishes[-1]
    live = [each for each in trial.final() if each.status.is_live]
    settled = [
        each.at_ms - trial.books.opened_ms
        for each in trial.books.book.entries
        if isinstance(each, Refund) and each.ask.charge == trial.errand.subject and each.status is Status.SUCCEEDED
    ]
    withdrawn = [at_ms for at_ms, _ in _calls(trial, trial.errand.withdrawal) if at_ms > asked_ms]
    can_be_stopped = bool(withdrawn and trial.case.settings.traits.cancels)
    if not live and not can_be_stopped and not trial.is_owed_outside():
        yield "nothing was done, and it is nobody's task"
    if can_be_stopped and settled and withdrawn[0] < settled[0] - SLACK_MS:
        yield f"it was done, although it was withdrawn at {withdrawn[0]} ms"
    if not trial.case.strict_cards:
        return
    if settled and asked_ms < settled[0] - SLACK_MS:
        wanted = card
    elif settled and asked_ms > settled[0] + SLACK_MS:
        wanted = wishes[0][1]
    else:
        return
    if [each.card for each in live] != [f"card:{wanted}"]:
        yield f"it went to {[each.card for each in live]}, not to {wanted}, asked for at {asked_ms} ms"


def _ends(trial: _Trial) -> Iterator[str]:
    ending = trial.call.ending
    if ending.by not in ("agent", "caller") and not trial.is_lost_in_goodbye:
        yield f"the call was ended by {ending.by}: {ending.reason}"


_CALL_CHECKS = (
    ("BOOK", _by_the_book),
    ("I6/I12", _record_agrees),
    ("I24", _one_output),
    ("I24", _one_reply),
    ("END", _ends),
)
_CHECKS = (
    ("I15", _nothing_false),
    ("I16", _heard_is_heard),
    ("I19", _last_is_true),
    ("I20", _not_too_often),
    ("I22", _told_in_time),
    ("EFFECT", _effect),
)
