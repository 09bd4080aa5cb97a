"""Rules of the provider's desk: what it answers, what it remembers of keys, and what each fault does."""

from __future__ import annotations

import json

import pytest
from tests.sim.provider.driving import ALWAYS, HOUR, MASTERCARD, ONCE, ORDER, VISA, Answer, Client, body, client

from callwright.errors import UsageError
from callwright.ledger.provider import Idempotency, OnAmbiguous, Outcome
from callwright.sim.provider import SHOP
from callwright.sim.provider.book import Sent, Status
from callwright.sim.provider.desk import Desk
from callwright.sim.provider.messages import Call, Way
from callwright.sim.provider.settings import (
    FAULTS,
    NOTED,
    Answers,
    Cancel,
    Destinations,
    Fault,
    ProviderSettings,
    parse_fault,
)

PENDING, SUCCEEDED, CANCELLED = Status.PENDING, Status.SUCCEEDED, Status.CANCELLED


# --- Refunds ------------------------------------------------------------------------------------------------------


def test_a_refund_is_pending_after_150_ms_and_settles_at_4_s():
    shop = client()
    made = shop.refund()
    assert (made.status, made.at_ms, made.told["status"]) == (201, 150, "pending")
    assert shop.later(3_849).statuses == [PENDING]
    assert shop.later(1).statuses == [SUCCEEDED]


def test_a_synchronous_provider_answers_once_it_is_settled_and_cancels_nothing():
    shop = client(answers=Answers.SYNC)
    made = shop.refund()
    assert (made.at_ms, made.told["status"]) == (4_000, "succeeded")
    shop = client(answers=Answers.SYNC)
    steps = shop.desk.serve(Call("POST", "/refunds", key="K", body=body()), 0)
    next(steps)
    assert shop.cancel().code == "not_cancellable"
    assert shop.statuses == [PENDING]


def test_a_pending_refund_can_be_cancelled_again_and_again_and_a_settled_one_cannot():
    shop = client()
    shop.refund()
    assert [shop.cancel().told["status"] for _ in range(2)] == ["cancelled", "cancelled"]
    assert shop.later(HOUR).statuses == [CANCELLED]
    shop = client()
    shop.refund()
    late = shop.later(4_000).cancel()
    assert (late.status, late.code, late.told["refund"]["status"]) == (409, "not_cancellable", "succeeded")


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"charge": "order:1"}, 404, "no_such_charge"),
        ({"currency": "EUR"}, 422, "wrong_currency"),
        ({"amount": 3201}, 422, "more_than_captured"),
        ({"destination": "card:0001"}, 422, "destination_not_allowed"),
        ({"amount": 32.0}, 400, "malformed"),
        ({"amount": -1}, 400, "malformed"),
        ({"amount": True}, 400, "malformed"),
        ({"charge": 4417}, 400, "malformed"),
        ({"metadata": []}, 400, "malformed"),
        ({"metadata": {"op": 1}}, 400, "malformed"),
        ({"currency": None}, 400, "malformed"),
    ],
)
def test_what_cannot_be_executed_is_refused_and_its_key_stays_free(changes: dict[str, object], status: int, code: str):
    shop = client()
    refused = shop.refund(**changes)
    assert (refused.status, refused.code) == (status, code)
    assert shop.refund().status == 201


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b'"x"', b"\xff", b'{"amount": 1'])
def test_a_body_that_is_no_request_is_refused(text: bytes):
    assert client().ask("POST", "/refunds", key="K", body=text).code == "malformed"


def test_a_key_is_required_where_keys_mean_something():
    assert client().refund(key=None).code == "idempotency_key_missing"
    assert client().refund(key="").code == "idempotency_key_missing"
    assert client().refund(key="k" * 256).code == "malformed"
    assert client(Idempotency.NONE).refund(key=None).status == 201


