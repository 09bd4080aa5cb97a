"""A masked trace tells no number and no name of its call, and the core decides the same on it."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.calls import OPENING, reply
from tests.runtime.test_actions import asks, call
from tests.runtime.test_kept import agent, before_and_after
from tests.runtime.test_kept import take as take_of
from tests.runtime.test_replay import recorded

from callwright.claims.numbers import numbers_of
from callwright.claims.words import tokens_of
from callwright.errors import UsageError
from callwright.runtime.masked import _Mask, mask_trace, without_words
from callwright.runtime.replay import Outcome, replay
from callwright.testing import after

TOLD = "The refund of thirty-two dollars to your Visa ending in 4242 is done."
TOLD_WRONGLY = "The refund of forty-five dollars to your Visa ending in 4242 is done."


def refunded(told: str) -> bytes:
    arguments = json.dumps({"order": "4417", "card": "4242", "holding": "One moment, Mr Okafor."})
    taken, _ = call(
        *asks(arguments=arguments), after(5_000), *reply(told, 8_000, "b", "r2"), after(2_500), hang_up_ms=16_000
    )
    return taken.result.trace


def tellings(trace: bytes) -> list[str]:
    return [row[3]["state"] for row in map(json.loads, trace.splitlines()) if row[2] == "RecordTold"]


@pytest.mark.parametrize(("told", "states"), [(TOLD, ["asked", "heard"]), (TOLD_WRONGLY, ["asked", "correction"])])
def test_what_was_told_is_still_told_and_what_was_told_wrongly_still_wrong(told: str, states: list[str]) -> None:
    trace = refunded(told)
    assert [state for state in tellings(trace) if state in ("asked", "heard", "correction")][:2] == states
    masked = mask_trace(trace, hide=["Okafor"])
    assert tellings(masked) == tellings(trace)
    replayed = replay(masked)
    assert replayed.outcome is Outcome.IDENTICAL
    assert (replayed.events, replayed.commands) == (replay(trace).events, replay(trace).commands)


def test_no_number_and_no_hidden_name_is_left() -> None:
    trace = refunded(TOLD)
    for secret in ("4417", "4242", "4 2 4 2", 'amount_minor":3200', "32 dollars", "thirty-two", "Okafor"):
        assert secret in trace.decode()
        assert secret not in mask_trace(trace, hide=["okafor"]).decode()
    assert "Mr Aaaaaa." in mask_trace(trace, hide=["okafor"]).decode()


def test_times_ids_and_rows_stay() -> None:
    trace = refunded(TOLD)
    rows, masked = ([json.loads(row) for row in each.splitlines()] for each in (trace, mask_trace(trace)))
    assert [row[:3] for row in masked[1:]] == [row[:3] for row in rows[1:]]
    assert masked[0][2] == {**rows[0][2], "masked": True}


SUMS = ("$32.50", "32 dollars", "thirty-two dollars", "twelve dollars and fifty cents", "two hundred and five dollars")


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(SUMS), st.binary(min_size=1, max_size=4))
def test_an_amount_is_the_same_other_amount_in_figures_and_in_words(text: str, key: bytes) -> None:
    mask = _Mask(key, ())
    was, now = (numbers_of(tokens_of(each)).amounts[0].value for each in (text, mask.text(text)))
    assert was is not None
    assert now is not None
    minor = was.minor(2)
    assert minor is not None
    assert str(now.minor(2)) == mask.text(str(minor))
    assert now != was


@given(st.binary(min_size=1, max_size=4))
def test_digits_are_exchanged_one_for_one_but_for_0_and_1(key: bytes) -> None:
    mask = _Mask(key, ())
    assert sorted(mask.text("0123456789")) == list("0123456789")
    assert mask.text("01") == "01"
    assert all(mask.text(digit) != digit for digit in "23456789")


def test_a_text_keeps_its_case_and_its_escapes_and_tells_no_address() -> None:
    mask = _Mask(b"key", ["Zenobia", "Okafor"])
    assert mask.text("ZENOBIA Okafor") == "AAAAAAA Bbbbbb"
    assert mask.text(r'{"name": "Ren\u00e9e"}') == r'{"name": "Ren\u00e9e"}'
    assert re.fullmatch(r"at x\.xxxxxx\d\d@xxxxxxx\.xxx", mask.text("at z.okonko77@example.org"))
    assert mask.text("Forty") in ("Twenty", "Thirty", "Fifty", "Sixty", "Seventy", "Eighty", "Ninety")


def test_lengths_in_place_of_words_stay_as_they_are() -> None:
    trace = take_of(agent(), *before_and_after()).result.trace
    assert mask_trace(trace).splitlines()[1:] == trace.splitlines()[1:]


def test_all_words_can_be_taken_out() -> None:
    trace = recorded(*OPENING, *reply("From three."))
    bare = without_words(trace)
    assert b"three" not in bare
    assert b'"text":{"characters":11}' in bare
    assert replay(bare).outcome is Outcome.IDENTICAL


def test_what_is_no_trace_is_refused() -> None:
    for mask in (mask_trace, without_words):
        with pytest.raises(UsageError, match="t:1: expected"):
            mask(b"{}", "t")
