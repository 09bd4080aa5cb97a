"""An action in a call: one effect whatever happens to the call, and nothing said that the record does not hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.runtime.calls import (
    ANYTHING,
    OPENING,
    Taken,
    calls,
    delta,
    ended,
    reply,
    speech_started,
    speech_stopped,
    started,
    written,
)
from tests.runtime.refunds import (
    CARDS,
    EFFECT,
    OTHER_EFFECT,
    PARTY,
    Shop,
    notes,
    now_ms,
    outputs,
    play,
    refund,
    stand_in,
    take_call,
)

import callwright as cw
from callwright.core import commands as do
from callwright.core.events import FactChanged
from callwright.ids import Ms
from callwright.ledger.asking import Ask
from callwright.ledger.store import MemoryStore
from callwright.runtime.actions import OUTCOME_MS, PROPOSE_MS, Actions, Output
from callwright.runtime.dispatcher import Ledger
from callwright.sim.provider import Cancel, Fault
from callwright.sim.vloop import run_virtual
from callwright.testing.scripted import Step, after, emit, expect
from callwright.wire import server

CREATE = "response.create"


def asks(
    call_id: str = "k1", response_id: str = "r1", name: str = "issue_refund", arguments: str = ""
) -> tuple[Step, ...]:
    """A response with a holding line and one tool call."""
    return (
        started(response_id),
        delta(400, f"item of {response_id}", response_id),
        written("One moment.", f"item of {response_id}", response_id),
        calls(name, call_id, response_id, arguments or refund()),
        ended(response_id),
    )


def call(*steps: Step, shop: Shop | None = None, settle_s: float = 60, **options: Any) -> tuple[Taken, Shop]:
    """One call at a shop, and the shop once everything has come to rest."""
    shop = shop or Shop()
    options = {"ignoring": ANYTHING, **options}
    taken = play(shop, lambda ledger: take_call(ledger, *OPENING, *steps, **options), settle_s=settle_s)
    return taken, shop


def states(taken: Taken) -> list[str]:
    """The states that the model was told of, in order."""
    return [str(note["state"]) for note in notes(taken)]


# --- one effect


def test_an_action_is_done_once_and_the_model_is_told_from_the_record() -> None:
    taken, shop = call(*asks())
    assert shop.effects == [EFFECT]
    output = outputs(taken)["k1"]
    assert (output["asked"], output["state"]) == ("created", "running")
    assert "never say that it is done" in output["next"]
    assert states(taken)[:3] == ["running", "accepted", "confirmed"]
    assert notes(taken)[2]["say"] == "The refund of 32 dollars to the Visa ending in 4 2 4 2 is done."


def test_no_key_and_no_cards_token_reaches_the_model_or_the_trace() -> None:
    taken, shop = call(*asks())
    sent = str(taken.model.sent) + taken.result.trace.decode()
    assert [secret for secret in ("card:4242", *(sent.key for sent in shop.sends)) if secret in sent] == []


def test_the_attempt_is_stored_within_50_ms_of_the_models_call() -> None:
    taken, _ = call(*asks())
    called_ms = next(row[0] for row in taken.rows if row[1:3] == ["on", "ToolCalled"])
    facts = [(row[0], row[3]["facts"]["milestone"]) for row in taken.rows if row[1:3] == ["on", "FactChanged"]]
    assert next(at_ms for at_ms, milestone in facts if milestone == "running") - called_ms <= 50


def test_what_is_under_way_is_not_spoken_about_until_there_is_an_outcome() -> None:
    taken, _ = call(*asks(), shop=Shop(stand_in(settles_ms=60_000)), hang_up_ms=8_000)
    assert states(taken)[-1] == "accepted"
    assert taken.model.of("response.create") == []


@pytest.mark.parametrize("at_ms", [0, 1, 2, 20, 150, 160, 2_000])
def test_c072_c075_a_caller_who_speaks_cancels_no_attempt(at_ms: Ms) -> None:
    taken, shop = call(*asks(), after(at_ms), speech_started())
    assert shop.effects == [EFFECT]
    assert list(outputs(taken)) == ["k1"]


@pytest.mark.parametrize("hang_up_ms", [20, 40, 100, 180, 1_000])
def test_a_caller_who_hangs_up_cancels_no_attempt(hang_up_ms: Ms) -> None:
    _, shop = call(*asks(), hang_up_ms=hang_up_ms)
    assert shop.effects == [EFFECT]


def test_c073_c084_a_call_that_is_made_again_is_the_same_operation() -> None:
    again = (after(1_000), *asks("k2", "r2"), after(8_000), *asks("k3", "r3"))
    taken, shop = call(*asks(), *again, hang_up_ms=14_000)
    assert shop.effects == [EFFECT]
    asked = {call_id: output["asked"] for call_id, output in outputs(taken).items()}
    assert asked == {"k1": "created", "k2": "joined", "k3": "replayed"}
    assert "nothing was done again" in outputs(taken)["k3"]["next"]


def test_c078_one_call_that_is_announced_twice_is_one_wish() -> None:
    taken, shop = call(*asks(), calls("issue_refund", "k1", "r1", refund()))
    assert shop.effects == [EFFECT]
    assert len(shop.sends) == 1
    assert list(outputs(taken)) == ["k1"]


def test_other_terms_while_it_can_be_stopped_are_one_effect_to_the_other_card() -> None:
    taken, shop = call(*asks(), after(500), *asks("k2", "r2", arguments=refund("8812")), hang_up_ms=14_000)
    assert outputs(taken)["k2"]["asked"] == "amending"
    assert shop.effects == [OTHER_EFFECT]


def test_other_terms_after_it_was_done_are_told_and_not_done() -> None:
    taken, shop = call(*asks(), after(8_000), *asks("k2", "r2", arguments=refund("8812")), hang_up_ms=14_000)
    assert outputs(taken)["k2"]["asked"] == "conflict"
    assert shop.effects == [EFFECT]


# --- what goes wrong


def test_a_refusal_of_the_apps_is_told_with_its_reason_and_asks_for_nothing() -> None:
    taken, shop = call(*asks(arguments=refund(order="9")))
    assert outputs(taken)["k1"]["why"] == "there is no order 9"
    assert "Nothing was done" in outputs(taken)["k1"]["next"]
    assert shop.effects == []
    assert taken.model.of("response.create")


@pytest.mark.parametrize("order", ["slow", "broken"])
def test_c087_a_plan_that_fails_or_takes_too_long_is_told_as_not_done(order: str) -> None:
    taken, shop = call(*asks(arguments=refund(order=order)))
    output = outputs(taken)["k1"]
    assert output["asked"] == "failed"
    assert "Nothing was done" in output["next"]
    assert "4111" not in str(output)
    assert shop.effects == []


def test_a_caller_who_is_not_known_has_nothing_done_for_him() -> None:
    taken, shop = call(*asks(), party=None)
    assert outputs(taken)["k1"]["why"] == "it is not known who the caller is"
    assert shop.effects == []


def test_a_provider_that_refuses_is_told_as_failed_and_asking_again_goes_on_from_the_record() -> None:
    shop = Shop(stand_in(faults={"declined": Fault()}))
    taken, _ = call(*asks(), shop=shop)
    assert states(taken)[-1] == "failed"
    assert "did not go through" in notes(taken)[-1]["say"]
    assert shop.effects == []


def test_c084_a_lost_answer_is_unknown_and_looked_up_before_anything_is_sent_again() -> None:
    shop = Shop(stand_in(faults={"lost_reply": Fault(times=1)}))
    taken, _ = call(*asks(), shop=shop, hang_up_ms=40_000)
    assert "unknown" in states(taken)
    assert "failed" not in states(taken)
    assert shop.effects == [EFFECT]
    assert len(shop.sends) == 1


def test_a_ledger_that_was_closed_in_the_call_is_told_as_unknown_and_the_call_goes_on() -> None:
    shop = Shop()

    async def go() -> Taken:
        async with shop.ledger() as ledger:
            taking = asyncio.get_running_loop().create_task(
                take_call(ledger, *OPENING, after(500), *asks(), after(500), *reply("Go on."), ignoring=ANYTHING)
            )
            await asyncio.sleep(0.2)
        return await taking

    taken = run_virtual(go())
    assert outputs(taken)["k1"]["asked"] == "unknown"
    assert taken.result.ending.by == "caller"
    assert shop.effects == []


def test_a_ledger_that_does_not_answer_in_time_is_told_as_unknown_and_still_sees_it_through() -> None:
    shop = Shop()

    class Slow(Ledger):
        async def propose(self, ask: Ask) -> Any:
            await asyncio.sleep(PROPOSE_MS / 1000 + 1)
            return await super().propose(ask)

    async def go() -> Taken:
        async with Slow(shop.store, [shop.provider.adapter()], clock=now_ms) as ledger:
            return await take_call(ledger, *OPENING, *asks(), ignoring=ANYTHING, hang_up_ms=8_000)

    assert outputs(run_virtual(go()))["k1"]["asked"] == "unknown"


# --- calls that follow, and calls at once


def test_a_caller_who_rings_again_is_told_from_the_record_and_nothing_is_done_again() -> None:
    shop = Shop()

    async def go(ledger: Ledger) -> Taken:
        await take_call(ledger, *OPENING, *asks(), hang_up_ms=1_000, ignoring=ANYTHING)
        await asyncio.sleep(30)
        return await take_call(ledger, *OPENING, after(500), *asks("k9", "r9"), ignoring=ANYTHING)

    second = play(shop, go)
    assert notes(second)[0]["state"] == "confirmed"
    assert outputs(second)["k9"]["asked"] == "replayed"
    assert shop.effects == [EFFECT]


def test_another_caller_is_told_nothing_of_it() -> None:
    shop = Shop()

    async def go(ledger: Ledger) -> Taken:
        await take_call(ledger, *OPENING, *asks(), ignoring=ANYTHING)
        other = await take_call(ledger, *OPENING, *asks("k9", "r9"), party="customer:82", ignoring=ANYTHING)
        reads = calls("history", "k8", "r1", "{}")
        third = await take_call(ledger, *OPENING, started(), reads, ended(), party="customer:82", ignoring=ANYTHING)
        assert outputs(third)["k8"] == {"operations": []}
        return other

    other = play(shop, go)
    assert notes(other) == []
    assert outputs(other)["k9"] == {
        "asked": "refused",
        "why": "it is not this caller's",
        "next": "Nothing was done. Tell the caller why; do not say that it was done, or that it will be.",
    }
    assert shop.effects == [EFFECT]


def test_two_calls_at_once_about_one_order_are_one_effect_and_both_are_told() -> None:
    shop = Shop()

    async def go(ledger: Ledger) -> list[Taken]:
        each = [take_call(ledger, *OPENING, *asks(), ignoring=ANYTHING, hang_up_ms=8_000) for _ in range(2)]
        return list(await asyncio.gather(*each))

    first, second = play(shop, go)
    assert shop.effects == [EFFECT]
    assert sorted(outputs(taken)["k1"]["asked"] for taken in (first, second)) == ["created", "joined"]
    assert "confirmed" in states(first)
    assert "confirmed" in states(second)


# --- reading


def test_a_check_reads_the_record_and_sends_nothing() -> None:
    checks = asks("k2", "r2", "check_refund", '{"order": "4417"}')
    taken, shop = call(
        *asks("k0", "r0", "check_refund", '{"order": "4417"}'), *asks(), after(7_000), *checks, hang_up_ms=9_000
    )
    assert outputs(taken)["k0"]["state"] == "none"
    assert outputs(taken)["k2"]["state"] == "confirmed"
    assert len(shop.sends) == 1


@pytest.mark.parametrize(
    ("can", "asked", "effects"), [("never", "too_late", [EFFECT]), ("until_settled", "withdrawing", [])]
)
def test_what_was_sent_is_withdrawn_only_where_the_provider_can_stop_it(
    can: str, asked: str, effects: list[str]
) -> None:
    shop = Shop(stand_in(cancel=Cancel(can)))
    taken, _ = call(*asks(), after(500), *asks("k2", "r2", "stop_refund", '{"order": "4417"}'), shop=shop)
    assert outputs(taken)["k2"]["asked"] == asked
    assert shop.effects == effects


def test_a_tool_without_a_ledger_is_told_how_to_give_it_one() -> None:
    context: cw.Context[None] = cw.Context(None, PARTY, "k1")  # type: ignore[arg-type]
    with pytest.raises(cw.UsageError, match=r"run\(..., ledger=...\)"):
        asyncio.run(context.facts("refund", "order:4417"))


# --- waiting for the outcome


def test_tools_that_wait_answer_with_the_outcome() -> None:
    taken, shop = call(*asks(), tools_wait=True)
    assert outputs(taken)["k1"]["state"] == "confirmed"
    assert shop.effects == [EFFECT]


def test_tools_that_wait_do_so_for_ten_seconds_at_most() -> None:
    shop = Shop(stand_in(settles_ms=60_000))
    taken, _ = call(*asks(), shop=shop, tools_wait=True, hang_up_ms=12_000, settle_s=120)
    ended_ms = next(row[0] for row in taken.rows if row[1:3] == ["on", "ToolFinished"])
    assert OUTCOME_MS <= ended_ms <= OUTCOME_MS + 50
    assert outputs(taken)["k1"]["state"] == "accepted"


# --- before the call


def test_an_agent_with_actions_needs_a_ledger_with_their_providers() -> None:
    async def without() -> None:
        await take_call(None, *OPENING)  # type: ignore[arg-type]

    with pytest.raises(cw.UsageError, match="has the action issue_refund, so the call needs"):
        run_virtual(without())

    async def other() -> None:
        adapter = stand_in().adapter(name="bank")
        async with Ledger(MemoryStore(), [adapter], clock=now_ms) as ledger:
            await take_call(ledger, *OPENING)

    with pytest.raises(cw.UsageError, match=r"needs the provider 'payments'; .* \(it has: bank\)"):
        run_virtual(other())


# --- told


def test_what_was_heard_is_kept_and_the_next_call_owes_nothing() -> None:
    """And what came late is off the outbox once he heard it."""
    shop = Shop()
    done = "The refund of 32 dollars to the Visa ending in 4 2 4 2 is done."

    async def go(ledger: Ledger) -> tuple[Taken, Taken]:
        await take_call(ledger, *OPENING, *asks(), hang_up_ms=1_000, ignoring=ANYTHING)
        await asyncio.sleep(30)
        assert [row.reason for row in await ledger.outbox()] == [done]
        tells = (expect("response.create"), *reply(done, 8_000, "c", "r5"))
        others = [each for each in ANYTHING if each != CREATE]
        told = await take_call(ledger, *OPENING, *tells, after(500), hang_up_ms=12_000, ignoring=others)
        (fact,) = await ledger.snapshot(PARTY)
        assert [row.state for row in await ledger.told(fact.op_id) if row.version == fact.version] == ["heard"]
        assert await ledger.outbox() == ()
        assert await ledger.untold(PARTY) == ()
        return told, await take_call(ledger, *OPENING, after(500), hang_up_ms=4_000, ignoring=ANYTHING)

    told, last = play(shop, go)
    assert told.result.untold == ()
    assert last.model.of(CREATE) == []
    assert [note["state"] for note in notes(last)] == ["confirmed"]
    assert shop.effects == [EFFECT]


# --- on the caller's word


asking = cw.Agent("asking", model=cw.polyai(), instructions="Ask first.")


@asking.action(kind="refund", provider="payments", must_hear=("amount", "card"), authority=cw.Authority.CALLER)
async def refund_on_a_yes(ctx: cw.Context[Any], order: str, holding: cw.Spoken) -> cw.Terms:
    """Refund an order."""
    return cw.Terms(subject=f"order:{order}", amount=cw.Money(3200, "USD"), card=CARDS["4242"])


UNTOLD_S = 40
"""The provider has settled by then; there is no call that tells it, which is named as a problem in the end."""


def with_a_proposal(then: Callable[[Actions, FactChanged], None]) -> tuple[Shop, list[FactChanged], Output]:
    """What is told where an action waits for the caller's word, and what becomes of it ``then``."""
    shop = Shop()
    facts: list[FactChanged] = []

    async def go(ledger: Ledger) -> Output:
        joint = Actions(asking.tools, ledger, PARTY, handle=facts.append, note=pytest.fail)
        joint.open()
        joint.ready()
        tool = asking.tools["refund_on_a_yes"]
        terms = cw.Terms(subject="order:4417", amount=cw.Money(3200, "USD"), card=CARDS["4242"])
        assert tool.action is not None
        output = await joint.ask(tool, tool.action, terms)
        then(joint, facts[-1])
        await asyncio.sleep(10)
        await joint.close()
        return output

    return shop, facts, play(shop, go, settle_s=UNTOLD_S)