def test_money_goes_to_the_original_card_only_where_that_is_the_rule():
    shop = Client(Desk(ProviderSettings(destinations=Destinations.ORIGINAL), SHOP, 1))
    assert shop.refund(destination=MASTERCARD).code == "destination_not_allowed"
    assert shop.refund(destination=None).told["destination"] == VISA
    assert client().refund(destination=MASTERCARD).told["destination"] == MASTERCARD


def test_other_requests_are_not_there():
    shop = client()
    assert [shop.ask("GET", path).status for path in ("/", "/refunds/re_1", "/refunds/re_1/cancel")] == [404, 404, 404]
    assert shop.ask("GET", "/refunds").code == "key_or_op_missing"
    assert shop.cancel().code == "no_such_refund"


def test_refunds_are_found_by_key_by_reference_and_by_id():
    shop = client()
    shop.refund(key="K1")
    shop.refund(key="K2", metadata={"op": "op2"})
    found = [
        shop.look("K2").told["data"],
        shop.ask("GET", "/refunds", key="K2").told["data"],
        shop.ask("GET", "/refunds", query={"op": "op2"}).told["data"],
        [shop.ask("GET", "/refunds/re_2").told],
    ]
    assert [[refund["id"] for refund in data] for data in found] == [["re_2"]] * 4
    assert shop.look("K3").told == {"data": [], "has_more": False}


def test_the_book_shows_requests_refunds_and_faults():
    shop = client(lost_reply=ONCE)
    shop.refund()
    book = shop.later(4_000).ask("GET", "/book").told
    assert [entry["at_ms"] for entry in book["entries"]] == [0, 0, 4_000]
    assert book["entries"][0]["sent"] == "K"
    assert book["entries"][2]["refund"]["status"] == "succeeded"
    assert book["faults"]["lost-reply"] == 1
    assert "K" not in str(shop.look().told)


# --- Keys ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "fault", "refunds", "second"),
    [
        (Idempotency.REPLAY, None, 1, 201),
        (Idempotency.REPLAY, "error_before", 0, 500),
        (Idempotency.REPLAY, "error_after", 1, 500),
        (Idempotency.REPLAY, "declined", 0, 402),
        (Idempotency.RESUME, None, 1, 200),
        (Idempotency.RESUME, "error_before", 1, 201),
        (Idempotency.RESUME, "error_after", 1, 200),
        (Idempotency.CURRENT_STATE, None, 1, 200),
        (Idempotency.CURRENT_STATE, "error_before", 1, 201),
        (Idempotency.CURRENT_STATE, "error_after", 1, 200),
        (Idempotency.SUCCESS_ONLY, None, 1, 201),
        (Idempotency.SUCCESS_ONLY, "error_before", 1, 201),
        (Idempotency.SUCCESS_ONLY, "error_after", 2, 201),
        (Idempotency.NONE, None, 2, 201),
        (Idempotency.NONE, "error_before", 1, 201),
        (Idempotency.NONE, "error_after", 2, 201),
    ],
)
def test_what_a_key_that_comes_again_does(mode: Idempotency, fault: str | None, refunds: int, second: int):
    shop = client(mode, **({fault: ONCE} if fault else {}))
    shop.refund()
    assert shop.later(HOUR).refund().status == second
    assert len(shop.statuses) == refunds
    assert shop.desk.faults.fired["paid-again"] == max(refunds - 1, 0)


def test_a_replay_is_the_first_answer_and_the_current_state_is_not():
    for mode, told in ((Idempotency.REPLAY, "pending"), (Idempotency.CURRENT_STATE, "succeeded")):
        shop = client(mode)
        shop.refund()
        again = shop.later(HOUR).refund()
        assert again.told["status"] == told
        assert again.reply.headers["Idempotency-Replayed"] == "true"


def test_only_a_provider_that_resumes_takes_up_a_refund_that_failed():
    ends = {}
    for mode in (Idempotency.RESUME, Idempotency.CURRENT_STATE):
        shop = client(mode, fails=ONCE)
        shop.refund()
        shop.later(HOUR).refund()
        ends[mode] = shop.later(HOUR).statuses
    assert ends == {Idempotency.RESUME: [SUCCEEDED], Idempotency.CURRENT_STATE: [Status.FAILED]}


