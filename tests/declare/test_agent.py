"""Which model an agent speaks with is said once, where it is declared."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from tests.wire.official import assert_official_client

import callwright as cw
from callwright.audio.formats import PCMA_8K, PCMU_8K
from callwright.errors import DeclarationError
from callwright.runtime.modelside import configuration
from callwright.wire.codec import encode
from callwright.wire.profiles import OPENAI, PLAIN, POLYAI


def desk(model: cw.ModelChoice) -> cw.Agent:
    agent = cw.Agent("desk", model=model, instructions="Be brief.")

    @agent.tool
    async def look_up(ctx: cw.Context[None], surname: str, holding: cw.Spoken) -> cw.Facts:
        """Look it up."""
        return {}

    return agent


def test_each_provider_has_its_profile() -> None:
    assert cw.polyai().profile == POLYAI
    assert cw.openai().profile == OPENAI
    assert cw.plain().profile == PLAIN


def test_the_model_is_named_in_the_address() -> None:
    assert cw.openai().profile.address() == "wss://api.openai.com/v1/realtime?model=gpt-realtime-2"
    chosen = cw.openai(model="gpt-realtime-2.1", url="ws://localhost/v1/realtime?a=b")
    assert chosen.profile.address(chosen.url) == "ws://localhost/v1/realtime?a=b&model=gpt-realtime-2.1"
    assert chosen.profile.address("ws://x/?model=mine") == "ws://x/?model=mine"
    assert cw.polyai().profile.address() == "wss://api.studio.poly.ai/v1/realtime"


def test_turn_detection_is_in_the_providers_own_words() -> None:
    detection = {"type": "semantic_vad", "eagerness": "low", "create_response": True}
    update = configuration(desk(cw.openai(turn_detection=detection)), PCMA_8K)
    assert json.loads(encode(update))["session"]["audio"]["input"]["turn_detection"] == detection
    assert_official_client(update)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (cw.ModelChoice("acme"), "no provider 'acme'; providers: polyai, openai, plain"),
        (cw.openai(turn_detection={"eagerness": "low"}), "turn_detection .* missing required field `type`"),
    ],
)
def test_what_does_not_exist_is_a_mistake_in_the_declaration(choice: cw.ModelChoice, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        _ = choice.profile


def test_the_callers_words_are_asked_for_where_they_do_not_come_by_themselves() -> None:
    asked = json.loads(encode(configuration(desk(cw.openai()), PCMU_8K)))["session"]["audio"]["input"]
    assert asked["transcription"] == {"model": "gpt-transcribe"}
    for model in (cw.polyai(), cw.plain()):
        assert b"transcription" not in encode(configuration(desk(model), PCMU_8K))


def test_c148_the_language_is_told_where_it_is_known() -> None:
    """Without it a short word may be written down, and answered, in any language."""
    openai, polyai = (
        json.loads(encode(configuration(desk(model), PCMU_8K)))["session"]
        for model in (cw.openai(language="en"), cw.polyai(language="pt-BR"))
    )
    assert openai["audio"]["input"]["transcription"] == {"model": "gpt-transcribe", "language": "en"}
    assert polyai["poly_response_language"] == "pt-BR"
    assert b"anguage" not in encode(configuration(desk(cw.openai()), PCMU_8K))
    assert b"anguage" not in encode(configuration(desk(cw.polyai()), PCMU_8K))


def test_where_no_argument_is_spoken_the_model_is_asked_to_say_it_first() -> None:
    update = configuration(desk(cw.openai()), PCMU_8K)
    (tool,) = json.loads(encode(update))["session"]["tools"]
    holding = tool["parameters"]["properties"]["holding"]
    assert holding == {
        "type": "string",
        "description": "Say exactly this aloud to the caller first, then call the tool in the same response.",
    }
    assert tool["parameters"]["required"] == ["surname", "holding"]
    assert_official_client(update)


def declared(**notices: Any) -> cw.Agent:
    return cw.Agent("desk", model=cw.polyai(), instructions="Be brief.", **notices)


def test_an_agent_without_notices_is_told_its_instructions_and_nothing_else() -> None:
    assert declared().briefing == "Be brief."
    assert declared().tools == {}


def test_the_notices_stand_behind_the_instructions_in_the_order_in_which_they_are_said() -> None:
    told = declared(ai_notice="a machine", recording="not_required", recording_notice="we record this").briefing
    assert told.startswith("Be brief.\nIn your first reply, before anything else, say these words")
    assert told.index('"a machine"') < told.index('"we record this"')
    assert "objects" not in told


def test_consent_brings_the_tool_by_which_an_objection_is_told() -> None:
    agent = declared(recording=cw.Recording.CONSENTED, recording_notice="this call is recorded")
    assert list(agent.tools) == ["stop_recording"]
    assert "If he objects, then or later, call stop_recording." in agent.briefing
    assert list(replace(agent, model=cw.openai()).tools) == ["stop_recording"]
    with pytest.raises(DeclarationError, match="has a tool stop_recording already"):

        @agent.tool
        async def stop_recording(ctx: cw.Context[None]) -> cw.Facts:
            """Stop."""
            return {}


@pytest.mark.parametrize(
    ("notices", "message"),
    [
        ({"opens_after_ms": 0}, "opens_after_ms is a time above 0, or None; got 0"),
        ({"ai_notice": ""}, "ai_notice is the words that the caller has to hear; got ''"),
        ({"ai_notice": "?!"}, "ai_notice is the words"),
        ({"recording": "not_required", "recording_notice": 3}, "recording_notice is the words"),
        ({"recording": "yes"}, "recording is 'consented', 'not_required' or None"),
        ({"recording": "consented"}, "recording with consent needs a recording_notice"),
        ({"recording_notice": "we record this"}, "recording_notice tells of a recording"),
    ],
)
def test_a_notice_that_cannot_be_given_is_refused_with_its_place(notices: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=rf"test_agent\.py:\d+: agent 'desk': {re.escape(message)}"):
        declared(**notices)
