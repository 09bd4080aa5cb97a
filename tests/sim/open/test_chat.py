"""The chat endpoint as thinker: what it is asked, what is made of its answers, and what becomes of one that fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from openai import AsyncOpenAI
from tests.sim.open.standin import ANSWERS, HOLDING, KEY, MODEL, RecordedVoice, StandInChat

from callwright.apps.hotel import desk
from callwright.errors import UsageError
from callwright.ids import ItemId
from callwright.sim.http import MemoryTransport
from callwright.sim.models import CallerSaid, ToolRequest
from callwright.sim.open.chat import ANSWER_BYTES_MAX, ChatEndpoint, ChatThinker
from callwright.sim.open.messages import request
from callwright.sim.server.errands import Failed, MakeReply, Piece
from callwright.sim.vloop import run_virtual
from callwright.wire.objects import ResponseParams, Session

if TYPE_CHECKING:
    from callwright.sim.server.errands import Part

ENDPOINT = ChatEndpoint("http://chat.test/v1", MODEL, KEY)
TOOLS = tuple(
    {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters}
    for tool in desk.tools.values()
)
SESSION = Session(instructions="You are the front desk.", tools=TOOLS)


def wanted(text: str, session: Session = SESSION) -> MakeReply:
    return MakeReply("resp_1", (CallerSaid(ItemId("item_1"), text),), session, ResponseParams(), by_client=False)


def parts_of(chat: StandInChat, text: str, endpoint: ChatEndpoint = ENDPOINT) -> list[Part]:
    """What comes of a turn, in virtual time."""

    async def all_parts() -> list[Part]:
        transport = MemoryTransport({"chat.test": chat.handle})
        async with httpx.AsyncClient(transport=transport) as client:
            thinker = ChatThinker(endpoint, RecordedVoice(), client)
            return [part async for part in thinker.reply(wanted(text))]

    return run_virtual(all_parts())


def texts(parts: list[Part]) -> list[str]:
    return [" ".join(word.text for word in part.words) for part in parts if isinstance(part, Piece)]


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
def test_an_answer_is_spoken_sentence_by_sentence(streams: bool) -> None:
    chat = StandInChat(streams=streams)
    parts = parts_of(chat, "What do I need for checking in?")
    assert " ".join(texts(parts)) == ANSWERS["checking"]
    assert len(parts) == 3
    assert chat.keys == [f"Bearer {KEY}"]
    assert chat.left == 0


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
def test_a_call_comes_whole_and_before_what_of_it_is_said_aloud(streams: bool) -> None:
    call, *spoken = parts_of(StandInChat(streams=streams), "My booking, the name is Okafor.")
    assert call == ToolRequest("look_up_booking", {"surname": "Okafor", "holding": HOLDING})
    assert texts(spoken) == [HOLDING]


def test_the_first_sentence_is_there_while_the_rest_is_still_being_written() -> None:
    chat = StandInChat(piece_ms=500)

    async def first() -> float:
        transport = MemoryTransport({"chat.test": chat.handle})
        async with (
            httpx.AsyncClient(transport=transport) as client,
            aclosing(ChatThinker(ENDPOINT, RecordedVoice(), client).reply(wanted("checking"))) as parts,
        ):
            await anext(parts)
            return asyncio.get_running_loop().time()

    assert run_virtual(first()) < 3.5
    assert chat.left == 1


CALLS: list[tuple[str, list[dict[str, Any]], list[ToolRequest]]] = [
    (
        "two at once",
        [{"name": "a", "arguments": "{}"}, {"name": "b", "arguments": '{"n": 2}'}],
        [ToolRequest("a", {}), ToolRequest("b", {"n": 2})],
    ),
    ("no arguments", [{"name": "a", "arguments": ""}], [ToolRequest("a", {})]),
]


@pytest.mark.parametrize(("calls", "made"), [case[1:] for case in CALLS], ids=[case[0] for case in CALLS])
def test_calls_of_every_shape_are_read(calls: list[dict[str, Any]], made: list[ToolRequest]) -> None:
    for streams in (True, False):
        chat = StandInChat(streams=streams, answer=lambda _messages: {"content": None, "tool_calls": calls})
        assert parts_of(chat, "anything") == made


@pytest.mark.parametrize(
    "arguments", ["{", "[]", '"text"', "null", "{} {}", '{"a": ' + "[" * 9_999 + "]" * 9_999 + "}"]
)
def test_arguments_that_are_no_object_are_no_call(arguments: str) -> None:
    call = {"name": "look_up_booking", "arguments": arguments}
    (failed,) = parts_of(StandInChat(answer=lambda _messages: {"tool_calls": [call]}), "anything")
    assert isinstance(failed, Failed)
    assert failed.code == "model_garbled"


FAULTS = {
    "500": ("model_unreachable", "HTTP 500: it is in trouble"),
    "401": ("model_unreachable", "the key was refused; it is read from CALLWRIGHT_CHAT_KEY"),
    "404": ("model_unreachable", "does the address end in /v1"),
    "429": ("model_unreachable", "too many requests"),
    "400": ("model_unreachable", "did not take the request"),
    "302": ("model_unreachable", "HTTP 302: it sends elsewhere"),
    "garbage": ("model_garbled", "no answer of a chat endpoint"),
    "silent": ("model_unreachable", "no answer within 30000 ms"),
    "error": ("model_unreachable", "told of an error"),
    "breaks": ("model_garbled", "broke its answer off"),
    "endless": ("model_garbled", f"longer than {ANSWER_BYTES_MAX} bytes"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_goes_wrong_is_told_with_the_address_and_what_to_do(fault: str) -> None:
    failed = parts_of(StandInChat(fault=fault), "checking")[-1]
    code, message = FAULTS[fault]
    assert isinstance(failed, Failed)
    assert failed.code == code
    assert message in failed.message
    assert failed.message.startswith("http://chat.test/v1/chat/completions: ")


def raw(body: bytes, kind: str, **headers: str) -> list[Part]:
    """What comes of an answer of these bytes."""

    async def all_parts() -> list[Part]:
        def answer(_request: httpx.Request) -> httpx.Response:
            return httpx.Response(200, headers={"content-type": kind, **headers}, stream=httpx.ByteStream(body))

        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
            thinker = ChatThinker(ENDPOINT, RecordedVoice(0), client)
            return [part async for part in thinker.reply(wanted("anything"))]

    return asyncio.run(all_parts())


STREAM = b'data: {"choices": [{"index": 0, "delta": {"content": "%s"}}]}\n\n'
WHOLE = b'{"choices": [{"message": {"content": "%s"}}]}'


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (STREAM % b"Hello.", "Text/Event-Stream; charset=UTF-8"),
        (b"\xef\xbb\xbf" + STREAM % b"Hello.", "text/event-stream"),
        ((STREAM % b"Hello.").replace(b"\n", b"\r\n"), "text/event-stream"),
        (STREAM % rb"Hello\u001b\u0000\u202e.", "text/event-stream"),
        (b"\xef\xbb\xbf" + WHOLE % b"Hello.", "application/json"),
    ],
)
def test_an_answer_is_read_whatever_else_its_bytes_hold(body: bytes, kind: str) -> None:
    assert texts(raw(body, kind)) == ["Hello."]


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("content", "spoken"),
    [
        ("<think>He wants parking. Is there any?</think>\n\nParking is valet.", ["Parking is valet."]),
        ("One moment.<think>Which? Hm. So.</think>It is valet.", ["One moment.", "It is valet."]),
        ("Valet.<think>Is that so? He did not say. And", ["Valet."]),
        ("<think>And nothing else. Nothing", []),
    ],
)
def test_what_a_model_thinks_is_not_said(streams: bool, content: str, spoken: list[str]) -> None:
    chat = StandInChat(streams=streams, answer=lambda _messages: {"content": content})
    assert texts(parts_of(chat, "anything")) == spoken


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_what_a_model_thinks_beside_its_content_is_not_said(name: str) -> None:
    thought = b'data: {"choices": [{"delta": {"content": null, "%s": "He wants parking. Hm."}}]}\n\n' % name.encode()
    assert texts(raw(thought + STREAM % b"Valet.", "text/event-stream")) == ["Valet."]
    both = b'{"choices": [{"message": {"content": "Valet.", "%s": "Parking. Hm."}}]}' % name.encode()
    assert texts(raw(both, "application/json")) == ["Valet."]


PARTS = b"""[
    {"type": "thinking", "thinking": [{"type": "text", "text": "He wants parking."}]},
    {"type": "text", "text": "Park"},
    {"type": "text", "text": "ing is valet."},
    {"type": "refusal", "refusal": "no", "text": null}
]"""


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (WHOLE.replace(b'"%s"', PARTS), "application/json"),
        (STREAM.replace(b'"%s"', PARTS.replace(b"\n", b"")), "text/event-stream"),
    ],
    ids=["whole", "streamed"],
)
def test_a_content_in_parts_is_its_text(body: bytes, kind: str) -> None:
    assert texts(raw(body, kind)) == ["Parking is valet."]


@pytest.mark.parametrize("headers", [{}, {"content-encoding": "gzip"}])
def test_an_answer_that_cannot_be_decoded_is_garbled(headers: dict[str, str]) -> None:
    (failed,) = raw(WHOLE % b"caf\xe9", "application/json", **headers)
    assert isinstance(failed, Failed)
    assert failed.code == "model_garbled"


@pytest.mark.parametrize("fault", FAULTS)
def test_no_key_is_in_what_is_told_of_a_fault(fault: str) -> None:
    for part in parts_of(StandInChat(fault=fault), "checking"):
        assert KEY not in repr(part)
    assert KEY not in repr(ENDPOINT)


@pytest.mark.parametrize(
    "url",
    [
        f"http://me:{KEY}@chat.test/v1",
        f"http://{KEY}@chat.test/v1",
        f"https://chat.test/v1?key={KEY}",
        f"https://chat.test/v1#{KEY}",
        f"http://{KEY}\\@chat.test/v1",
    ],
)
def test_an_address_that_could_hold_a_key_is_refused_and_not_told(url: str) -> None:
    """The HTTP client logs every address at INFO."""
    with pytest.raises(UsageError, match=r"--chat-url: .* without user, query and fragment") as refused:
        ChatEndpoint(url, MODEL)
    assert KEY not in str(refused.value)


def test_what_was_written_before_a_break_is_spoken() -> None:
    parts = parts_of(StandInChat(fault="breaks"), "checking")
    assert texts(parts) == ["Check in is from three in the afternoon."]


def test_an_answer_that_is_dropped_ends_the_request_on_a_real_socket() -> None:
    """And another one, over a real socket, is whole; nobody answers on a port that is closed."""
    chat = StandInChat(thinks_ms=0, piece_ms=1)

    async def scene() -> tuple[list[Part], Part]:
        async with chat.serving() as url, httpx.AsyncClient(trust_env=False) as client:
            thinker = ChatThinker(ChatEndpoint(url, MODEL), RecordedVoice(0), client)
            async with aclosing(thinker.reply(wanted("checking"))) as parts:
                await anext(parts)
            await chat.was_left.wait()
            whole = [part async for part in thinker.reply(wanted("My name is Okafor."))]
        async with httpx.AsyncClient(trust_env=False) as client:
            gone = ChatThinker(ChatEndpoint(url, MODEL), RecordedVoice(0), client)
            return whole, [part async for part in gone.reply(wanted("checking"))][-1]

    whole, gone = asyncio.run(scene())
    assert texts(whole) == [HOLDING]
    assert isinstance(gone, Failed)
    assert "cannot connect" in gone.message
    assert chat.keys == [None, None]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: ChatEndpoint("ws://127.0.0.1/v1", "m"), "--chat-url"),
        (lambda: ChatEndpoint("127.0.0.1:8080", "m"), "--chat-url"),
        (lambda: ChatEndpoint("http://[::1", "m"), "--chat-url"),
        (lambda: ChatEndpoint("http://h:port/", "m"), "--chat-url"),
        (lambda: ChatEndpoint("http://h:65536/", "m"), "--chat-url"),
        (lambda: ChatEndpoint("http:///v1", "m"), "--chat-url"),
        (lambda: ChatEndpoint("http://h\u2100.test/v1", "m"), "--chat-url"),
        (lambda: ChatEndpoint("http://h/\x01", "m"), "--chat-url"),
        (lambda: ChatEndpoint("http://127.0.0.1/v1", " "), "--chat-model"),
        (lambda: ChatEndpoint("http://127.0.0.1/v1", "m", "sk-1\n"), "CALLWRIGHT_CHAT_KEY"),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_named_before_a_call(make: Callable[[], object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        make()


@pytest.mark.parametrize("url", ["http://h/v1", "http://h/v1/", "http://h/v1/chat/completions"])
def test_the_address_may_end_where_it_is_usually_written_down(url: str) -> None:
    assert ChatEndpoint(url, "m").address == "http://h/v1/chat/completions"


@pytest.mark.parametrize("text", ["checking", "My name is Okafor."])
def test_the_official_client_reads_the_stand_in_as_we_do(text: str) -> None:
    """So what is read here is the protocol, and not a habit of the stand-in's."""
    chat = StandInChat()
    body = request(wanted(text), MODEL)

    async def official() -> tuple[str, list[dict[str, str]]]:
        transport = MemoryTransport({"chat.test": chat.handle})
        async with AsyncOpenAI(
            api_key=KEY, base_url="http://chat.test/v1", http_client=httpx.AsyncClient(transport=transport)
        ) as client:
            said, calls = "", list[dict[str, str]]()
            async for event in await client.chat.completions.create(**body):
                for choice in event.choices:
                    said += choice.delta.content or ""
                    for piece in choice.delta.tool_calls or ():
                        if piece.id:
                            calls.append({"name": piece.function.name, "arguments": ""})
                        calls[-1]["arguments"] += piece.function.arguments
            return said, calls

    said, calls = run_virtual(official())
    parts = parts_of(StandInChat(), text)
    ours = [part for part in parts if isinstance(part, ToolRequest)]
    assert [(each["name"], json.loads(each["arguments"])) for each in calls] == [(p.name, p.arguments) for p in ours]
    assert said == ("" if calls else " ".join(texts(parts)))
