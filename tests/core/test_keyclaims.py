"""What an agent says of keys has to be so: a key that is only said is put on record."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.drive import R1, A, Call, audio, called, ended, speaks, stops

from callwright.claims.presses import claimed_keys
from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.keyclaims import CLAIM_MS, KeyClaims
from callwright.core.outgoing import Outgoing
from callwright.core.plan import Can
from callwright.core.toolcalls import AfterOutput
from callwright.ids import Ms, ToolCallId

K1 = ToolCallId("k1")
TOOLS = {"press_keys": AfterOutput.SILENCE}
NOTE = "the agent said that it presses a key, and pressed none"


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ("pressing two", ["2"]),
        ("i have pressed 2 now", ["2"]),
        ("i'll press star", ["*"]),
        ("i will press pound then i press zero", ["#", "0"]),
        ("press two", []),
        ("you press two", []),
        ("pressing matters", []),
    ],
)
def test_what_says_that_a_key_is_pressed(words, keys):
    assert [key for _, key in claimed_keys(words.split())] == keys


def menu_answered(text: str, keys: str = "") -> Call:
    call = Call(tools=TOOLS)
    call.at(1_000, speaks())
    call.at(5_000, stops())
    call.at(5_500, on.ResponseStarted(R1), audio(R1, A, 600), on.ReplyWritten(R1, A, text))
    if keys:
        call.at(5_600, called(K1, "press_keys"), on.KeysRequested(K1, keys))
    call.at(5_700, ended(R1))
    return call


@pytest.mark.parametrize(
    ("text", "keys", "notes"),
    [("Pressing two.", "", 1), ("Pressing two.", "2", 0), ("Pressing two.", "1", 1), ("Good day.", "", 0)],
)
def test_c061_a_key_that_is_only_said_is_noted_once(text, keys, notes):
    call = menu_answered(text, keys)
    call.at(5_500 + CLAIM_MS - 1)
    assert [each.text for each in call.done(do.NoteAnomaly)] == []
    call.at(60_000)
    assert [each.text for each in call.done(do.NoteAnomaly)] == [NOTE] * notes


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 3 * CLAIM_MS), st.integers(0, 3 * CLAIM_MS))
def test_a_key_bears_out_what_is_said_within_so_long_on_either_side(said_ms: Ms, asked_ms: Ms):
    out = Outgoing(Can(0))
    claims = KeyClaims(out)
    events = sorted([(said_ms, True), (asked_ms, False)])
    for at_ms, is_said in events:
        claims.look(at_ms)
        if is_said:
            assert claims.wrote("Pressing two.", at_ms)
        else:
            claims.asked("2", at_ms)
    claims.look(10 * CLAIM_MS)
    gap_ms = asked_ms - said_ms
    is_borne_out = -CLAIM_MS <= gap_ms < CLAIM_MS or gap_ms == 0
    assert len(out.fetch()) == (0 if is_borne_out else 1)
    assert claims.next_deadline_ms() is None