def test_a_key_of_other_parameters_is_refused():
    shop = client()
    shop.refund()
    assert (shop.refund(destination=MASTERCARD).status, shop.desk.faults.fired["other-params"]) == (422, 1)
    assert len(shop.statuses) == 1


def test_a_key_is_in_use_until_its_first_request_is_answered():
    shop = client()
    steps = shop.desk.serve(Call("POST", "/refunds", key="K", body=body()), 0)
    next(steps)
    assert (shop.refund().code, shop.desk.faults.fired["in-use"]) == ("key_in_use", 1)
    assert len(shop.statuses) == 1


def test_a_key_is_kept_longer_than_promised_unless_it_is_pruned():
    for faults, refunds in (({}, 1), ({"key_pruned": ALWAYS}, 2)):
        shop = client(**faults)
        shop.refund()
        shop.now_ms = 24 * HOUR - 1
        shop.refund()
        assert len(shop.statuses) == 1
        shop.now_ms = 24 * HOUR + 200
        shop.refund()
        assert len(shop.statuses) == refunds
    shop = client()
    shop.refund()
    shop.now_ms = 72 * HOUR
    shop.refund()
    assert len(shop.statuses) == 2


# --- Faults -------------------------------------------------------------------------------------------------------


def lost(way: Way) -> bool:
    return way in (Way.SILENCE, Way.RESET)


def test_a_refused_connection_sends_nothing():
    shop = client(refused=ONCE)
    assert shop.refund().reply.way is Way.REFUSED
    assert not shop.desk.book.entries


def test_a_lost_request_was_sent_and_did_nothing():
    shop = client(lost_request=ONCE)
    assert lost(shop.refund().reply.way)
    assert [type(entry) for entry in shop.desk.book.entries] == [Sent]


def test_a_lost_reply_leaves_its_refund():
    shop = client(lost_reply=ONCE)
    assert lost(shop.refund().reply.way)
    assert shop.statuses == [PENDING]
    assert shop.refund().told["id"] == "re_1"


def test_a_late_request_lands_when_its_client_has_given_up():
    shop = client(late=ONCE)
    assert 30_000 <= shop.refund().at_ms <= 10 * 60_000 + 150
    assert shop.desk.book.entries[0].at_ms == 0
    assert shop.desk.book.entries[1].at_ms >= 30_000


def test_a_busy_provider_does_nothing_and_remembers_nothing():
    codes = set()
    for seed in range(10):
        shop = client(busy=ONCE, seed=seed)
        codes.add(shop.refund().status)
        assert shop.refund().status == 201
    assert codes == {429, 409}


def test_a_garbled_answer_is_cut_or_names_another_amount_and_the_refund_is_right():
    amounts = set()
    for seed in range(10):
        shop = client(garbled=ONCE, seed=seed)
        made = shop.refund()
        try:
            amounts.add(made.told["amount"])
        except ValueError:
            amounts.add(None)
        assert shop.desk.book.current("re_1").ask.amount.minor == 3200
        assert shop.refund().told["amount"] == 3200
    assert amounts == {None, 3201}


def test_nothing_stops_a_second_refund_but_the_fault_that_does():
    shop = client()
    assert [shop.refund(key=key).status for key in ("K1", "K2")] == [201, 201]
    shop = client(already_refunded=ALWAYS)
    assert shop.refund(key="K1").status == 201
    assert shop.refund(key="K2").code == "already_refunded"
    assert len(shop.statuses) == 1


def test_a_pending_refund_may_take_days_fail_or_come_back():
    for fault, at_least, at_most, then in (
        ("pending_days", 24 * HOUR, 120 * HOUR, [PENDING, SUCCEEDED]),
        ("fails", 4_000, 4_000, [PENDING, Status.FAILED]),
        ("reversed", 64_000, 72 * HOUR + 4_000, [PENDING, SUCCEEDED, Status.REVERSED]),
    ):
        shop = client(**{fault: ONCE})
        shop.refund()
        shop.later(1_000 * HOUR)
        assert [version.status for version in shop.versions] == then
        assert at_least <= shop.versions[-1].at_ms <= at_most


