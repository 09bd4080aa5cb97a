"""A conversation as a chat endpoint takes it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.open.standin import is_official
from tests.sim.open.test_chat import SESSION, TOOLS

from callwright.ids import ItemId, ToolCallId
from callwright.sim.models import AgentSaid, CallerSaid, HistoryItem, SystemNote, ToolAnswered, ToolRequested
from callwright.sim.open.messages import STILL_RUNNING, request, spoken_arguments
from callwright.sim.server.errands import MakeReply
from callwright.wire.objects import ResponseParams, Session


def caller(text: str) -> CallerSaid:
    return CallerSaid(ItemId(text), text)


def agent(text: str) -> AgentSaid:
    return AgentSaid(ItemId(text), text)


def calls(call_id: str, **arguments: object) -> ToolRequested:
    return ToolRequested(ItemId(f"item_{call_id}"), ToolCallId(call_id), "look_up_booking", arguments)


def output(call_id: str, text: str = "{}") -> ToolAnswered:
    return ToolAnswered(ItemId(f"output_{call_id}"), ToolCallId(call_id), text)


def asked(*history: HistoryItem, session: Session = SESSION, params: ResponseParams | None = None) -> dict[str, Any]:
    return request(MakeReply("resp", history, session, params or ResponseParams(), by_client=False), "m")


def told(*history: HistoryItem) -> list[tuple[str, object]]:
    """Role and content of each message behind the prompt; of one that makes calls, what they are, too."""
    rows: list[tuple[str, object]] = []
    for message in asked(*history)["messages"][1:]:
        names = [call["id"] for call in message.get("tool_calls", ())]
        rows.append((message["role"], (message["content"], *names) if names else message["content"]))
    return rows


CASES: dict[str, tuple[list[HistoryItem], list[tuple[str, object]]]] = {
    "turns": (
        [caller("Hello?"), agent("Good morning. I-"), caller("Is there parking?")],
        [("user", "Hello?"), ("assistant", "Good morning. I-"), ("user", "Is there parking?")],
    ),
    "what has no words is no message": ([caller(""), agent(""), caller("Hello?")], [("user", "Hello?")]),
    "a note": ([caller("Hello?"), SystemNote(ItemId("n"), "Told.")], [("user", "Hello?"), ("system", "Told.")]),
    "an output in time is the next message, and what was said beside the call is its content": (
        [caller("My booking?"), calls("c1"), agent("One moment."), output("c1", "found")],
        [("user", "My booking?"), ("assistant", ("One moment.", "c1")), ("tool", "found")],
    ),
    "speech that began before its call": (
        [caller("My booking?"), agent("One moment."), calls("c1"), output("c1", "found")],
        [("user", "My booking?"), ("assistant", ("One moment.", "c1")), ("tool", "found")],
    ),
    "what is said of an output stands behind it": (
        [calls("c1"), output("c1", "found"), agent("I found it.")],
        [("assistant", (None, "c1")), ("tool", "found"), ("assistant", "I found it.")],
    ),
    "no output yet": (
        [caller("My booking?"), calls("c1"), agent("One moment."), caller("Breakfast?")],
        [
            ("user", "My booking?"),
            ("assistant", ("One moment.", "c1")),
            ("tool", STILL_RUNNING),
            ("user", "Breakfast?"),
        ],
    ),
    "an output that comes turns later is a note where it came": (
        [calls("c1"), caller("Breakfast?"), output("c1", "found"), agent("From seven.")],
        [
            ("assistant", (None, "c1")),
            ("tool", STILL_RUNNING),
            ("user", "Breakfast?"),
            ("system", "The output of look_up_booking (c1): found"),
            ("assistant", "From seven."),
        ],
    ),
    "two calls in one reply": (
        [calls("c1"), calls("c2"), agent("One moment."), output("c2", "two"), output("c1", "one")],
        [("assistant", (None, "c1")), ("tool", "one"), ("assistant", ("One moment.", "c2")), ("tool", "two")],
    ),
    "an output whose call was deleted": (
        [output("c9", "found")],
        [("system", "The output of a function (c9): found")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_conversation_becomes_these_messages(case: str) -> None:
    history, messages = CASES[case]
    assert told(*history) == messages
    assert is_official(asked(*history))


_NUMBERS = st.integers(1, 4)
_ITEMS = st.one_of(
    st.builds(lambda n: caller("word " * (n - 1)), _NUMBERS),
    st.builds(lambda n: agent("word " * (n - 1)), _NUMBERS),
    st.builds(lambda n: SystemNote(ItemId("n"), f"note {n}"), _NUMBERS),
    st.builds(lambda n: ("call", n), _NUMBERS),
    st.builds(lambda n: ("output", n), _NUMBERS),
)


@given(st.lists(_ITEMS, max_size=14))
def test_whatever_happened_every_call_is_answered_by_the_next_message_and_nothing_is_lost(items: list[Any]) -> None:
    """Each call id comes once, and has one output at most, as in a server's history."""
    history: list[HistoryItem] = []
    called: set[int] = set()
    answered: set[int] = set()
    for item in items:
        if not isinstance(item, tuple):
            history.append(item)
        elif item[0] == "call" and item[1] not in called:
            called.add(item[1])
            history.append(calls(f"c{item[1]}"))
        elif item[0] == "output" and item[1] in called - answered:
            answered.add(item[1])
            history.append(output(f"c{item[1]}", f"output {item[1]}"))
    body = asked(*history)
    assert is_official(body)
    contents = [str(message["content"]) for message in body["messages"][1:]]
    for item in history:
        match item:
            case ToolAnswered(output=text):
                assert sum(text in content for content in contents) == 1
            case CallerSaid(text=text) | AgentSaid(text=text) | SystemNote(text=text) if text:
                assert text in contents


