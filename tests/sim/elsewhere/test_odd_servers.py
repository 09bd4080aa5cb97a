"""Calls on servers that say what no server should: they come to their end, and are judged by what is known."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from callwright.ids import Ms
from callwright.measure.figures import METRICS, CallFigures, measure_call
from callwright.measure.metric import Lack
from callwright.sim.agents import tools_of
from callwright.sim.baselines.naive import NO_SUCH_CALL
from callwright.sim.elsewhere.book import Elsewhere
from callwright.sim.models import ToolAnswered
from callwright.sim.record import CallRecord
from callwright.sim.scenario import Scenario, load_scenario
from callwright.sim.server import MemoryConnector, ServerSession
from callwright.sim.vloop import run_virtual
from callwright.sim.world import CLIENTS, OURS, Options, make_session, take_call_at
from callwright.testing import replay_trace
from callwright.wire.profiles import POLYAI

Said: TypeAlias = Callable[[dict[str, Any]], list[Mapping[str, Any] | bytes]]
"""What a server says in place of a message."""
APPS = Path(str(resources.files("callwright.apps")))


class Odd:
    """A session of the local server that says something else. Implements `callwright.sim.server.memory.Peer`."""

    def __init__(self, session: ServerSession, said: Said) -> None:
        self._session = session
        self._said = said
        self.connect = session.connect
        self.receive = session.receive
        self.disconnect = session.disconnect
        self.tick = session.tick

    @property
    def closing(self) -> tuple[int, str] | None:
        return self._session.closing

    def next_deadline_ms(self) -> Ms | None:
        return self._session.next_deadline_ms()

    def outgoing(self) -> list[bytes]:
        said = [each for message in self._session.outgoing() for each in self._said(json.loads(message))]
        return [each if isinstance(each, bytes) else json.dumps(each).encode() for each in said]


def scenario(name: str, **changes: Any) -> Scenario:
    (path,) = APPS.glob(f"*/scenarios/{name}.yaml")
    return replace(load_scenario(path, tools_of, METRICS, CLIENTS), **changes)


def take(call: Scenario, said: Said, client: str = OURS) -> CallRecord:
    def serve(_place: object) -> Elsewhere:
        connector = MemoryConnector(lambda: Odd(make_session(call, 1, Options()), said))
        return Elsewhere(connector, POLYAI, tools_of(call.agent))

    return run_virtual(take_call_at(call, 1, client, Options(), serve))


def figures(call: Scenario, record: CallRecord) -> CallFigures:
    return measure_call(record, call.lines)


def unreadable(message: dict[str, Any]) -> list[Mapping[str, Any] | bytes]:
    null = {"type": "error", "error": {"type": None, "code": 5, "message": None}}
    words = {"type": "response.output_audio_transcript.done", "response_id": "r", "item_id": "i", "transcript": None}
    sound = {"type": "response.output_audio.delta", "response_id": "r", "item_id": "i", "delta": "!!! é"}
    return [message, null, words, sound, b"[]", b"\xff", b"", b'{"type": "response.done"}', b"[" * 500]


@pytest.mark.parametrize("client", [OURS, "naive"])
def test_what_cannot_be_read_is_passed_over_by_every_client(client: str) -> None:
    call = scenario("booking")
    record = take(call, unreadable, client)
    assert (record.error, record.ended_by) == (None, "agent")
    assert [reply.tool for reply in record.spoken] == ["look_up_booking", None, "end_call"]


def nameless(message: dict[str, Any]) -> list[Mapping[str, Any] | bytes]:
    if message["type"] == "response.function_call_arguments.done":
        del message["name"]
    return [message]


@pytest.mark.parametrize("client", [OURS, "naive"])
def test_a_call_that_does_not_name_its_tool_is_one_of_the_tool_that_its_item_named(client: str) -> None:
    record = take(scenario("booking"), nameless, client)
    assert record.ended_by == "agent"
    assert [reply.tool for reply in record.spoken] == ["look_up_booking", None, "end_call"]


@pytest.mark.parametrize(("field", "value"), [("name", "fly"), ("arguments", '{"reason": [1'), ("arguments", "[]")])
def test_a_naive_client_answers_a_call_that_it_cannot_make(field: str, value: str) -> None:
    def says(message: dict[str, Any]) -> list[Mapping[str, Any] | bytes]:
        return [message | {field: value} if message["type"] == "response.function_call_arguments.done" else message]

    record = take(scenario("booking", limit_ms=9_000), says, "naive")
    outputs = [item.output for item in record.history if isinstance(item, ToolAnswered)]
    assert outputs
    assert set(outputs) == {NO_SUCH_CALL}


def wordless(message: dict[str, Any]) -> list[Mapping[str, Any] | bytes]:
    for item in message.get("response", {}).get("output") or ():
        item["content"] = []
    return [] if "output_audio_transcript" in message["type"] else [message]


def test_of_a_server_that_tells_no_words_of_its_replies_nothing_is_judged_that_rests_on_words() -> None:
    call = scenario("booking")
    found = figures(call, take(call, wordless))
    on_words = [name for name, metric in METRICS.items() if metric.rests_on_words]
    assert {"unheard_words_in_transcript", "ai_notice_heard", "starts_over", "answer_restates"} < set(on_words)
    assert not set(on_words) & set(found.values)
    assert {found.unjudged[name] for name in on_words} == {Lack.WORDS.value}
    assert found.values["heard_error_ms"][0] < 20
    assert found.void is None


def test_a_call_whose_server_left_out_an_end_and_a_beginning_is_replayed_as_it_was(tmp_path: Path) -> None:
    """The core finds out late, and wants its timer at an instant that has passed: it fires at once."""
    left_out = [("response.done", 1), ("input_audio_buffer.speech_started", 2)]
    told: list[str] = []

    def says(message: dict[str, Any]) -> list[Mapping[str, Any] | bytes]:
        kind = message["type"]
        told.append(kind)
        return [] if (kind, told.count(kind)) in left_out else [message]

    trace = tmp_path / "trace.jsonl"
    trace.write_bytes(take(scenario("talk-over"), says).trace)
    replay_trace(trace)
