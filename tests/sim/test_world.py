"""A whole call is the same every time, keeps the protocol, and is heard as the line's own books say."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.sim import whole_call
from tests.sim.whole_call import (
    AT_THE_DESK,
    TALKED_OVER,
    WAITED_FOR,
    agent_heard,
    check_in,
    check_in_call,
    digest,
    first,
    hangs_up,
    heard_by_the_books,
    says,
    scenario,
)
from tests.wire.official import assert_official_client, assert_official_server

from callwright.core.ports import ModelSink
from callwright.errors import UsageError
from callwright.sim import world
from callwright.sim.caller import Anchor
from callwright.sim.line import SimulatedLine
from callwright.sim.models import ToolAnswered, ToolRequested
from callwright.sim.record import CallRecord
from callwright.sim.scenario import Scenario
from callwright.sim.server import MemoryConnector, ServerSession
from callwright.sim.vloop import run_virtual
from callwright.sim.world import Options, play

# --- the same call


def test_one_seed_is_one_call_and_another_is_another() -> None:
    assert digest(play(check_in(), 1)) == digest(check_in_call())
    assert play(check_in(), 2).trace != check_in_call().trace


@contextmanager
def busy_machine() -> Iterator[None]:
    """A process beside us computes without end."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


def test_it_is_the_same_call_in_another_process_with_another_hash_seed_and_under_load() -> None:
    command = [sys.executable, whole_call.__file__, "1"]
    with busy_machine():
        runs = [
            subprocess.Popen(command, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE, text=True)
            for seed in ("0", "1")
        ]
        hashes = [run.communicate()[0] for run in runs]
    assert hashes == [digest(check_in_call())] * 2


# --- the same protocol


class Tapped(MemoryConnector):
    """Keeps every message of both sides."""

    client: list[bytes]
    server: list[bytes | str]

    async def connect(self, sink: ModelSink) -> Any:
        self.client, self.server = [], []
        TAPPED.append(self)
        connection = await super().connect(_Tap(sink, self.server))
        send = connection.send

        def noted(message: bytes) -> None:
            self.client.append(message)
            send(message)

        connection.send = noted  # type: ignore[method-assign]
        return connection


class _Tap:
    def __init__(self, sink: ModelSink, messages: list[bytes | str]) -> None:
        self.on_closed = sink.on_closed
        self._sink = sink
        self._messages = messages

    def on_message(self, message: bytes | str) -> None:
        self._messages.append(message)
        self._sink.on_message(message)


TAPPED: list[Tapped] = []


@pytest.mark.parametrize("client", [world.OURS, *AT_THE_DESK])
@pytest.mark.parametrize("which", [check_in(), TALKED_OVER, WAITED_FOR], ids=["check-in", "talked over", "waited for"])
def test_every_message_of_a_call_is_the_protocols_own(
    which: Scenario, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "MemoryConnector", Tapped)
    record = play(which, 1, client=client)
    tapped = TAPPED.pop()
    for message in tapped.server:
        assert_official_server(message)
    kinds = [json.loads(message)["type"] for message in tapped.client]
    for at, message in enumerate(tapped.client):
        if kinds[at] != "input_audio_buffer.append" or at < 50:
            assert_official_client(message)
    is_early = client == "sends-early-audio"
    assert (kinds[0] == "session.update") is not is_early
    assert kinds.count("session.update") == 1
    assert "error" not in [json.loads(message)["type"] for message in tapped.server]
    assert record.error is None
    assert record.unspoken == ()


def test_clients_must_work_where_items_are_not_told() -> None:
    """Item events were not seen on the live service: without them the call is the same for every ear."""
    told, untold = check_in_call(), play(check_in(), 1, options=Options(server={"item_events": False}))
    assert (untold.ear, untold.recording.agent.tobytes()) == (told.ear, told.recording.agent.tobytes())
    assert agent_heard(untold) == agent_heard(told)
    assert [turn.speaker for turn in untold.turns] == [turn.speaker for turn in told.turns]