def test_what_needs_the_callers_word_asks_for_it_in_the_records_words_and_sends_nothing() -> None:
    shop, facts, said = with_a_proposal(lambda joint, fact: None)
    output = json.loads(said.text)
    assert (output["asked"], said.speaks) == ("needs_consent", True)
    assert output["read_back"] == "That is a refund of 32 dollars to the Visa ending in 4 2 4 2. Shall I go ahead?"
    assert facts[-1].consent is not None
    assert shop.sends == []


def test_a_yes_to_exactly_these_terms_sends_it() -> None:
    def yes(joint: Actions, fact: FactChanged) -> None:
        assert fact.consent is not None
        joint.commands[do.Authorize](do.Authorize(fact.op_id, fact.consent.rev, fact.consent.params_hash))

    shop, facts, _ = with_a_proposal(yes)
    assert shop.effects == [EFFECT]
    assert [fact.facts.milestone.value for fact in facts][-1] == "confirmed"
    assert all(fact.consent is None for fact in facts[1:])


def test_a_yes_to_other_terms_sends_nothing() -> None:
    shop, _, _ = with_a_proposal(
        lambda joint, fact: joint.commands[do.Authorize](do.Authorize(fact.op_id, 1, "of other terms"))
    )
    assert shop.sends == []


def test_a_no_withdraws_it() -> None:
    shop, facts, _ = with_a_proposal(lambda joint, fact: joint.commands[do.Withdraw](do.Withdraw(fact.op_id)))
    assert shop.sends == []
    assert facts[-1].facts.milestone.value == "cancelled"


