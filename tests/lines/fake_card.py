"""A sound card without hardware: the part of the module ``sounddevice`` that a line uses, with a caller at its far end.

```
ms      0        20        40        60
far end |frame 0 |frame 1  |frame 2  |         is handed to the callback when it is over
card             call 1    call 2    call 3    what a call returns is at the ear ``latency_ms`` later
```

A call that is ``missed`` is one for which the process had no time: that frame of the microphone is gone, the
loudspeaker is silent meanwhile, and the next call is told so.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from callwright.audio.formats import FRAME_MS, PCM, PCM16_24K
from callwright.ids import ItemId, Ms
from callwright.sim.caller import silent_frame

RATE_HZ = PCM16_24K.rate_hz
SILENCE = silent_frame(RATE_HZ)

BUILT_IN: Mapping[str, Any] = {"index": 0, "name": "Built-in Audio", "max_input_channels": 2, "max_output_channels": 2}
DESK: Mapping[str, Any] = {"index": 1, "name": "Desk Microphone", "max_input_channels": 1, "max_output_channels": 0}
BOX: Mapping[str, Any] = {"index": 2, "name": "Loudspeaker Box", "max_input_channels": 0, "max_output_channels": 2}


class PortAudioError(Exception):
    """What ``sounddevice`` raises."""


class FarEnd(Protocol):
    hung_up: bool

    def step(self, now_ms: Ms, ear: PCM, item_id: ItemId | None) -> PCM: ...


class Still:
    """Nobody is there."""

    hung_up = False

    def step(self, now_ms: Ms, ear: PCM, item_id: ItemId | None) -> PCM:
        return SILENCE


@dataclass(frozen=True)
class Flags:
    """``sounddevice.CallbackFlags``."""

    input_overflow: bool = False
    output_underflow: bool = False


class FakeCard:
    """Stands in for the module ``sounddevice``. Its calls come on timers of the loop that the stream is started on."""

    PortAudioError = PortAudioError

    def __init__(
        self,
        far_end: FarEnd | None = None,
        *,
        latency_ms: Ms = 0,
        missed: Collection[int] = (),
        unplugged_ms: Ms | None = None,
        devices: Collection[Mapping[str, Any]] = (BUILT_IN, DESK, BOX),
        refuses: str = "",
    ) -> None:
        self.far_end = far_end or Still()
        self.latency_ms = latency_ms
        self.missed = missed
        self.unplugged_ms = unplugged_ms
        self.devices = list(devices)
        self.refuses = refuses
        """The name of a method of the stream that fails."""
        self.hung_up: Callable[[], object] = int
        """Called when the far end hangs up."""
        self.settings: dict[str, Any] = {}
        self.ear: list[PCM] = []
        """What was heard of the agent, frame by frame."""
        self.did: list[str] = []

    def query_devices(self, device: int | str | None = None, kind: str | None = None) -> Any:
        if device is None and kind is None:
            return self.devices
        found = [each for each in self.devices if device is None or device == each["index"] or device == each["name"]]
        if kind:
            found = [each for each in found if each[f"max_{kind}_channels"]]
        if not found:
            raise PortAudioError(f"Error querying device {-1 if device is None else device}")
        return found[0]

    def RawStream(self, **settings: Any) -> FakeStream:  # noqa: N802
        self.settings = settings
        self.fail_at("open")
        return self.make_stream()

    def make_stream(self) -> FakeStream:
        return FakeStream(self)

    def fail_at(self, what: str) -> None:
        self.did.append(what)
        if self.refuses == what:
            raise PortAudioError("Device unavailable [PaErrorCode -9985]")

    @property
    def heard(self) -> PCM:
        """All that was at the ear."""
        return np.concatenate(self.ear)


class FakeStream:
    """``sounddevice.RawStream``."""

    def __init__(self, card: FakeCard) -> None:
        self.latency = (0.01, card.latency_ms / 1000)
        self._card = card
        self._pipe = deque([SILENCE] * (card.latency_ms // FRAME_MS))
        self._at_ear: PCM = SILENCE
        self._calls = 0
        self._was_missed = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._card.fail_at("start")
        self._loop = asyncio.get_running_loop()
        self._began_s = self._loop.time()
        self._arm()

    def stop(self) -> None:
        self._card.did.append("stop")
        self.halt()
        self._card.ear += [self._at_ear, *self._pipe]  # what the card has taken is played

    def close(self) -> None:
        self._card.did.append("close")

    def halt(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _arm(self) -> None:
        self._timer = self._loop.call_at(self._began_s + (self._calls + 1) * FRAME_MS / 1000, self._tick)

    def _tick(self) -> None:
        if self.turn():
            self._arm()
        if self._card.far_end.hung_up:
            self._card.hung_up()

    def turn(self) -> bool:
        """One frame each way; False once the card is gone."""
        card, settings = self._card, self._card.settings
        now_ms = self._calls * FRAME_MS
        if card.unplugged_ms is not None and now_ms >= card.unplugged_ms:
            settings["finished_callback"]()
            return False
        self._calls += 1
        near = card.far_end.step(now_ms, self._at_ear, None)
        card.ear.append(self._at_ear)
        self._pipe.append(SILENCE if self._calls in card.missed else self._call(near))
        self._at_ear = self._pipe.popleft()
        self._was_missed = self._calls in card.missed
        return True

    def _call(self, near: PCM) -> PCM:
        settings = self._card.settings
        far = bytearray(b"\xff" * (settings["blocksize"] * 2))
        flags = Flags(self._was_missed, self._was_missed)
        settings["callback"](memoryview(near.tobytes()), memoryview(far), settings["blocksize"], None, flags)
        return np.frombuffer(far, np.int16) if any(far) else SILENCE


class ThreadedCard(FakeCard):
    """Calls from a thread of its own, by the wall clock, as PortAudio does."""

    def make_stream(self) -> FakeStream:
        return ThreadedStream(self)


class ThreadedStream(FakeStream):
    def start(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat)
        self._thread.start()

    def halt(self) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(FRAME_MS / 1000) and self.turn():
            pass
