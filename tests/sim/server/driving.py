"""A client of the pure session that speaks recorded lines: 20 ms appends on a clock that it moves by itself."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from tests.wire.official import assert_official_server

from callwright.audio.formats import PCMU_8K, AudioFormat, Encoding
from callwright.audio.g711 import pcmu_encode
from callwright.audio.resample import resample
from callwright.sim.ear import Ear
from callwright.sim.models import Clip, HistoryItem, Reply
from callwright.sim.server import ServerSession, ServerSettings
from callwright.sim.speech import RATE_HZ, Pcm, Speech
from callwright.wire.codec import encode_append

FRAME_MS = 20

EXACT = ServerSettings(
    answer_ms=(500, 500),
    asked_answer_ms=(400, 400),
    stop_told_ms=(95, 95),
    start_told_ms=(180, 180),
    barge_in_told_ms=(780, 780),
    cancelled_first_rate=0,
    transcript_last_rate=0,
    transcript_after_ms=(300, 300),
)
"""Nothing is left to chance."""


@cache
def speech() -> Speech:
    return Speech.load(files("callwright.apps.hotel") / "speech")


@cache
def ear() -> Ear:
    return Ear(speech().values())


@dataclass
class Says:
    """A model that answers with the given replies in turn, the last one again and again; remembers what it saw."""

    replies: Sequence[Reply] = (Reply((Clip("check-in-time"), Clip("check-in-bring"))),)
    saw: list[tuple[HistoryItem, ...]] = field(default_factory=list)

    def reply(self, history: Sequence[HistoryItem], rng: random.Random) -> Reply:
        self.saw.append(tuple(history))
        return self.replies[min(len(self.saw), len(self.replies)) - 1]


class Heard(dict[str, Any]):
    """One server event and when it was sent."""

    at_ms: int


class Client:
    """Drives one session. ``events`` is all that the server sent, each checked against the official types."""

    def __init__(
        self,
        model: Says | None = None,
        settings: ServerSettings = EXACT,
        *,
        seed: int = 1,
        audio_format: AudioFormat = PCMU_8K,
        is_ready: bool = True,
        hears: Ear | None = None,
    ) -> None:
        self.model = model or Says()
        self.server = ServerSession(self.model, speech(), hears or ear(), random.Random(seed), settings)
        self.now_ms = 0
        self.audio_ms = 0
        self.events: list[Heard] = []
        self.format = audio_format
        self.server.connect(0)
        if is_ready:
            self.configure()
            self.wait(300)

    # --- sending

    def send(self, kind: str, **fields: Any) -> None:
        self.send_raw(msgspec.json.encode({"type": kind, **fields}))

    def send_raw(self, data: bytes) -> None:
        self.server.receive(data, self.now_ms)
        self.collect()

    def configure(self, **session: Any) -> None:
        audio = {"input": {"format": self.format.to_wire()}}
        self.send("session.update", event_id="configure", session={"type": "realtime", "audio": audio, **session})

    def coded(self, samples: Pcm) -> bytes:
        """16 kHz samples in the line's format."""
        narrow = resample(samples, RATE_HZ, self.format.rate_hz)
        return pcmu_encode(narrow) if self.format.encoding is Encoding.PCMU else narrow.astype("<i2").tobytes()

    def play(self, samples: Pcm) -> None:
        """Samples of 16 kHz at speaking pace."""
        data = self.coded(samples)
        size = self.format.frame_bytes
        for at in range(0, len(data), size):
            self.frame(data[at : at + size].ljust(size, self.format.silence(1)[:1]))

    def frame(self, data: bytes) -> None:
        self.advance(FRAME_MS)
        self.audio_ms += FRAME_MS
        self.send_raw(encode_append(data))

    def say(self, line_id: str) -> int:
        """Speak a line; returns the instant of its first sample."""
        begun_ms = self.now_ms
        self.play(speech()[line_id].pcm)
        return begun_ms

    def wait(self, ms: int) -> None:
        """Send silence for so long."""
        silence = self.format.silence(FRAME_MS)
        for _ in range(ms // FRAME_MS):
            self.frame(silence)

    def burst(self, samples: Pcm) -> None:
        """Samples of 16 kHz all at once, in frames."""
        data = self.coded(samples)
        size = self.format.frame_bytes
        self.audio_ms += len(data) // self.format.bytes_per_ms
        for at in range(0, len(data), size):
            self.send_raw(encode_append(data[at : at + size]))

    def until(self, kind: str, *, limit_ms: int = 20_000) -> Heard:
        """Send silence until an event of this type comes."""
        before = len(self.of(kind))
        for _ in range(limit_ms // FRAME_MS):
            self.wait(FRAME_MS)
            if len(self.of(kind)) > before:
                return self.of(kind)[-1]
        raise AssertionError(f"no {kind} within {limit_ms} ms; there were {self.kinds()}")

    def advance(self, ms: int) -> None:
        """Let time pass and send nothing."""
        end_ms = self.now_ms + ms
        while (due_ms := self.server.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self.server.tick(self.now_ms)
            self.collect()
        self.now_ms = end_ms

    def collect(self) -> None:
        """Take what the server sent."""
        for data in self.server.outgoing():
            assert_official_server(data)
            event = Heard(msgspec.json.decode(data))
            event.at_ms = self.now_ms
            self.events.append(event)

    # --- looking

    def of(self, *kinds: str) -> list[Heard]:
        return [event for event in self.events if event["type"] in kinds]

    def the(self, kind: str) -> Heard:
        (event,) = self.of(kind)
        return event

    def kinds(self, *, but: str = "response.output_audio.delta") -> list[str]:
        return [event["type"] for event in self.events if event["type"] != but]

    def error(self) -> dict[str, Any]:
        """The error that came last."""
        error: dict[str, Any] = self.of("error")[-1]["error"]
        return error

    def text(self, item_id: str) -> str:
        """What the server's history holds of a message."""
        self.send("conversation.item.retrieve", item_id=item_id)
        (part,) = self.of("conversation.item.retrieved")[-1]["item"]["content"]
        text: str = part.get("transcript", part.get("text", ""))
        return text