@asking.action(
    kind="refund",
    provider="payments",
    details=("name",),
    must_hear=("amount", "name"),
    slot="named",
    authority=cw.Authority.CALLER,
)
async def refund_by_name(ctx: cw.Context[Any], order: str, name: str, holding: cw.Spoken) -> cw.Terms:
    """Refund an order in somebody's name."""
    return cw.Terms(subject=f"order:{order}", amount=cw.Money(3200, "USD"), details={"name": name})


def test_c145_a_name_that_was_refused_is_read_back_letter_by_letter_and_done_as_spelled() -> None:
    shop = Shop()
    facts: list[FactChanged] = []
    read_back: list[str] = []

    async def go(ledger: Ledger) -> None:
        joint = Actions(asking.tools, ledger, PARTY, handle=facts.append, note=pytest.fail)
        joint.open()
        joint.ready()
        tool = asking.tools["refund_by_name"]
        assert tool.action is not None
        for name in ("Reed", "Reid"):
            terms = cw.Terms("order:4417", cw.Money(3200, "USD"), CARDS["4242"], details={"name": name})
            text = (await joint.ask(tool, tool.action, terms)).text
            read_back.append(json.loads(text)["read_back"])
            consent = facts[-1].consent
            assert consent is not None
            assert shop.sends == []
            if name == "Reed":
                joint.commands[do.Withdraw](do.Withdraw(facts[-1].op_id))
            else:
                joint.commands[do.Authorize](do.Authorize(facts[-1].op_id, consent.rev, consent.params_hash))
            await asyncio.sleep(10)
        await joint.close()

    play(shop, go, settle_s=UNTOLD_S)
    assert read_back == [
        f"That is a refund of 32 dollars to the Visa ending in 4 2 4 2 with name {name}. Shall I go ahead?"
        for name in ("Reed", "R-E-I-D")
    ]
    assert len(shop.sends) == 1
    done = facts[-1]
    assert (done.facts.milestone, done.facts.texts) == ("confirmed", (("name", "Reid"),))
    assert done.sentence == "The refund of 32 dollars to the Visa ending in 4 2 4 2 with name Reid is done."


