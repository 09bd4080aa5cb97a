"""The sound card of this machine: a microphone for the caller, a loudspeaker or headphones for the agent.

PortAudio asks for 20 ms both ways at once, on a thread of its own. What it calls there only copies, under a lock that
either side holds for microseconds; the event loop is woken for the rest:

```
card's thread                                               event loop
microphone ──> [ waits, 5 s at most ] ──> canceller ──> on_frame
loudspeaker <── [ player ] <─────────────────────────── play
       │         └ clear empties it, at once
       └ took so much of an item ─────────────────────> on_played
```

Played is what the card took; how long that is under way to the ear the card says itself (``latency_ms``). While the
event loop is busy the agent's voice goes on, and nothing of the caller is lost for 5 s. On loudspeakers the agent would
hear itself, so there its voice is taken out of the microphone; see `callwright.audio.echo`.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

import numpy as np

from callwright.audio.echo import CANCELS, Canceller, NoCanceller, OutputDevice
from callwright.audio.echo_kalman import KalmanCanceller
from callwright.audio.formats import FRAME_MS, PCM16_24K
from callwright.audio.levels import level_dbfs
from callwright.core.ports import PlayedReports
from callwright.errors import LineFailed, UsageError, how_to_install
from callwright.ids import ItemId, MarkId, Ms
from callwright.lines.player import Player

if TYPE_CHECKING:
    from callwright.core.ports import LineSink

_log = logging.getLogger(__name__)

WAITING_MS_MAX: Final[Ms] = 5_000
"""How much of the microphone waits for a busy event loop; the oldest is dropped first, and counted."""
ASKED_LATENCY_MS: Final[Ms] = 80
"""What the card is asked for; it says itself what it has. With 40 a sound server's loudspeaker runs dry before its
microphone begins, and PortAudio 19.6 ends the stream by that."""

_FRAME_SAMPLES: Final = PCM16_24K.samples_of(PCM16_24K.frame_bytes)

Named: TypeAlias = int | str
"""A device by its number, or by a part of its name."""


class Stream(Protocol):
    """What is used of ``sounddevice.RawStream``."""

    @property
    def latency(self) -> tuple[float, float]:
        """From the microphone, and to the loudspeaker, in seconds."""

    def start(self) -> None:
        """Begin to call."""

    def stop(self) -> None:
        """Play what the card has taken, and call no more."""

    def close(self) -> None:
        """Let go of the card."""


class PortAudio(Protocol):
    """What is used of the module ``sounddevice``, which speaks to PortAudio."""

    @property
    def PortAudioError(self) -> type[Exception]:  # noqa: N802
        """What it raises."""

    def RawStream(self, **settings: Any) -> Stream:  # noqa: N802
        """Take a card."""

    def query_devices(self, device: Named | None = None, kind: str | None = None) -> Any:
        """All devices, or one, as mappings."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device as PortAudio tells of it."""

    number: int
    name: str
    inputs: int
    """Channels of its microphones."""
    outputs: int
    """Channels of its loudspeakers."""

    @property
    def directions(self) -> str:
        """What it can serve, in words."""
        has = {"microphone": self.inputs, "loudspeaker": self.outputs}
        return " and ".join(name for name, channels in has.items() if channels)


@dataclass(slots=True)
class Glitches:
    """How often card and process missed each other in one call."""

    microphone_lost: int = 0
    """The card had to throw samples of the microphone away: it was not called in time."""
    loudspeaker_dry: int = 0
    """The loudspeaker had nothing to play for the same reason."""
    frames_dropped: int = 0
    """Frames of the caller that waited for the event loop for longer than `WAITING_MS_MAX`."""

    def __str__(self) -> str:
        found = [f"{name.replace('_', ' ')} {count}" for name, count in asdict(self).items() if count]
        return ", ".join(found)


def sound_card(
    *,
    speakers: bool = False,
    device: Named | Sequence[Named] | None = None,
    reaches_person: bool = False,
    portaudio: PortAudio | None = None,
) -> SoundCard:
    """A line to this machine's microphone and loudspeaker; the card is taken at once, and carries audio once it opens.

    ``speakers`` says that the agent is heard through loudspeakers: its echo is then taken out of the microphone. On
    headphones (False) that would only harm the caller's voice. ``device`` is a number or a part of a name, or two of
    them; each serves the directions that it has, and the system's default the rest. ``reaches_person`` is True where
    others than whoever runs the program speak into it. ``portaudio`` stands in for the module ``sounddevice``.

    Raises UsageError if ``sounddevice`` or PortAudio is not installed or there is no such device, and LineFailed if the
    card does not open.
    """
    output = OutputDevice.SPEAKERS if speakers else OutputDevice.HEADPHONES
    named = (device,) if isinstance(device, (int, str)) else tuple(device or ())
    return SoundCard(portaudio or load_portaudio(), output, named, reaches_person=reaches_person)


