"""What a call's record has of the wire: kinds and instants of messages, what was refused, and the replies' audio."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import numpy as np

from callwright.audio.formats import PCM, PCM16_24K
from callwright.audio.g711 import pcmu_decode
from callwright.audio.resample import resample
from callwright.sim.agents import tools_of
from callwright.sim.program.audio_socket import FORMAT
from callwright.sim.program.streamed import StreamedReplies
from callwright.sim.program.wiretap import WireTap
from callwright.sim.scenario import load_scenario
from callwright.sim.world import Options, make_session
from callwright.wire.codec import decode_server
from callwright.wire.server import ResponseDone, ResponseOutputAudioDelta

HOTEL = Path(str(resources.files("callwright.apps.hotel")))
SPEAKS = {"type": "response.create"}


def tapped(dialect: str = "openai") -> tuple[WireTap, StreamedReplies]:
    """A session that stands, at an instant that is no beginning."""
    scenario = load_scenario(HOTEL / "scenarios" / "check-in.yaml", tools_of)
    replies = StreamedReplies(FORMAT.rate_hz)
    tap = WireTap(make_session(scenario, 1, Options(dialect=dialect)), replies, PCM16_24K)
    tap.connect(1_000)
    return tap, replies


def say(tap: WireTap, at_ms: int, **event: object) -> None:
    tap.receive(json.dumps(event).encode(), at_ms)


def listen(tap: WireTap) -> bytes:
    """Let time pass until a reply is done; its audio as it was sent."""
    audio = b""
    while (due_ms := tap.next_deadline_ms()) is not None:
        tap.tick(due_ms)
        for message in tap.outgoing():
            match decode_server(message):
                case ResponseOutputAudioDelta(delta=delta):
                    audio += delta
                case ResponseDone():
                    return audio
    raise AssertionError("no reply came")


def update(output: str) -> dict[str, object]:
    return {
        "type": "session.update",
        "session": {"type": "realtime", "audio": {"output": {"format": {"type": output}}}},
    }


def ask(text: str) -> dict[str, object]:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return {"type": "conversation.item.create", "item": item}


def found_ms(replies: StreamedReplies, samples: PCM) -> int:
    """How much of what is handed over is found in a reply."""
    return sum(len(part) for name, part in replies.handed(samples) if name) * 1000 // FORMAT.rate_hz


def test_messages_are_told_by_kind_and_instant_and_the_callers_audio_is_left_out() -> None:
    tap, _ = tapped()
    say(tap, 1_500, **update("audio/pcm"))
    say(tap, 1_510, type="input_audio_buffer.append", audio="AAAA")
    say(tap, 1_520, **ask("Is there a pool?"))
    say(tap, 1_530, **SPEAKS)
    listen(tap)
    kinds = [(kind, what) for _, kind, what in tap.rows if kind != "got audio"]
    assert [what for kind, what in kinds if kind == "sent"] == [
        "session.update",
        "conversation.item.create",
        "response.create",
    ]
    told = [what for kind, what in kinds if kind == "got"]
    assert (told[0], told[-1]) == ("session.created", "response.done")
    assert [at_ms for at_ms, kind, what in tap.rows if what == "response.create"] == [1_530]
    assert tap.ready_ms
    assert tap.refused == []


def test_what_the_server_refuses_is_told() -> None:
    tap, _ = tapped()
    say(tap, 1_500, type="conversation.item.delete", item_id="none")
    say(tap, 1_500, type="no.such.event")
    tap.outgoing()
    assert len(tap.refused) == 2
    assert "none" in tap.refused[0]


def test_how_long_a_client_was_connected_is_bounded_by_the_call() -> None:
    tap, _ = tapped()
    assert tap.connected_between(3_000, 9_000) == 6_000
    tap.disconnect(5_000)
    assert tap.connected_between(3_000, 9_000) == 2_000
    assert tap.connected_between(6_000, 9_000) == 0


def test_a_reply_in_another_format_is_known_as_the_line_has_it() -> None:
    tap, replies = tapped()
    say(tap, 1_500, **update("audio/pcmu"))
    say(tap, 1_510, **ask("Is there a pool?"))
    say(tap, 1_520, **SPEAKS)
    sound = resample(pcmu_decode(listen(tap)), 8_000, FORMAT.rate_hz)
    length_ms = len(sound) * 1000 // FORMAT.rate_hz
    assert length_ms > 1_000
    assert found_ms(replies, np.concatenate((np.zeros(2_400, np.int16), sound))) > 0.9 * length_ms