def test_look_ups_lag_are_stale_stop_short_or_fail():
    shop = client(lookup_lag=ALWAYS)
    shop.refund()
    assert shop.look().told["data"] == []
    assert shop.ask("GET", "/refunds/re_1").status == 404
    assert len(shop.later(30_000).look().told["data"]) == 1

    shop = client(lookup_stale=ALWAYS)
    shop.refund()
    shop.later(4_000)
    assert shop.ask("GET", "/refunds/re_1").told["status"] == "pending"
    assert shop.later(30_000).look().told["data"][0]["status"] == "succeeded"

    shop = client(lookup_short=ONCE)
    shop.refund()
    assert shop.look().told == {"data": [], "has_more": True}

    ways = {client(lookup_down=ONCE, seed=seed).look().reply.way for seed in range(20)}
    assert ways == {Way.ANSWER, Way.REFUSED, Way.SILENCE}


@pytest.mark.parametrize(
    ("fault", "status"),
    [("cancel_too_late", SUCCEEDED), ("cancel_lost_request", PENDING), ("cancel_lost_reply", CANCELLED)],
)
def test_a_cancel_races(fault: str, status: Status):
    shop = client(**{fault: ONCE})
    shop.refund()
    answer = shop.cancel()
    assert answer.status == 409 if fault == "cancel_too_late" else lost(answer.reply.way)
    assert shop.statuses == [status]


def test_every_fault_can_happen_and_is_counted():
    fired = dict.fromkeys([*FAULTS, *NOTED], 0)
    for seed in range(40):
        shop = Client(Desk(ProviderSettings(faults=dict.fromkeys(FAULTS, Fault(0.15))), SHOP, seed))
        for gap_ms, key in ((0, "K1"), (0, "K1"), (0, "K2"), (5_000, "K2"), (30 * HOUR, "K1")):
            shop.refund(key=key)
            shop.look(key)
            shop.cancel()
            shop.later(gap_ms)
        for name, count in shop.desk.faults.fired.items():
            fired[name] += count
    assert not [name for name in FAULTS if not fired[name]]


def test_faults_end_when_they_are_said_to():
    settings = ProviderSettings(faults={"declined": ALWAYS}, faults_until_ms=1_000)
    shop = Client(Desk(settings, SHOP, 1))
    assert shop.refund(key="K1").status == 402
    assert shop.later(1_000).refund(key="K2").status == 201


def test_a_fault_more_moves_no_other():
    def story(**faults: Fault) -> list[int]:
        shop = client(declined=Fault(0.5), **faults)
        return [shop.refund(key=f"K{number}").status for number in range(30)]

    assert story() == story(lookup_lag=ALWAYS)
    assert 201 in story()


def test_the_same_seed_gives_the_same_book():
    def book(seed: int) -> bytes:
        shop = client(Idempotency.RESUME, seed=seed, **{name.replace("-", "_"): Fault(0.2) for name in FAULTS})
        for number in range(20):
            shop.refund(key=f"K{number % 7}")
            shop.look(f"K{number % 7}")
        return shop.ask("GET", "/book").reply.body

    assert book(3) == book(3)
    assert book(3) != book(4)


# --- Settings -----------------------------------------------------------------------------------------------------


def test_what_an_adapter_has_to_know_follows_from_the_settings():
    traits = ProviderSettings().traits
    assert traits.cancels == (Outcome.ACCEPTED,)
    assert traits.destination_change
    assert traits.on_ambiguous is OnAmbiguous.PROBE
    assert traits.request_max_ms >= ProviderSettings().late_ms[1]
    assert ProviderSettings(answers=Answers.SYNC).traits.cancels == ()
    assert ProviderSettings(cancel=Cancel.NEVER).traits.cancels == ()
    assert not ProviderSettings(destinations=Destinations.ORIGINAL).traits.destination_change
    for mode in (Idempotency.SUCCESS_ONLY, Idempotency.NONE):
        assert ProviderSettings(idempotency=mode).traits.on_ambiguous is OnAmbiguous.QUARANTINE


