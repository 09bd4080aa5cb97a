"""Every field that a provider refuses is refused by the local server, whole update and all, and never sent by us."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.server.driving import EXACT, Client
from tests.sim.server.test_dialects import OPENAI, PLAIN
from tests.sim.server.test_replies import HOLDING, Says
from tests.wire.samples import SESSION

import callwright as cw
from callwright.audio.formats import AudioFormat, Encoding
from callwright.errors import LocalProtocolError, UsageError
from callwright.runtime.modelside import configuration
from callwright.sim.server import DIALECTS
from callwright.sim.server.telling import Names
from callwright.wire.client import ConversationItemCreate, SessionUpdate
from callwright.wire.items import FunctionCallOutputItem
from callwright.wire.objects import Session
from callwright.wire.profiles import PROFILES, Profile, check, refused_fields

SETTINGS = {"polyai": EXACT, "openai": OPENAI, "plain": PLAIN}
FULL: dict[str, Any] = msgspec.to_builtins(SESSION)
LEAVES_AS_ONE = {"tool_choice", "prompt", "reasoning", "truncation", "transcription", "voice", "format"}


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict) and not (path and path[-1] in LEAVES_AS_ONE):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    else:
        yield path


def only(path: tuple[str, ...]) -> dict[str, Any]:
    """A session that says one thing."""
    value: Any = FULL
    for name in path:
        value = value[name]
    for name in reversed(path):
        value = {name: value}
    told: dict[str, Any] = value
    if "turn_detection" in path:
        told["audio"]["input"]["turn_detection"].setdefault("type", "server_vad")
    return told


PATHS = [path for path in leaves(FULL) if path != ("type",)]
REFUSED = [
    (name, path)
    for name, profile in PROFILES.items()
    for path in PATHS
    if refused_fields(profile, msgspec.convert({"type": "realtime", **only(path)}, Session))
]


def test_the_table_has_every_field_of_a_session() -> None:
    assert {path[0] for path in PATHS} == set(Session.__struct_fields__)
    assert {"polyai", "openai", "plain"} == {name for name, _ in REFUSED}
    refused = {".".join(path) for name, path in REFUSED if name == "polyai"}
    assert {"audio.output.voice", "audio.input.noise_reduction", "reasoning", "tool_choice"} <= refused
    assert "poly_knowledge" not in refused


@pytest.mark.parametrize(
    ("name", "path"), REFUSED, ids=lambda value: value if isinstance(value, str) else ".".join(value)
)
def test_a_refused_field_voids_the_whole_update_and_is_never_sent(name: str, path: tuple[str, ...]) -> None:
    session = {"type": "realtime", "instructions": "Lost.", **only(path)}
    client = Client(settings=SETTINGS[name], is_ready=False)
    client.send("session.update", event_id="u", session=session)
    client.advance(300)
    error = client.error()
    assert (error["code"], error["event_id"]) == ("unsupported_parameter", "u")
    assert error["param"].startswith(f"session.{'.'.join(path)}")
    client.configure()
    client.wait(300)
    assert client.the("session.updated")["session"]["instructions"] == ("Lost." if path == ("instructions",) else "")
    with pytest.raises(LocalProtocolError, match=r"would refuse the whole session\.update"):
        check(PROFILES[name], SessionUpdate(session=msgspec.convert(session, Session)))


CHOICES = st.one_of(
    st.builds(
        cw.polyai,
        language=st.sampled_from([None, "pt-BR", "plain Scots"]),
        knowledge=st.dictionaries(st.sampled_from(["parking", "pool"]), st.just("Yes."), max_size=2),
    ),
    st.builds(cw.openai, language=st.sampled_from([None, "en"]), model=st.sampled_from([None, "gpt-realtime-2.1"])),
    st.builds(cw.plain),
)
RATES = st.sampled_from([8_000, 16_000, 24_000, 44_000, 48_000])
FORMATS = st.one_of(
    st.builds(AudioFormat, st.just(Encoding.PCM16), RATES),
    st.builds(AudioFormat, st.sampled_from([Encoding.PCMU, Encoding.PCMA]), st.just(8_000)),
)


@given(CHOICES, FORMATS)
def test_no_declaration_makes_an_update_that_is_refused_for_a_field(choice: cw.ModelChoice, line: AudioFormat) -> None:
    agent = cw.Agent("desk", model=choice, instructions="Be brief.")
    try:
        update = configuration(agent, line)
    except UsageError:
        return  # a format that the provider lacks
    assert refused_fields(choice.profile, update.session) == []


@pytest.mark.parametrize("name", ["openai", "plain"])
def test_topics_with_a_tools_output_are_refused_where_there_are_none(name: str) -> None:
    topics = ({"name": "a", "content": "b"},)
    client = Client(Says([HOLDING]), SETTINGS[name])
    client.say("look-up-okafor")
    call = client.until("response.function_call_arguments.done")
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "{}"}
    client.send("conversation.item.create", event_id="k", item={**output, "poly_knowledge": list(topics)})
    assert (client.error()["code"], client.error()["param"]) == ("unsupported_parameter", "item.poly_knowledge")
    client.send("conversation.item.create", item=output)
    assert len(client.of("error")) == 1  # nothing had been applied: the call has its one output now
    item = FunctionCallOutputItem(call_id="c", output="{}", poly_knowledge=topics)
    with pytest.raises(LocalProtocolError, match="takes no topics"):
        check(PROFILES[name], ConversationItemCreate(item=item))


# --- ids of tool calls


@given(st.integers(0, 2**32 - 1), st.integers(1, 1_000_000), st.sampled_from(list(PROFILES.values())))
def test_a_call_id_has_the_length_of_its_provider(tag: int, count: int, profile: Profile) -> None:
    names = Names(f"{tag:08x}")
    names.counts["call"] = count - 1
    assert (
        len(names.next("call", profile.call_id_max)) == profile.call_id_max == (37 if profile.name == "polyai" else 32)
    )


@pytest.mark.parametrize("name", DIALECTS)
def test_only_the_very_id_of_a_call_answers_it(name: str) -> None:
    client = Client(Says([HOLDING]), replace(SETTINGS[name], call_first_rate=1))
    client.say("look-up-okafor")
    call_id = client.until("response.function_call_arguments.done")["call_id"]
    assert len(call_id) == (37 if name == "polyai" else 32)
    output = {"type": "function_call_output", "output": "{}"}
    for other in (call_id[:-1], call_id[:32] if name == "polyai" else f"{call_id}0", call_id.upper()):
        client.send("conversation.item.create", item={**output, "call_id": other})
        assert client.error()["code"] == "invalid_tool_call_id"
    before = len(client.of("error"))
    client.send("conversation.item.create", item={**output, "call_id": call_id})
    assert len(client.of("error")) == before


# --- what PolyAI's sessions have besides


def test_a_rate_of_the_callers_own_is_heard_beside_the_format() -> None:
    client = Client(audio_format=AudioFormat(Encoding.PCM16, 48_000), is_ready=False)
    client.send(
        "session.update",
        session={"type": "realtime", "audio": {"input": {"format": {"type": "audio/pcm"}}}, "poly_input_rate": 48_000},
    )
    client.wait(300)
    assert client.the("session.updated")["session"]["poly_input_rate"] == 48_000
    client.say("ask-wifi")
    assert client.until("conversation.item.input_audio_transcription.completed")["transcript"].endswith("?")
    client.send("session.update", session={"type": "realtime", "poly_input_rate": 44_100})
    assert (client.error()["code"], client.error()["param"]) == ("invalid_value", "session.poly_input_rate")


def test_topics_are_kept_and_told_back() -> None:
    topics = [{"name": "parking", "content": "Valet only."}]
    client = Client(is_ready=False)
    client.configure(poly_knowledge=topics, poly_response_language="pt-BR")
    client.wait(300)
    told = client.the("session.updated")["session"]
    assert (told["poly_knowledge"], told["poly_response_language"]) == (topics, "pt-BR")