def load_portaudio() -> PortAudio:
    """The module ``sounddevice``. Raises UsageError with what to install."""
    try:
        return cast(PortAudio, importlib.import_module("sounddevice"))
    except ModuleNotFoundError as problem:
        raise UsageError(f"the sound card needs the package sounddevice: {how_to_install('mic')}") from problem
    except OSError as problem:
        raise UsageError(
            f"the sound card needs PortAudio ({problem}): apt install libportaudio2 on Debian and Ubuntu,"
            " dnf install portaudio on Fedora, brew install portaudio on macOS"
        ) from problem


def devices(portaudio: PortAudio | None = None) -> tuple[Device, ...]:
    """All devices that there are. Raises UsageError as ``load_portaudio``."""
    return tuple(map(_device, (portaudio or load_portaudio()).query_devices()))


def default_devices(portaudio: PortAudio | None = None) -> tuple[Device, Device]:
    """The microphone and the loudspeaker of whoever names none. Raises LineFailed where there is none, and as above."""
    return _pick(portaudio or load_portaudio(), ())


class SoundCard:
    """A `Line` through the sound card; ``sound_card`` makes it. Used with ``async with`` it is let go of for certain.

    It serves one call. It ends when ``hang_up`` is called, or when the card goes away.
    """

    input_format = output_format = PCM16_24K
    reports = PlayedReports.PULLED

    def __init__(
        self, portaudio: PortAudio, output: OutputDevice, named: Sequence[Named], *, reaches_person: bool
    ) -> None:
        """Takes the card. Raises as ``sound_card`` does."""
        self.output = output
        """What the agent is heard through; it decides about the canceller."""
        self.reaches_person = reaches_person
        self.microphone, self.loudspeaker = _pick(portaudio, named)
        self.canceller: Canceller = KalmanCanceller(PCM16_24K.rate_hz) if CANCELS[output] else NoCanceller()
        self._exchange = _Exchange()
        self._failure = portaudio.PortAudioError
        self._loop: asyncio.AbstractEventLoop
        self._sink: LineSink | None = None
        self._heard = b""
        try:
            self._stream: Stream | None = portaudio.RawStream(
                samplerate=PCM16_24K.rate_hz,
                blocksize=_FRAME_SAMPLES,
                device=(self.microphone.number, self.loudspeaker.number),
                channels=1,
                dtype="int16",
                latency=ASKED_LATENCY_MS / 1000,
                callback=self._called,
                finished_callback=self._finished,
            )
        except portaudio.PortAudioError as problem:
            raise LineFailed(
                f"{self._names} will not carry {PCM16_24K.rate_hz} Hz, mono ({problem}): choose another device;"
                " the system's default converts what the card cannot do itself"
            ) from problem
        self.latency_ms: Ms = round(self._stream.latency[1] * 1000)
        """To the ear, as the card says."""

    async def __aenter__(self) -> SoundCard:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.hang_up()

    @property
    def glitches(self) -> Glitches:
        """What went wrong so far."""
        return self._exchange.glitches

    @property
    def level_dbfs(self) -> int:
        """How loud the latest frame was that was handed on: what the agent hears of the microphone."""
        return level_dbfs(np.frombuffer(self._heard, np.int16))

    async def open(self, sink: LineSink) -> None:
        """Begin to carry audio both ways. Raises LineFailed."""
        if self._sink is not None or self._stream is None:
            raise LineFailed("a sound card serves one call: make another with sound_card()")
        self._loop = asyncio.get_running_loop()
        self._sink = sink
        try:
            self._stream.start()
        except self._failure as problem:
            self._sink = None
            await self.hang_up()
            raise LineFailed(f"{self._names} did not start ({problem}); does another program hold it?") from problem

    def play(self, item_id: ItemId, generation: int, audio: bytes) -> None:
        """Queue audio. Raises AudioFormatError for a part of a sample, LineFailed for more than the player holds."""
        if self._sink is not None:
            self._exchange.put(item_id, generation, audio)

    def mark(self, mark_id: MarkId) -> None:
        """Raises LineFailed: a sound card tells what it takes."""
        raise LineFailed("a sound card has no marks: it reports what it takes")

    def clear(self) -> None:
        """Drop at once whatever the card has not taken."""
        self._exchange.clear()

    async def hang_up(self) -> None:
        """End the line, and let go of the card once it has played what it took; idempotent."""
        was_open = self._sink is not None
        self._close("agent", "hung up")
        stream, self._stream = self._stream, None
        if stream is None:
            return
        try:
            if was_open:  # stopped sooner, a sound server drops the end of the goodbye
                await asyncio.sleep(self.latency_ms / 1000)
        finally:
            await asyncio.get_running_loop().run_in_executor(None, _let_go, stream)

    # Called on the card's thread

    def _called(self, microphone: Any, loudspeaker: Any, _samples: int, _time: object, status: Any) -> None:
        loudspeaker[:], is_first = self._exchange.swap(bytes(microphone), status)
        if is_first:
            self._loop.call_soon_threadsafe(self._woken)

    def _finished(self) -> None:
        if self._sink is not None:
            self._loop.call_soon_threadsafe(self._close, "fault", f"{self._names} has stopped: was it unplugged?")

    # On the event loop

    def _woken(self) -> None:
        frames, played = self._exchange.take()
        for near, far in frames:
            if self._sink is not None:
                self._heard = self._cancelled(near, far)
                self._sink.on_frame(self._heard)
        for (item_id, generation), played_ms in played.items():
            if self._sink is not None:
                self._sink.on_played(item_id, generation, played_ms)

    def _cancelled(self, near: bytes, far: bytes) -> bytes:
        samples = self.canceller.process(np.frombuffer(near, np.int16), np.frombuffer(far, np.int16))
        return samples.tobytes()

    def _close(self, by: str, reason: str) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            self._exchange.clear()
            if str(self.glitches):
                _log.warning("%s: %s", self._names, self.glitches)
            sink.on_closed(by, reason)

    @property
    def _names(self) -> str:
        return " and ".join(dict.fromkeys([self.microphone.name, self.loudspeaker.name]))


