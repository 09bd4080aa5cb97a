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
from callwright.testing.scripted import after, close, emit
from callwright.wire import server

CARD = "4111-1111"
"""Stands in everything that is content."""


class Failing(SimulatedLine):
    """Fails after the call is over, and quotes it."""

    async def hang_up(self) -> None:
        await super().hang_up()
        raise cw.LineFailed(CARD)


QUOTES = {"type": "invalid_request_error", "code": "invalid_value", "message": f"bad item {CARD}", "event_id": "cw_9"}
TALK = (
    *OPENING,
    emit({"type": "error", "event_id": "e1", "error": QUOTES}),
    emit({"type": "response.done", "response": CARD}),
    emit({"type": f"new.{CARD}", "text": CARD}),
    emit(server.ConversationItemInputAudioTranscriptionCompleted(item_id="u0", transcript=f"it is {CARD}")),
    started(),
    calls("look", "k1", arguments=f'{{"order": "{CARD}"}}'),
    calls("look", "k2", arguments=f'{{"order": "{CARD}", "count": "{CARD}"}}'),
    calls("look", "k3", arguments=f'{{"order": {CARD}'),
    calls("raises", "k4", arguments="{}"),
    calls(f"no_{CARD}", "k5", arguments=f'"{CARD}"'),
    delta(2_000),
    written(f"Your card is {CARD}."),
    after(1_000),
    speech_started(),
    retrieved(f"Your card is {CARD}-"),
    ended("r1", "failed"),
    after(200),
)


def test_c154_a_log_at_info_holds_nothing_of_what_was_said(caplog: pytest.LogCaptureFixture) -> None:
    """Transcripts, arguments, outputs, and what server and tools quote of them: errors, names, exceptions."""
    caplog.set_level(logging.INFO)
    taken = take(*TALK, close(1011, f"lost {CARD}"), ignoring=ANYTHING)
    assert any(CARD in turn.heard for turn in taken.result.turns)
    assert CARD in " ".join(taken.result.anomalies)  # where it belongs: with the call
    assert {"k1", "k2", "k3", "k4", "k5"} == taken.model.outputs().keys()
    assert [record.name for record in caplog.records] == ["callwright.runtime.tools"]  # the tool that raised
    assert CARD not in caplog.text
    assert "secret" not in caplog.text


def test_c154_nor_does_it_when_the_line_fails(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with pytest.raises(cw.LineFailed):
        take(*TALK, ignoring=ANYTHING, make_line=Failing)
    assert CARD not in caplog.text


def test_the_whole_of_what_was_out_of_order_is_told_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "callwright.runtime.call")
    taken = take(*TALK, ignoring=ANYTHING)
    told = [record.getMessage() for record in caplog.records if record.name == "callwright.runtime.call"]
    assert told == list(taken.result.anomalies)