@pytest.mark.parametrize(
    ("text", "name", "fault"),
    [
        ("late", "late", Fault(1.0)),
        ("lost-reply=0.25", "lost-reply", Fault(0.25)),
        ("busy=1*2", "busy", Fault(1.0, 2)),
    ],
)
def test_a_fault_is_read(text: str, name: str, fault: Fault):
    assert parse_fault(text) == (name, fault)


@pytest.mark.parametrize("text", ["", "lost", "late=2", "late=0.1.2", "late=x", "late=-1", "late=1*", "=1"])
def test_a_fault_that_cannot_be_read_is_named(text: str):
    with pytest.raises(UsageError, match="fault"):
        parse_fault(text)
    with pytest.raises(UsageError, match="no-such"):
        ProviderSettings(faults={"no-such": ALWAYS})


def test_the_demo_shop_has_charged_the_skillet():
    assert ORDER in [charge.id for charge in SHOP]


# --- Cancellations ------------------------------------------------------------------------------------------------

TEAPOT = "order:5530"


def cancelled(shop: Client, key: str = "C", charge: str = TEAPOT) -> Answer:
    asked = {"charge": charge, "metadata": {"op": "op2", "slot": "full"}}
    return shop.ask("POST", "/cancellations", key=key, body=json.dumps(asked).encode())


def test_a_cancellation_holds_at_once_and_gives_back_all_that_was_captured():
    shop = client()
    made = cancelled(shop)
    assert (made.status, made.at_ms, made.told["status"]) == (201, 150, "succeeded")
    assert "amount" not in made.told
    book = shop.desk.book
    assert book.given_back(book.current(made.told["id"]).ask).minor == 4500
    assert shop.ask("POST", f"/cancellations/{made.told['id']}/cancel").code == "not_cancellable"


@pytest.mark.parametrize("answers", list(Answers))
def test_a_cancellation_does_not_wait_for_the_settlement_of_refunds(answers: Answers):
    assert cancelled(client(answers=answers)).at_ms == 150


def test_an_order_that_was_sent_refunded_or_cancelled_is_not_cancelled():
    shop = client()
    assert cancelled(shop, charge=ORDER).code == "shipped"
    shop.refund("R", charge=TEAPOT, amount=1000)
    assert cancelled(shop, "C2").code == "refunded"
    shop = client()
    cancelled(shop)
    assert cancelled(shop, "C2").code == "already_cancelled"
    assert shop.refund("R", charge=TEAPOT, amount=1000).code == "order_cancelled"


def test_a_cancelled_refund_stands_in_no_cancellations_way():
    shop = client()
    shop.refund("R", charge=TEAPOT, amount=1000)
    shop.cancel()
    assert cancelled(shop).status == 201


def test_each_kind_is_found_at_its_own_endpoint():
    shop = client()
    made = cancelled(shop).told["id"]
    assert shop.ask("GET", f"/cancellations/{made}").told["charge"] == TEAPOT
    assert shop.ask("GET", "/cancellations", query={"key": "C"}).told["data"][0]["id"] == made
    assert shop.ask("GET", f"/refunds/{made}").status == 404
    assert shop.ask("GET", "/refunds", query={"key": "C"}).told["data"] == []
    assert cancelled(shop).told["id"] == made  # the key is remembered
    entries = shop.ask("GET", "/book").told["entries"]
    assert [entry.get("kind", "") for entry in entries if "sent" in entry] == ["cancellation"] * 2
    assert [entry["cancellation"]["status"] for entry in entries if "cancellation" in entry] == ["pending", "succeeded"]
