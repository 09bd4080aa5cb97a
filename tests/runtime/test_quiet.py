"""What a log at INFO may hold of a call: ids, sizes and states, and nothing that was said, asked or answered."""

from __future__ import annotations

import logging

import pytest
from tests.runtime.calls import (
    ANYTHING,
    OPENING,
    calls,
    delta,
    ended,
    retrieved,
    speech_started,
    started,
    take,
    written,
)

import callwright as cw
from callwright.sim.line import SimulatedLine
from callwright.testing.scripted import Step, after, close, emit
from callwright.wire import server

CARD = "4111-1111"
"""Stands in everything that is content."""


NUMBER = "4111 1111 1111 1111"
"""A card's, whole: what is kept of it anywhere is masked."""


class Failing(SimulatedLine):
    """Fails after the call is over, and quotes it."""

    async def hang_up(self) -> None:
        await super().hang_up()
        raise cw.LineFailed(f"{CARD}, {NUMBER}")


def talk(card: str) -> tuple[Step, ...]:
    """A call in which everything that is content is a card."""
    quotes = {"type": "invalid_request_error", "code": "invalid_value", "message": f"bad item {card}"}
    return (
        *OPENING,
        emit({"type": "error", "event_id": "e1", "error": {**quotes, "event_id": "cw_9"}}),
        emit({"type": "response.done", "response": card}),
        emit({"type": f"new.{card}", "text": card}),
        emit(server.ConversationItemInputAudioTranscriptionCompleted(item_id="u0", transcript=f"it is {card}")),
        started(),
        calls("look", "k1", arguments=f'{{"order": "{card}"}}'),
        calls("look", "k2", arguments=f'{{"order": "{card}", "count": "{card}"}}'),
        calls("look", "k3", arguments=f'{{"order": {card}'),
        calls("raises", "k4", arguments="{}"),
        calls("quotes", "k6", arguments=f'{{"order": "{card}"}}'),
        calls(f"no_{card}", "k5", arguments=f'"{card}"'),
        delta(2_000),
        written(f"Your card is {card}."),
        after(1_000),
        speech_started(),
        retrieved(f"Your card is {card}-"),
        ended("r1", "failed"),
        after(200),
    )


def test_c154_a_log_at_info_holds_nothing_of_what_was_said(caplog: pytest.LogCaptureFixture) -> None:
    """Transcripts, arguments, outputs, and what server and tools quote of them: errors, names, exceptions."""
    caplog.set_level(logging.INFO)
    taken = take(*talk(CARD), close(1011, f"lost {CARD}"), ignoring=ANYTHING)
    assert any(CARD in turn.heard for turn in taken.result.turns)
    assert CARD in " ".join(taken.result.anomalies)  # where it belongs: with the call
    assert {"k1", "k2", "k3", "k4", "k5", "k6"} == taken.model.outputs().keys()
    assert [record.name for record in caplog.records] == ["callwright.runtime.tools"] * 2  # the tools that raised
    assert CARD not in caplog.text
    assert "secret" not in caplog.text


def test_c154_nor_does_it_when_the_line_fails(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with pytest.raises(cw.LineFailed):
        take(*talk(CARD), ignoring=ANYTHING, make_line=Failing)
    assert CARD not in caplog.text


def test_c154_at_debug_there_is_content_and_no_card_number(caplog: pytest.LogCaptureFixture) -> None:
    """Nor in the traceback of a tool, a ledger or a line, which may quote one."""
    caplog.set_level(logging.DEBUG)
    with pytest.raises(cw.LineFailed):
        take(*talk(NUMBER), ignoring=ANYTHING, make_line=Failing)
    assert "there is no order **** **** **** 1111" in caplog.text
    assert "bad item **** **** **** 1111" in caplog.text
    assert NUMBER not in caplog.text
    assert not [record for record in caplog.records if record.exc_info]


def test_the_whole_of_what_was_out_of_order_is_told_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "callwright.runtime.call")
    taken = take(*talk(CARD), ignoring=ANYTHING)
    told = [record.getMessage() for record in caplog.records if record.name == "callwright.runtime.call"]
    assert told == list(taken.result.anomalies)
