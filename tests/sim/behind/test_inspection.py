"""Every run is held together at its end: the provider's book, the record, and what was kept."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import as_file, files

import pytest

from callwright.declare.actions import Card, Money, Terms
from callwright.ledger.asking import Ask
from callwright.ledger.operation import State
from callwright.ledger.provider import Outcome
from callwright.ledger.rows import Outbox
from callwright.ledger.store import KEYS
from callwright.measure.figures import measure_call
from callwright.measure.verdict import judge
from callwright.sim.behind.backend import Backend, Books
from callwright.sim.behind.dying import POINTS_IN_A_CALL, Crash
from callwright.sim.behind.inspection import broken_invariants, card_numbers, kept_texts
from callwright.sim.caller import Anchor, Step, Trigger
from callwright.sim.provider import ProviderSettings, StandIn
from callwright.sim.recorded import recorded
from callwright.sim.scenario import Scenario, load_scenario
from callwright.sim.speech import Speech
from callwright.sim.vloop import run_virtual
from callwright.sim.world import play

TRAITS = ProviderSettings().traits
CARD = Card("card:4242", "Visa", "4242")
NUMBER = "4111 1111 1111 1111"
SPOKEN = "it is four one one one, one one one one, one one one one, one one one one"


@cache
def settled(details: str = "cracked", subject: str = "order:4417") -> Books:
    """The books of one refund that was asked for and has come to rest."""

    async def go() -> Books | None:
        async with Backend(StandIn(ProviderSettings()), 10_000, party="customer:81") as backend:
            assert backend.ledger is not None
            terms = Terms(subject, Money(3200, "USD"), CARD, details={"why": details})
            await backend.ledger.propose(Ask("refund", "full", "customer:81", "payments", terms))
            await backend.settle()
            return await backend.books(0)

    books = run_virtual(go())
    assert books is not None
    return books


def broken(books: Books) -> list[str]:
    return [each.partition(":")[0] for each in broken_invariants(books, TRAITS, is_over=True)]


def test_a_refund_that_was_made_once_breaks_nothing() -> None:
    books = settled()
    assert [each.state for each in books.operations] == [State.CONFIRMED]
    assert broken(books) == []
    assert {type(row) for row in books.rows} <= set(KEYS)
    assert len({type(row) for row in books.rows}) >= 5
    assert card_numbers(kept_texts(books, b"", (), ())) == ()


@pytest.mark.parametrize(
    ("invariant", "spoil"),
    [
        ("I2", lambda books: replace(books, attempts=())),
        ("I5", lambda books: replace(books, attempts=(replace(books.attempts[0], reference="re_9"),))),
        ("I7", lambda books: replace(books, authorizations=())),
        ("I8", lambda books: replace(books, operations=(replace(books.operations[0], state=State.FAILED),))),
        ("I22", lambda books: replace(books, operations=(replace(books.operations[0], state=State.UNKNOWN),))),
        ("record", lambda books: replace(books, problems=("refund order:4417 full: its events have a gap (I12)",))),
    ],
)
def test_a_record_that_does_not_agree_with_the_book_is_named_by_its_invariant(invariant, spoil) -> None:
    assert invariant in broken(spoil(settled()))


@pytest.mark.parametrize("number", [NUMBER, NUMBER.replace(" ", ""), f"order 4417 {NUMBER}", SPOKEN])
def test_i13_a_card_number_is_found_wherever_it_is_kept(number: str) -> None:
    books = settled()
    places = kept_texts(books, b'["on", 5, "CallerTranscribed", {"deep": ["%s"]}]' % number.encode(), (), ())
    assert card_numbers(places) == ("I13: a card number is in the trace",)
    row = Outbox(books.operations[0].op_id, 9, "person", number, None)
    owed = replace(books, rows=(*books.rows, row))
    assert card_numbers(kept_texts(owed, b"", (), ())) == ("I13: a card number is in the ledger's outbox.reason",)


@pytest.mark.parametrize("name", ["item_4111111111111111_b", "4111-1111-1111-1111-4f", "msg-4111111111111111-b"])
def test_i13_the_name_that_a_server_gave_an_item_is_no_card_number_even_where_it_is_quoted(name: str) -> None:
    named = f'[8, "on", "AudioReceived", {{"item_id": "{name}"}}]\n'
    quoted = f'[9, "do", "NoteAnomaly", {{"quoted": "Item not found: {name}"}}]\n'
    assert card_numbers(kept_texts(None, (named + quoted).encode(), (), ())) == ()
    assert card_numbers(kept_texts(None, quoted.encode(), (), ())) == ("I13: a card number is in the trace",)


def test_i13_a_card_number_in_what_an_action_planned_fails() -> None:
    found = card_numbers(kept_texts(settled(f"the card {NUMBER}"), b"", (), ()))
    assert "I13: a card number is in the ledger's operation.terms_json" in found
    assert not any(NUMBER in each for each in found)


@pytest.mark.parametrize(
    "text",
    ["order 4417, call 555 0134", "4111 1111 1111 1114", "0" * 12, "item_41111111111111", f"{'a' * 16}{'1' * 16}"],
)
def test_what_is_no_card_number_is_passed_over(text: str) -> None:
    assert card_numbers({"here": [text]}) == ()


@cache
def crash() -> Scenario:
    with as_file(files("callwright.apps.refunds") / "scenarios" / "crash.yaml") as path:
        return load_scenario(path)


def test_what_died_in_a_call_is_found_in_doubt_looked_up_and_done_once() -> None:
    record = play(crash(), 1)
    assert [effect.status for effect in record.book] == ["pending", "succeeded"]
    assert (record.violations, record.unfired, record.outbox) == ((), (), ())


def test_a_death_that_has_no_occasion_is_told() -> None:
    earlier = crash().behind.earlier
    assert earlier is not None
    never = replace(earlier, crash=Crash("before fold", 99, 1_000))
    record = play(replace(crash(), behind=replace(crash().behind, earlier=never)), 1)
    assert record.unfired == ("the death before fold",)


async def wish(backend: Backend) -> None:
    """What a call has the ledger do, whose caller waits for it."""
    assert backend.ledger is not None
    terms = Terms("order:4417", Money(3200, "USD"), CARD)
    await backend.ledger.propose(Ask("refund", "full", "customer:81", "payments", terms, is_waited_for=True))
    await backend.settle()


def after_a_death(crash: Crash, *, asks_again: bool) -> Books:
    """The same ledger and provider as in a call, without one: a wish, a death, another process."""

    async def go() -> Books | None:
        async with Backend(StandIn(ProviderSettings()), 10_000, party="customer:81") as backend:
            await backend.die_in(wish(backend), crash)
            assert backend.unfired == ()
            if asks_again:
                await wish(backend)
            await backend.settle()
            return await backend.books(0)

    books = run_virtual(go())
    assert books is not None
    return books


@pytest.mark.parametrize("point", POINTS_IN_A_CALL)
def test_f26_wherever_a_process_dies_the_next_one_does_it_once(point: str) -> None:
    books = after_a_death(Crash(point, 1, 3_000), asks_again=True)
    assert broken(books) == []
    assert [each.state for each in books.operations] == [State.CONFIRMED]
    assert [each.outcome for each in books.attempts] == [Outcome.APPLIED]
    assert len({each.key for each in books.book.entries}) == 1


@pytest.mark.parametrize("nth", [1, 2])
def test_what_a_dead_process_owed_its_caller_is_in_the_outbox_until_he_rings_again(nth: int) -> None:
    books = after_a_death(Crash("before fold", nth, 3_000), asks_again=False)
    assert [row.kind for row in books.outbox if row.done_at_ms is None] == ["untold"]


def test_an_outcome_that_nobody_was_there_to_hear_is_owed_outside_and_not_lost() -> None:
    hangs_up = Step(Trigger(Anchor.HOLDING, 2_000, "issue_refund"), None)
    planned = replace(crash(), caller=(Step(Trigger(Anchor.PICKUP, 400), "refund-4417"), hangs_up))
    record = play(replace(planned, behind=replace(planned.behind, earlier=None)), 1)
    speech = Speech.load(planned.speech)
    assert (record.outbox, record.violations) == ((("refund", "order:4417", "full"),), ())
    for outbox, lost in ((record.outbox, 0), ((), 1)):
        values = measure_call(replace(record, outbox=outbox), speech).values
        assert (values["untold_at_hangup"], values["outcomes_lost"]) == ((1,), (lost,))
    broke = measure_call(replace(record, violations=("I13: a card number is in the trace",)), speech)
    assert "invariants" in [failure.name for failure in judge(broke, planned.expect).failed]


@pytest.mark.parametrize(("subject", "told"), [("order:4417", "applied"), ("order:9", "not_applied (http_404)")])
def test_an_attempt_is_told_with_the_reason_that_the_record_has(subject: str, told: str) -> None:
    ((_, outcome),) = recorded(settled(subject=subject))[0].attempts
    assert outcome == told