def test_in_a_call_a_plain_yes_to_the_read_back_sends_it_and_the_outcome_is_told() -> None:
    shop = Shop()
    read_back = "That is a refund of 32 dollars to the Visa ending in 4 2 4 2. Shall I go ahead?"
    steps = (
        *asks(name="refund_on_a_yes", arguments='{"order": "4417", "holding": "One moment."}'),
        expect(CREATE),
        *reply(read_back, 8_000, "c", "r5"),
        after(1_000),
        speech_started("u1", 9_400),
        after(600),
        speech_stopped("u1", 10_000),
        emit(server.ConversationItemInputAudioTranscriptionCompleted(item_id="u1", transcript="Yes, please.")),
        expect(CREATE),
        *reply("The refund of 32 dollars to the Visa ending in 4 2 4 2 is done.", 8_000, "d", "r6"),
    )
    others = [each for each in ANYTHING if each != CREATE]

    async def go(ledger: Ledger) -> Taken:
        return await take_call(ledger, *OPENING, *steps, agent=asking, ignoring=others, hang_up_ms=26_000)

    taken = play(shop, go)
    assert outputs(taken)["k1"]["read_back"] == read_back
    assert len(taken.did("Authorize")) == 1
    assert [sent.at_ms > taken.did("Authorize")[0] for sent in shop.sends] == [True]
    assert shop.effects == [EFFECT]
    assert taken.result.untold == ()