# --- heard


LAGS = {"no lag": Options(), "hidden lag": Options(lag_ms=1_500), "fixed lag": Options(lag_fixed_ms=300)}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("lag", LAGS)
def test_what_is_written_down_as_heard_is_what_was_at_the_ear(lag: str, seed: int) -> None:
    record = play(check_in(), seed, options=LAGS[lag])
    agent = [turn for turn in record.turns if turn.speaker == "agent"]
    for turn in agent:  # the line plays in frames: the client may be one behind
        assert turn.heard in [heard_by_the_books(record, turn.item_id, less_ms) for less_ms in (0, 20)]
    assert agent[0].cut_ms is not None
    ear_ms = max(span.to_ms for span in record.ear if span.item_id == agent[0].item_id)
    assert abs(agent[0].cut_ms - ear_ms) <= 20
    assert agent[0].heard != agent[0].written
    assert [turn.source for turn in agent] == ["retrieved", "whole", "whole"]
    in_history = [item.text.removesuffix("-") for item in record.history if hasattr(item, "is_cut")]
    assert in_history == [turn.heard for turn in agent]


def test_where_nothing_is_truncated_the_history_is_ahead_of_a_lagging_ear() -> None:
    options = Options(lag_ms=1_500, can=world.Can.RETRIEVE | world.Can.CANCEL)
    record = play(check_in(), 1, options=options)
    assert record.truncations == ()
    assert record.settings == {"lag_ms": 1_500, "truncate": False}
    cut = next(turn for turn in record.turns if turn.cut_ms is not None)
    (in_history,) = (item.text for item in record.history if item.item_id == cut.item_id)  # type: ignore[union-attr]
    assert len(in_history.split()) > len(heard_by_the_books(record, cut.item_id).split()) + 2


# --- the rules model sees the history only


CALLERS = {
    "as scripted": ("ask-check-in", "ask-parking", "go-on"),
    "paraphrased": ("ask-check-in-other", "ask-parking-other", "go-on-other"),
    "half paraphrased": ("ask-check-in", "ask-parking-other", "go-on"),
}


@pytest.mark.parametrize("lines", CALLERS.values(), ids=CALLERS)
def test_a_question_over_the_answer_is_answered_and_then_the_answer_goes_on(lines: tuple[str, str, str]) -> None:
    ask, over, go_on = lines
    record = play(
        scenario(first(ask), says(over, Anchor.REPLY_START, 4_000), says(go_on, Anchor.REPLY_END, 800), hangs_up()),
        1,
    )
    cut, parking, rest = agent_heard(record)
    assert cut.startswith("Check in is from three in the afternoon. Please bring")
    assert parking == "Parking here is valet only, at forty dollars a night."
    assert rest.startswith("Sure, as I was saying.")
    assert rest.endswith("and it needs no password.")
    assert "Check in is from three" not in rest  # never over again


def test_the_questions_may_come_in_the_other_order() -> None:
    record = play(
        scenario(
            first("ask-parking"),
            says("ask-check-in", Anchor.REPLY_START, 1_500),
            says("go-on", Anchor.REPLY_END, 800),
            hangs_up(),
        ),
        1,
    )
    cut, check_in_told, rest = agent_heard(record)
    assert check_in_told.startswith("Check in is from three in the afternoon.")
    assert check_in_told.endswith("and it needs no password.")
    assert rest.startswith("Sure, as I was saying. ")
    whole = f"{cut} {rest.removeprefix('Sure, as I was saying. ')}"
    assert whole == "Parking here is valet only, at forty dollars a night."


# --- tools


ORDERS = [(call_first, cancelled_first) for call_first in (0, 1) for cancelled_first in (0, 1)]
EITHER_ORDER = pytest.mark.parametrize(("call_first", "cancelled_first"), ORDERS)