def test_the_prompt_has_the_instructions_the_topics_the_language_and_how_to_speak() -> None:
    session = Session(
        instructions="Be brief.",
        poly_response_language="pt-BR",
        poly_knowledge=({"name": "pool", "content": "On floor two."},),
    )
    prompt = asked(session=session)["messages"][0]["content"]
    assert prompt.startswith("Be brief.")
    for part in ("said aloud", "pt-BR", "What you know about pool: On floor two."):
        assert part in prompt


def test_what_one_response_asks_for_goes_before_what_the_session_has() -> None:
    params = ResponseParams(
        instructions="Say hello.",
        tools=(),
        max_output_tokens=40,
    )
    body = asked(params=params)
    assert body["messages"][0]["content"].startswith("Say hello.")
    assert "tools" not in body
    assert body["max_tokens"] == 40


@pytest.mark.parametrize(
    ("choice", "asked_for"),
    [
        ("none", "none"),
        ({"type": "function", "name": "end_call"}, {"type": "function", "function": {"name": "end_call"}}),
    ],
)
def test_a_tool_choice_is_spelled_as_chat_endpoints_do(choice: Any, asked_for: object) -> None:
    body = asked(caller("Hello?"), params=ResponseParams(tool_choice=choice))
    assert body["tool_choice"] == asked_for
    assert is_official(body)


def test_a_spoken_argument_is_an_ordinary_one_to_the_endpoint_and_stays_required() -> None:
    wanted = MakeReply("resp", (), SESSION, ResponseParams(), by_client=False)
    tool = asked()["tools"][0]["function"]
    assert tool["parameters"]["required"] == ["surname", "holding"]
    holding = tool["parameters"]["properties"]["holding"]
    assert holding["type"] == "string"
    assert "poly_spoken" not in holding
    assert holding["description"].endswith("(said aloud to the caller)")
    assert tool["parameters"]["properties"]["surname"] == TOOLS[0]["parameters"]["properties"]["surname"]
    assert spoken_arguments(wanted, "look_up_booking") == ["holding"]
    assert spoken_arguments(wanted, "no_such_tool") == []


@pytest.mark.parametrize("parameters", [None, [], {"type": "object"}, {"properties": []}, {"properties": {"a": 1}}])
def test_a_tool_that_declares_its_arguments_strangely_is_passed_on(parameters: Any) -> None:
    tool = {"type": "function", "name": "odd", **({} if parameters is None else {"parameters": parameters})}
    (told_tool,) = asked(session=Session(tools=(tool,)))["tools"]
    assert told_tool["function"].get("parameters") == parameters
