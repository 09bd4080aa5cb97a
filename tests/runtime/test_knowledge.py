"""Topics that a model may answer from: told to it with the session or a tool's output, and told of by its replies."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.runtime.calls import OPENING, after, calls, delta, expect, reply, started, take, written
from tests.wire.test_translate import translator

import callwright as cw
from callwright.audio.formats import AudioFormat, Encoding
from callwright.core import events as on
from callwright.errors import DeclarationError, UsageError
from callwright.ids import ResponseId
from callwright.runtime.kept import Kept, withheld
from callwright.runtime.modelside import configuration
from callwright.runtime.replay import Outcome, replay
from callwright.testing.scripted import Emit, emit
from callwright.wire import objects, server
from callwright.wire.codec import decode_server, encode

PARKING = {"parking": "Valet only, 40 dollars a night."}


def inn(model: cw.ModelChoice, **settings: Any) -> cw.Agent:
    return cw.Agent("inn", model=model, instructions="Be brief.", **settings)


def with_tool(agent: cw.Agent) -> cw.Agent:
    @agent.tool
    async def look(ctx: cw.Context[None]) -> cw.Grounded:
        """Look it up."""
        return cw.Grounded({"room": 214}, PARKING)

    @agent.tool
    async def unsaid(ctx: cw.Context[None]) -> cw.Facts:
        """Say nothing of topics in its annotation."""
        return cw.Grounded({"room": 214}, PARKING)  # type: ignore[return-value]

    return agent


def ended(topics: tuple[object, ...] | None, out_of_domain: bool | None, response_id: str = "r1") -> Emit:
    response = objects.Response(
        id=response_id, status="completed", poly_cited_topics=topics, poly_out_of_domain=out_of_domain
    )
    return emit(server.ResponseDone(response=response))


def spoken(topics: tuple[object, ...] | None, out_of_domain: bool | None) -> tuple[Any, ...]:
    return (*OPENING, started(), delta(400), written("Forty dollars."), after(400), ended(topics, out_of_domain))


def test_topics_go_with_the_session() -> None:
    agent = inn(cw.polyai(knowledge=PARKING, language="pt-BR"))
    expected = {
        "poly_knowledge": [{"name": "parking", "content": PARKING["parking"]}],
        "poly_response_language": "pt-BR",
    }
    sent = take(*spoken(None, None), agent=agent).model.of("session.update")[0]["session"]
    assert {name: sent[name] for name in sent if name.startswith("poly_")} == expected


def test_a_reply_says_what_it_rests_on() -> None:
    taken = take(*spoken(("parking", {"name": "pool", "content": "no"}), False), agent=inn(cw.polyai()))
    (turn,) = taken.result.turns
    assert (turn.heard, turn.cited_topics, turn.out_of_domain) == ("Forty dollars.", ("parking", "pool"), False)
    assert replay(taken.result.trace).outcome is Outcome.IDENTICAL


def test_a_reply_may_rest_on_nothing_or_not_say() -> None:
    (strange,) = take(*spoken(None, True), agent=inn(cw.polyai())).result.turns
    (silent,) = take(*spoken(None, None), agent=inn(cw.polyai())).result.turns
    assert (strange.cited_topics, strange.out_of_domain) == ((), True)
    assert (silent.cited_topics, silent.out_of_domain) == ((), None)


def test_topics_are_words_of_the_call_where_none_may_be_kept() -> None:
    told = on.ResponseEnded(ResponseId("r1"), on.ResponseStatus.COMPLETED, cited='["parking"]')
    assert Kept(is_kept=False).content(told)["cited"] == {"characters": 11}  # type: ignore[index]
    assert withheld("PostToolOutput", {"output": "", "knowledge": "{}"})["knowledge"] == {"characters": 2}


def test_topics_come_with_a_tools_output() -> None:
    output = {"type": "function_call_output", "call_id": "k1", "output": '{"room":214}'}
    topics = [{"name": "parking", "content": PARKING["parking"]}]
    script = (
        *OPENING,
        started(),
        calls("look"),
        expect("conversation.item.create", item={**output, "poly_knowledge": topics}),
    )
    taken = take(
        *script,
        ended(None, None),
        expect("response.create"),
        *reply("Here.", response_id="r2"),
        agent=with_tool(inn(cw.polyai())),
    )
    assert taken.result.anomalies == ()
    assert replay(taken.result.trace).outcome is Outcome.IDENTICAL


def test_a_tool_says_in_its_annotation_that_topics_come_with_its_output() -> None:
    script = (*OPENING, started(), calls("unsaid"), expect("conversation.item.create"), ended(None, None))
    taken = take(
        *script, expect("response.create"), *reply("Sorry.", response_id="r2"), agent=with_tool(inn(cw.polyai()))
    )
    assert taken.result.anomalies == ("tool unsaid raised TypeError",)
    assert json.loads(taken.model.outputs()["k1"]) == {"error": "the tool failed (TypeError)"}


@pytest.mark.parametrize("provider", ["openai", "plain"])
def test_a_provider_that_takes_none_is_told_of_as_the_agent_is_declared(provider: str) -> None:
    with pytest.raises(DeclarationError, match=f"test_knowledge.py:.*agent 'inn': {provider} takes no knowledge"):
        inn(cw.ModelChoice(provider, knowledge=PARKING))
    with pytest.raises(DeclarationError, match=rf"test_knowledge\.py:\d+: tool look returns .*and {provider} takes no"):
        with_tool(inn(cw.ModelChoice(provider)))


def test_a_model_that_is_chosen_later_is_looked_at_before_the_call() -> None:
    agent = with_tool(inn(cw.polyai()))
    agent.model = cw.openai()
    with pytest.raises(UsageError, match="agent inn: openai takes no knowledge, which tool look returns"):
        configuration(agent, AudioFormat(Encoding.PCMU, 8_000))


@pytest.mark.parametrize("knowledge", [{"parking": ""}, {"": "Yes."}, {"parking": 40}, [("parking", "Yes.")], "yes", 5])
def test_a_topic_has_a_name_and_a_content(knowledge: Any) -> None:
    with pytest.raises(DeclarationError, match="knowledge is topics, contents by name"):
        inn(cw.polyai(knowledge=knowledge))
    if not isinstance(knowledge, dict) or not all(isinstance(each, str) for each in knowledge.values()):
        with pytest.raises(UsageError, match="topics, contents by name"):
            cw.Grounded("", knowledge)


@pytest.mark.parametrize("language", ["", " ", 5])
def test_a_language_that_says_none_is_a_mistake_in_the_declaration(language: Any) -> None:
    with pytest.raises(DeclarationError, match=r"test_knowledge\.py:\d+: agent 'inn': language is a text"):
        inn(cw.polyai(language=language))


@pytest.mark.parametrize("rate_hz", [8_000, 32_000, 48_000])
def test_a_rate_outside_the_standard_ones_is_told_beside_the_format(rate_hz: int) -> None:
    line = AudioFormat(Encoding.PCM16, rate_hz)
    session = json.loads(encode(configuration(inn(cw.polyai()), line)))["session"]
    assert session["audio"]["input"]["format"] == {"type": "audio/pcm"}
    assert session["poly_input_rate"] == rate_hz
    for other in (cw.openai(), cw.plain()):
        with pytest.raises(UsageError, match=f"takes no audio/pcm at {rate_hz} Hz"):
            configuration(inn(other), line)


def test_a_session_that_tells_another_rate_is_not_the_one_that_was_asked_for() -> None:
    by = translator(AudioFormat(Encoding.PCM16, 48_000))
    heard = objects.Audio(input=objects.AudioInput(format=objects.WireFormat(type="audio/pcm")))
    for rate_hz, meant in ((48_000, on.SessionReady), (24_000, on.SessionMismatched)):
        told = server.SessionUpdated(session=objects.Session(audio=heard, poly_input_rate=rate_hz))
        assert isinstance(by.heard_from(decode_server(encode(told)))[0], meant)
