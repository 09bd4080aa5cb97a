"""Whole calls of the hotel desk with free speech, in virtual time, and one over real sockets."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
import pytest
from tests.sim.open.standin import (
    ANSWERS,
    FOUND,
    GOODBYE,
    HOLDING,
    KEY,
    MODEL,
    EarRecogniser,
    RecordedVoice,
    StandInChat,
)
from tests.sim.whole_call import check_in, says

from callwright.apps.hotel import desk
from callwright.core.lull import CALLS_MAX
from callwright.core.ports import Connector
from callwright.core.transcript import Speaker
from callwright.ids import Ms
from callwright.runtime.call import CallResult, run
from callwright.runtime.connect import connector
from callwright.runtime.endpoint import Endpoint
from callwright.sim.caller import Anchor, ScriptedCaller, Step
from callwright.sim.http import MemoryTransport
from callwright.sim.line import LineKind, LineSettings, SimulatedLine
from callwright.sim.open.chat import ChatEndpoint, ChatThinker
from callwright.sim.open.peer import OpenPeer
from callwright.sim.open.recorded import RecordedThinker
from callwright.sim.open.senses import Recogniser, Thinker
from callwright.sim.open.sessions import open_peer
from callwright.sim.rules import RulesModel
from callwright.sim.server import MemoryConnector
from callwright.sim.server.websocket import RealtimeServer
from callwright.sim.speech import Pcm, Speech
from callwright.sim.vloop import run_virtual

if TYPE_CHECKING:
    from callwright.sim.server.errands import MakeReply, Part

ASKS = says("ask-check-in", Anchor.PICKUP, 300)
LEAVES = says("thats-all", Anchor.REPLY_END, 600)


def peer(thinker: Thinker, recogniser: Recogniser | None = None) -> OpenPeer:
    return open_peer("polyai", recogniser or EarRecogniser(), thinker, random.Random(1))


async def take(connects: Connector, steps: Sequence[Step], limit_ms: Ms = 60_000) -> CallResult:
    line = SimulatedLine(LineSettings(LineKind.PHONE).until(limit_ms), ScriptedCaller(steps, check_in().lines, 8_000))
    return await run(desk, line, connector=connects)


def call(chat: StandInChat, *steps: Step, voice: RecordedVoice | None = None) -> CallResult:
    """A call in virtual time that this endpoint answers."""

    async def scene() -> CallResult:
        transport = MemoryTransport({"chat.test": chat.handle})
        async with httpx.AsyncClient(transport=transport) as client:
            endpoint = ChatEndpoint("http://chat.test/v1", MODEL, KEY)
            thinker = ChatThinker(endpoint, voice or RecordedVoice(), client)
            result = await take(MemoryConnector(lambda: peer(thinker)), steps)
            assert not under_way()
            return result

    return run_virtual(scene())


def under_way() -> list[str]:
    """The errands that somebody still runs."""
    return [repr(task) for task in asyncio.all_tasks() if "OpenPeer" in repr(task)]


def heard(result: CallResult, speaker: Speaker) -> list[str]:
    return [turn.heard for turn in result.turns if turn.speaker is speaker and turn.written]


def test_a_call_with_a_question_a_tool_and_a_goodbye_is_whole() -> None:
    chat = StandInChat()
    result = call(chat, ASKS, says("look-up-okafor", Anchor.REPLY_END, 500), LEAVES)
    assert heard(result, Speaker.AGENT) == [ANSWERS["checking"], HOLDING, FOUND, GOODBYE]
    assert heard(result, Speaker.CALLER)[1] == "Could you look up my booking, please? The name is Okafor."
    assert (result.ending.by, result.ending.is_failure) == ("agent", False)
    assert result.result == "the caller is done"
    assert chat.left == 0
    outputs = [message for message in chat.asked[-1]["messages"] if message["role"] == "tool"]
    assert '"room":"214"' in outputs[0]["content"].replace(" ", "")


def test_a_caller_who_talks_over_a_reply_ends_its_request_and_history_ends_at_what_he_heard() -> None:
    """The endpoint writes slowly, so the last sentence is not written yet when the caller speaks."""
    chat = StandInChat(piece_ms=400)
    result = call(chat, ASKS, says("ask-parking", Anchor.REPLY_START, 1_000), LEAVES)
    assert chat.left == 1
    cut = chat.asked[1]["messages"][-2]["content"]
    assert cut.endswith("-")
    assert ANSWERS["checking"].startswith(cut[:-1])
    agent = heard(result, Speaker.AGENT)
    assert agent[0] == cut[:-1]
    assert agent[1:] == [ANSWERS["parking"], GOODBYE]


def test_a_caller_who_goes_on_before_the_answer_begins_gets_one_answer_to_all_of_it() -> None:
    chat = StandInChat(thinks_ms=3_000)
    result = call(chat, ASKS, says("ask-parking", Anchor.PREVIOUS_END, 1_500), LEAVES)
    assert [message["role"] for message in chat.asked[1]["messages"]] == ["system", "user", "user"]
    assert heard(result, Speaker.AGENT) == [ANSWERS["parking"], GOODBYE]


@pytest.mark.parametrize("fault", ["500", "garbage", "silent"])
def test_an_endpoint_that_never_answers_ends_the_call_and_the_trace_says_why(fault: str) -> None:
    result = call(StandInChat(fault=fault), ASKS)
    assert result.ending.is_failure
    assert heard(result, Speaker.AGENT) == []
    code = {"500": b"model_unreachable", "garbage": b"model_garbled"}.get(fault)
    assert code is None or code in result.trace
    assert KEY.encode() not in result.trace


def test_an_endpoint_that_only_calls_tools_is_asked_so_many_times_and_then_given_up() -> None:
    only_calls = {"content": None, "tool_calls": [{"name": "delete_everything", "arguments": "{}"}]}
    chat = StandInChat(thinks_ms=1, piece_ms=1, answer=lambda _messages: only_calls)
    result = call(chat, ASKS)
    assert (result.ending.by, len(chat.asked)) == ("model", CALLS_MAX)
    assert any("calls tools and says nothing" in anomaly for anomaly in result.anomalies)


def test_an_endpoint_that_comes_back_is_asked_again() -> None:
    chat = StandInChat(fault="500")
    thinks, count = chat.handle, [0]

    async def flaky(request: httpx.Request) -> httpx.Response:
        count[0] += 1
        chat.fault = "500" if count[0] == 1 else ""
        return await thinks(request)

    chat.handle = flaky  # type: ignore[method-assign]
    result = call(chat, ASKS, LEAVES)
    assert heard(result, Speaker.AGENT) == [ANSWERS["checking"], GOODBYE]
    assert not result.ending.is_failure


def test_a_turn_in_which_no_word_was_found_is_not_answered() -> None:
    """A murmur in silence is a turn to the detector; the recogniser finds nothing in it."""
    chat = StandInChat()
    result = call(chat, ASKS, says("mm-hmm", Anchor.REPLY_END, 300), LEAVES)
    assert heard(result, Speaker.AGENT)[0] == ANSWERS["checking"]
    assert all(message["content"] for body in chat.asked for message in body["messages"])
    assert not result.ending.is_failure


class Breaks:
    """Neither hears nor thinks."""

    async def words(self, _audio: Pcm) -> str:
        raise RuntimeError("the engine has died")

    async def reply(self, _wanted: MakeReply) -> AsyncGenerator[Part, None]:
        raise RuntimeError("no thought")
        yield


def test_senses_that_break_leave_a_call_that_ends_as_any_without_answers(caplog: pytest.LogCaptureFixture) -> None:
    result = run_virtual(take(MemoryConnector(lambda: peer(Breaks(), Breaks())), [ASKS]))
    assert result.ending.is_failure
    told = {record.message for record in caplog.records if record.name.startswith("callwright.sim.open")}
    assert {each.partition(" at ")[0] for each in told} == {
        "the recogniser failed, the turn counts as one without words: RuntimeError",
        "a reply could not be made: RuntimeError",
    }
    assert "the engine has died" not in caplog.text  # such a text may quote what was said


def test_the_demos_rules_answer_in_their_recorded_lines() -> None:
    scenario = check_in()
    speech = Speech.load(scenario.speech)
    model = RulesModel.load(scenario.rules, speech, {**scenario.rates, "recaps": 0})
    thinker = RecordedThinker(model, speech, random.Random(1))
    steps = [ASKS, says("ask-parking", Anchor.REPLY_START, 4_000), says("go-on", Anchor.REPLY_END, 400), LEAVES]
    result = run_virtual(take(MemoryConnector(lambda: peer(thinker)), steps, 90_000))
    first, parking, rest, goodbye = heard(result, Speaker.AGENT)
    assert parking == ANSWERS["parking"]
    assert rest.startswith("Sure, as I was saying.")
    assert goodbye == GOODBYE
    whole = f"{first} {rest.removeprefix('Sure, as I was saying. ')}"
    assert ANSWERS["checking"] in whole


@dataclass
class Slow:
    """Hears after a while, and notes that it was left."""

    was_left: bool = False

    async def words(self, _audio: Pcm) -> str:
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            self.was_left = True
            raise
        return ""


def test_a_session_that_is_over_leaves_nothing_running() -> None:
    slow = Slow()

    async def scene() -> None:
        await take(MemoryConnector(lambda: peer(Breaks(), slow)), [ASKS, says(None, Anchor.PREVIOUS_END, 3_000)])
        await asyncio.sleep(0)
        assert not under_way()

    run_virtual(scene())
    assert slow.was_left


def test_a_call_over_real_sockets_has_the_same_words() -> None:
    """By the wall clock: the client at a WebSocket of the server's, which is at a socket of the endpoint's."""
    chat = StandInChat(thinks_ms=0, piece_ms=0, answer=lambda _messages: {"content": "Goodbye."})

    @asynccontextmanager
    async def server() -> AsyncIterator[RealtimeServer]:
        async with chat.serving() as url, httpx.AsyncClient(trust_env=False) as client:
            thinker = ChatThinker(ChatEndpoint(url, MODEL, KEY), RecordedVoice(0), client)
            async with RealtimeServer(lambda: peer(thinker, EarRecogniser(0)), drain_ms=0) as served:
                yield served

    async def scene() -> CallResult:
        async with server() as served:
            leaves = says(None, Anchor.REPLY_END, 0)
            return await take(connector(Endpoint(served.url, "any")), [says("thank-you", Anchor.PICKUP, 0), leaves])

    result = asyncio.run(scene())
    assert heard(result, Speaker.CALLER) == ["Thank you."]
    assert heard(result, Speaker.AGENT) == ["Goodbye."]
    assert chat.keys == [f"bearer {KEY}"]