class _Exchange:
    """What lies between the card's thread and the event loop. Each method holds the lock for microseconds."""

    def __init__(self) -> None:
        self.glitches = Glitches()
        self._lock = Lock()
        self._player = Player(PCM16_24K, self._took)
        self._frames: deque[tuple[bytes, bytes]] = deque(maxlen=WAITING_MS_MAX // FRAME_MS)
        """What the microphone brought, beside what the loudspeaker was handed in the same time."""
        self._played: dict[tuple[ItemId, int], Ms] = {}
        """What the card took since the event loop last asked."""

    def swap(self, near: bytes, status: Any) -> tuple[bytes, bool]:
        """Leave a frame of the microphone; the loudspeaker's next, and whether the event loop has to be woken."""
        with self._lock:
            far = self._player.take()
            is_first = not self._frames
            self.glitches.frames_dropped += len(self._frames) == self._frames.maxlen
            self.glitches.microphone_lost += bool(status.input_overflow)
            self.glitches.loudspeaker_dry += bool(status.output_underflow)
            self._frames.append((near, far))
            return far, is_first

    def take(self) -> tuple[Sequence[tuple[bytes, bytes]], Mapping[tuple[ItemId, int], Ms]]:
        """All frames that wait, and what was played."""
        with self._lock:
            frames, played = tuple(self._frames), self._played
            self._frames.clear()
            self._played = {}
            return frames, played

    def put(self, item_id: ItemId, generation: int, audio: bytes) -> None:
        with self._lock:
            self._player.put(item_id, generation, audio)

    def clear(self) -> None:
        with self._lock:
            self._player.clear()

    def _took(self, item_id: ItemId, generation: int, played_ms: Ms) -> None:
        self._played[item_id, generation] = played_ms


def _let_go(stream: Stream) -> None:
    stream.stop()
    stream.close()


def _device(told: Mapping[str, Any]) -> Device:
    return Device(told["index"], told["name"], told["max_input_channels"], told["max_output_channels"])


def _pick(portaudio: PortAudio, named: Sequence[Named]) -> tuple[Device, Device]:
    """The microphone and the loudspeaker: of the devices named, each for what it has; else the system's default."""
    chosen = [_find(portaudio, name) for name in named]
    microphone = next((device for device in chosen if device.inputs), None) or _default(portaudio, "input")
    loudspeaker = next((device for device in chosen if device.outputs), None) or _default(portaudio, "output")
    return microphone, loudspeaker


def _find(portaudio: PortAudio, name: Named) -> Device:
    try:
        return _device(portaudio.query_devices(name))
    except (portaudio.PortAudioError, ValueError) as problem:
        there = ", ".join(f"{device.number} {device.name}" for device in devices(portaudio)) or "none"
        raise UsageError(f"there is no such sound device: {name} ({problem}); there are: {there}") from problem


def _default(portaudio: PortAudio, kind: str) -> Device:
    try:
        return _device(portaudio.query_devices(None, kind))
    except (portaudio.PortAudioError, ValueError) as problem:
        what = "microphone" if kind == "input" else "loudspeaker"
        raise LineFailed(f"there is no {what} here ({problem}); is one plugged in, and may you use it?") from problem