def in_order(call_first: int, cancelled_first: int) -> Options:
    return Options(server={"call_first_rate": call_first, "cancelled_first_rate": cancelled_first})


def tool_items(record: CallRecord) -> list[type]:
    return [type(item) for item in record.history if isinstance(item, ToolRequested | ToolAnswered)]


def tool_events(record: CallRecord) -> list[str]:
    names = ("ToolCalled", "StartTool", "ToolFinished", "PostToolOutput", "RequestReply")
    return [row[2] for row in map(json.loads, record.trace.splitlines()) if row[2] in names]


@EITHER_ORDER
def test_a_holding_line_that_is_talked_over_leaves_the_result_unsaid(call_first: int, cancelled_first: int) -> None:
    """The tool runs once, its output is posted once, the question is answered, and nobody reads the result out."""
    record = play(TALKED_OVER, 1, options=in_order(call_first, cancelled_first))
    holding, answer = agent_heard(record)
    assert "One moment, I am looking that up for you.".startswith(holding)
    assert answer == "We serve breakfast from seven to ten in the Atrium."
    assert tool_items(record) == [ToolRequested, ToolAnswered]
    assert tool_events(record) == ["ToolCalled", "StartTool", "ToolFinished", "PostToolOutput"]
    assert all(line.overlapped_ms > 0 for line in record.caller_lines if line.is_interruption)


@EITHER_ORDER
def test_a_result_that_is_waited_for_is_spoken(call_first: int, cancelled_first: int) -> None:
    record = play(WAITED_FOR, 1, options=in_order(call_first, cancelled_first))
    assert agent_heard(record) == [
        "One moment, I am looking that up for you.",
        "I found it. Room two fourteen, two nights, checking in on Friday.",
    ]
    assert tool_items(record) == [ToolRequested, ToolAnswered]
    assert tool_events(record) == ["ToolCalled", "StartTool", "ToolFinished", "PostToolOutput", "RequestReply"]


# --- how a call ends, and what cannot be played


def test_a_line_that_breaks_ends_the_call_and_is_told() -> None:
    which = replace(check_in(), line=replace(check_in().line, close_at_ms=9_000))
    record = play(which, 1)
    assert record.error == "the line broke"
    assert record.unspoken[0] == "step 2 (reply.start + 6500 ms)"
    assert len(record.unspoken) == 3
    assert record.connected_ms == 9_000


def test_a_call_is_ended_at_its_limit() -> None:
    record = play(replace(check_in(), limit_ms=3_000), 1)
    assert record.error == "ended at limit_ms 3000"
    assert len(record.recording.agent) == 3_000 * 8


@pytest.mark.parametrize(
    ("client", "options", "problem"),
    [
        ("nobody", Options(), "there is no client 'nobody'; clients: callwright, naive"),
        (
            "callwright",
            Options(server={"anser_ms": 3}),
            "the local server has no setting 'anser_ms'; settings: answer_ms",
        ),
        ("callwright", Options(server={"call_first_rate": 2}), "call_first_rate: expected a number from 0 to 1; got 2"),
        ("callwright", Options(lag_ms=-1), "a line's lag is at least 0 ms"),
    ],
)
def test_what_cannot_be_played_is_refused(client: str, options: Options, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        play(check_in(), 1, client=client, options=options)


def test_a_world_that_breaks_behind_the_call_fails_the_run() -> None:
    """A fault in the simulated server or line is a fault of the run, not a silence that the client gets over."""

    def breaks() -> None:
        raise ZeroDivisionError("behind the call")

    @asynccontextmanager
    async def reach(next_session: Callable[[], ServerSession], _line: SimulatedLine) -> AsyncIterator[MemoryConnector]:
        asyncio.get_running_loop().call_later(1, breaks)
        yield MemoryConnector(next_session)

    with pytest.raises(ZeroDivisionError, match="behind the call"):
        run_virtual(world.take_call(check_in(), 1, "callwright", Options(), reach))
