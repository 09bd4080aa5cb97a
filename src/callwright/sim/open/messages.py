"""A conversation as a chat endpoint takes it: messages, tools, and what is asked of the answer. Pure.

A chat endpoint wants every tool call answered by the very next message. Here an output may come turns later, so a call
whose output is not in time is answered with "still running", and the output stands as a note where it came in.
What was spoken beside a call is the content of the message that makes the call, as far as it was heard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from callwright.sim.models import AgentSaid, CallerSaid, HistoryItem, SystemNote, ToolAnswered, ToolRequested
from callwright.wire.objects import SPOKEN_KEY

if TYPE_CHECKING:
    from callwright.sim.server.errands import MakeReply
    from callwright.wire.objects import ResponseParams, Session

STILL_RUNNING: Final = "This is still running. Its output will be in a later message."

_ON_THE_PHONE: Final = """\
You speak on the telephone: everything you write is said aloud. Write plain spoken sentences, few and short, without
lists, headings or other markup. A message of yours that ends in a hyphen was cut off there: the caller heard no more
of it."""
_ALOUD: Final = """\
Where a function has an argument that is said aloud, write nothing beside the call: the argument is what the caller
hears."""


def request(wanted: MakeReply, model: str) -> dict[str, Any]:
    """The body of the request for a reply, streamed."""
    session, asked = wanted.session, wanted.asked
    tools = _first(asked.tools, session.tools, ())
    body: dict[str, Any] = {"model": model, "messages": _messages(wanted, tools), "stream": True}
    if tools:
        body["tools"] = [_tool(each) for each in tools]
        if (choice := _first(asked.tool_choice, session.tool_choice, None)) is not None:
            body["tool_choice"] = _choice(choice)
    limit = _first(asked.max_output_tokens, session.max_output_tokens, None)
    if isinstance(limit, int):
        body["max_tokens"] = limit
    return body


def spoken_arguments(wanted: MakeReply, name: str) -> list[str]:
    """The arguments of a tool that are said aloud, in the order of their declaration."""
    for tool in _first(wanted.asked.tools, wanted.session.tools, ()):
        if tool.get("name") == name:
            return [key for key, schema in _properties(tool).items() if _is_spoken(schema)]
    return []


def _messages(wanted: MakeReply, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    prompt = _prompt(wanted.session, wanted.asked, tools)
    return [{"role": "system", "content": prompt}, *_conversation(wanted.history)]


def _prompt(session: Session, asked: ResponseParams, tools: Sequence[Mapping[str, Any]]) -> str:
    parts = [_first(asked.instructions, session.instructions, ""), _ON_THE_PHONE]
    if any(_is_spoken(schema) for tool in tools for schema in _properties(tool).values()):
        parts.append(_ALOUD)
    if session.poly_response_language:
        parts.append(f"Speak this language: {session.poly_response_language}.")
    topics = session.poly_knowledge or ()
    parts += [f"What you know about {topic.get('name')}: {topic.get('content')}" for topic in topics]
    return "\n\n".join(part.strip() for part in parts if part and part.strip())


def _conversation(history: Sequence[HistoryItem]) -> list[dict[str, Any]]:
    outputs = dict(_answered_in_time(history))
    beside = dict(_said_beside(history, outputs))
    messages: list[dict[str, Any]] = []
    for at, item in enumerate(history):
        match item:
            case CallerSaid(text=text) if text:
                messages.append({"role": "user", "content": text})
            case AgentSaid(text=text) if text and at not in beside.values():
                messages.append({"role": "assistant", "content": text})
            case SystemNote(text=text):
                messages.append({"role": "system", "content": text})
            case ToolRequested():
                said, output = beside.get(at), outputs.get(at)
                messages += _called(
                    item, history[said] if said is not None else None, history[output] if output is not None else None
                )
            case ToolAnswered() if at not in outputs.values():
                messages.append({"role": "system", "content": _late(item, history)})
    return messages


def _answered_in_time(history: Sequence[HistoryItem]) -> Iterable[tuple[int, int]]:
    """Of each call whose output came before the caller spoke again: its place, and the output's."""
    for at, item in enumerate(history):
        if isinstance(item, ToolRequested):
            for later in range(at + 1, len(history)):
                answer = history[later]
                if isinstance(answer, ToolAnswered) and answer.tool_call_id == item.tool_call_id:
                    yield at, later
                if isinstance(answer, CallerSaid | SystemNote):
                    break


def _said_beside(history: Sequence[HistoryItem], outputs: Mapping[int, int]) -> Iterable[tuple[int, int]]:
    """Of each call that something was spoken beside: its place, and that of the speech, right behind it or before."""
    taken = -1
    for at, item in enumerate(history):
        if isinstance(item, ToolRequested):
            for near in (at + 1, at - 1):
                is_there = taken < near < len(history) and outputs.get(at) != near
                if is_there and isinstance(history[near], AgentSaid):
                    taken = near
                    yield at, near
                    break


def _called(call: ToolRequested, said: HistoryItem | None, answer: HistoryItem | None) -> list[dict[str, Any]]:
    function = {"name": call.name, "arguments": msgspec.json.encode(call.arguments).decode()}
    calls = [{"id": call.tool_call_id, "type": "function", "function": function}]
    text = (said.text if isinstance(said, AgentSaid) else "") or None
    output = answer.output if isinstance(answer, ToolAnswered) else STILL_RUNNING
    return [
        {"role": "assistant", "content": text, "tool_calls": calls},
        {"role": "tool", "tool_call_id": call.tool_call_id, "content": output},
    ]


def _late(answer: ToolAnswered, history: Sequence[HistoryItem]) -> str:
    calls = (item for item in history if isinstance(item, ToolRequested) and item.tool_call_id == answer.tool_call_id)
    call = next(calls, None)
    return f"The output of {call.name if call else 'a function'} ({answer.tool_call_id}): {answer.output}"


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A function as chat endpoints declare it; of an argument that is said aloud its description says so."""
    function = {key: value for key, value in tool.items() if key in ("name", "description", "parameters")}
    if properties := _properties(tool):
        told = {key: _plain(schema) if _is_spoken(schema) else schema for key, schema in properties.items()}
        function["parameters"] = {**function["parameters"], "properties": told}
    return {"type": "function", "function": function}


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in schema.items() if key != SPOKEN_KEY}
    return {**kept, "description": f"{kept.get('description', '')} (said aloud to the caller)".strip()}


def _properties(tool: Mapping[str, Any]) -> dict[str, Any]:
    parameters = tool.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    return properties if isinstance(properties, dict) else {}


def _is_spoken(schema: object) -> bool:
    return isinstance(schema, dict) and schema.get(SPOKEN_KEY) is True


def _choice(choice: Any) -> Any:
    """A tool choice as chat endpoints spell it."""
    is_named = isinstance(choice, dict) and choice.get("type") == "function" and "name" in choice
    return {"type": "function", "function": {"name": choice["name"]}} if is_named else choice


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
