"""A realtime server that follows a script to the letter, for tests of clients.

```python
model = ScriptedModel(
    emit(SessionCreated(session=Session())),
    expect("session.update", session={"audio": {"input": {"format": {"type": "audio/pcmu"}}}}),
    after(50),
    emit(SessionUpdated(session=Session())),
    expect("response.create"),
    emit(ErrorEvent(error=ErrorDetail(message="no"))),
    close(4408, "idle"),
)
connector = MemoryConnector(lambda: model)
...
model.finish()
```

It is strict. An event of the client that the script does not expect at this point fails at once: ``ScriptError`` is
raised where the client sent it, and again by ``finish``. So do steps that are left over at the end. The caller's audio
is passed over and counted, unless the script expects it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import EllipsisType
from typing import NoReturn, TypeAlias

import msgspec

from callwright.audio.formats import PCM16_24K, parse_format
from callwright.errors import RemoteProtocolError, ScriptError
from callwright.ids import Ms
from callwright.wire.client import InputAudioBufferAppend, SessionUpdate
from callwright.wire.codec import decode_client, encode, wire_type
from callwright.wire.objects import Session
from callwright.wire.server import ServerEvent

APPEND = "input_audio_buffer.append"


@dataclass(frozen=True, slots=True)
class Expect:
    """The client sends an event of this type next; see ``expect``."""

    kind: str
    fields: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"expects {self.kind}"


@dataclass(frozen=True, slots=True)
class Emit:
    """The server sends an event."""

    data: bytes

    def __str__(self) -> str:
        return f"emits {_shortened(self.data)}"


@dataclass(frozen=True, slots=True)
class After:
    """The server lets time pass."""

    ms: Ms

    def __str__(self) -> str:
        return f"waits {self.ms} ms"


@dataclass(frozen=True, slots=True)
class Close:
    """The server closes the connection."""

    code: int
    reason: str

    def __str__(self) -> str:
        return f"closes with {self.code}"


Step: TypeAlias = Expect | Emit | After | Close


def expect(kind: str, **fields: object) -> Expect:
    """The client's next event is of the wire type ``kind`` and has these fields, and maybe more.

    Within an object the same holds: its named fields must be equal. ``...`` stands for any value that is there.
    """
    return Expect(kind, fields)


def emit(event: ServerEvent | Mapping[str, object] | bytes) -> Emit:
    """The server sends this: an event, a JSON object, or bytes as they are (to be wrong on purpose)."""
    if isinstance(event, bytes):
        return Emit(event)
    return Emit(msgspec.json.encode(event) if isinstance(event, Mapping) else encode(event))


def after(ms: Ms) -> After:
    """The next step comes ``ms`` milliseconds later; an event expected next may come meanwhile."""
    return After(ms)


def close(code: int = 1000, reason: str = "") -> Close:
    """The server closes the connection with this WebSocket code."""
    return Close(code, reason)


class ScriptedModel:
    """Plays one script on one connection; give it to ``MemoryConnector``. ``ignoring`` are event types passed over."""

    def __init__(self, *steps: Step, ignoring: Collection[str] = (APPEND,)) -> None:
        self._steps = steps
        self._ignoring = ignoring
        self._at = 0
        self._until_ms: Ms | None = None
        self._is_met = False  # the expected event came, possibly during a wait before its step
        self._failure: ScriptError | None = None
        self._outgoing: list[bytes] = []
        self._audio_bytes = 0
        self._format = PCM16_24K
        self.closing: tuple[int, str] | None = None
        """Close code and reason, once the script or the client has closed."""

    @property
    def audio_ms(self) -> Ms:
        """The caller's audio since the last ``session.update`` that set its format, in that format."""
        return self._format.ms_of(self._audio_bytes)

    def finish(self) -> None:
        """Raise ``ScriptError`` if the client did anything unexpected, or if steps are left over."""
        if self._failure is not None:
            raise self._failure
        if self._at < len(self._steps):
            raise ScriptError(f"{self._where(self._at)}; nothing more came, and the script is not at its end")

    # --- the server's side of a connection

    def connect(self, now_ms: Ms) -> None:
        """A client connects."""
        self._go_on(now_ms)

    def disconnect(self, now_ms: Ms) -> None:
        """The client closes; steps that are left over are found by ``finish``."""
        self.closing = self.closing or (1000, "")

    def tick(self, now_ms: Ms) -> None:
        """Go on after a wait."""
        if self._until_ms is not None and now_ms >= self._until_ms:
            due_ms, self._until_ms = self._until_ms, None
            self._at += 1
            self._go_on(due_ms)

    def next_deadline_ms(self) -> Ms | None:
        """The end of a wait."""
        return None if self.closing else self._until_ms

    def outgoing(self) -> list[bytes]:
        """What the server sent since the last time."""
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def receive(self, data: bytes, now_ms: Ms) -> None:
        """Compare what the client sent with the script. Raises ``ScriptError`` where they differ."""
        self.tick(now_ms)
        if self.closing is not None:
            return
        try:
            event = decode_client(data)
        except RemoteProtocolError as error:
            self._fail(f"{self._where(self._at)}; the client sent what no server takes: {error}")
        if isinstance(event, InputAudioBufferAppend):
            self._audio_bytes += len(event.audio)
        kind = wire_type(event)
        wanted_at = self._wanted_at()
        wanted = self._steps[wanted_at] if wanted_at < len(self._steps) else None
        if isinstance(wanted, Expect) and wanted.kind == kind and not self._is_met:
            self._compare(wanted_at, wanted, msgspec.json.decode(data))
            if isinstance(event, SessionUpdate):
                self._note_format(event)
            self._is_met = True
            self._go_on(now_ms)
        elif kind not in self._ignoring:
            self._fail(f"{self._where(wanted_at)}; the client sent {_shortened(data)}")

    # --- the script

    def _go_on(self, now_ms: Ms) -> None:
        """Take the steps up to one that has to be waited for."""
        while self._until_ms is None and self.closing is None and self._at < len(self._steps):
            step = self._steps[self._at]
            match step:
                case Emit():
                    self._outgoing.append(step.data)
                case Close():
                    self.closing = step.code, step.reason
                case After():
                    self._until_ms = now_ms + step.ms
                    return
                case Expect():
                    if not self._is_met:
                        return
                    self._is_met = False
            self._at += 1

    def _wanted_at(self) -> int:
        """The step that an event which comes now has to meet: the present one, or the one after a wait."""
        at = self._at
        while at < len(self._steps) and isinstance(self._steps[at], After):
            at += 1
        return at

    def _compare(self, at: int, wanted: Expect, sent: object) -> None:
        for path, expected, actual in _differences(wanted.fields, sent, wanted.kind):
            self._fail(f"{self._where(at)}: {path}: expected {expected!r}, got {actual}")

    def _note_format(self, event: SessionUpdate) -> None:
        session = event.session
        audio = session.audio if isinstance(session, Session) else None
        if audio is not None and audio.input is not None and audio.input.format is not None:
            self._format = parse_format(msgspec.to_builtins(audio.input.format))
            self._audio_bytes = 0

    def _where(self, at: int) -> str:
        if at >= len(self._steps):
            return f"after the last of {len(self._steps)} steps"
        return f"step {at + 1} of {len(self._steps)} {self._steps[at]}"

    def _fail(self, message: str) -> NoReturn:
        self._failure = self._failure or ScriptError(message)
        raise self._failure


def _differences(wanted: object, sent: object, path: str) -> Sequence[tuple[str, object, str]]:
    """Where what was sent lacks, or differs from, what is wanted: path, wanted, and what is there instead."""
    if isinstance(wanted, EllipsisType):
        return ()
    if isinstance(wanted, Mapping) and isinstance(sent, Mapping):
        found: list[tuple[str, object, str]] = []
        for name, inner in wanted.items():
            if name in sent:
                found += _differences(inner, sent[name], f"{path}.{name}")
            else:
                found.append((f"{path}.{name}", inner, "nothing"))
        return found
    return () if wanted == sent else ((path, wanted, repr(sent)),)


def _shortened(data: bytes, limit: int = 200) -> str:
    text = data.decode(errors="replace")
    return text if len(text) <= limit else f"{text[:limit]}..."
