"""The line to a sound card, on a card without hardware: what it carries, what it counts, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import sys
from types import ModuleType

import numpy as np
import pytest
from tests.lines.fake_card import BOX, BUILT_IN, DESK, RATE_HZ, FakeCard, ThreadedCard

import callwright as cw
from callwright.audio.echo import NoCanceller
from callwright.audio.echo_kalman import KalmanCanceller
from callwright.audio.formats import FRAME_MS, PCM, PCM16_24K
from callwright.errors import LineFailed, UsageError
from callwright.ids import ItemId, MarkId, Ms
from callwright.lines.soundcard import WAITING_MS_MAX, SoundCard, devices, sound_card
from callwright.sim.vloop import run_virtual
from callwright.testing.lines import check_line

ITEM = ItemId("a")
FRAME_BYTES = PCM16_24K.frame_bytes


class Sink:
    """Keeps what the line reports."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.played: list[tuple[str, int, Ms]] = []
        self.ends: list[tuple[str, str]] = []
        self.came, self.closed = asyncio.Event(), asyncio.Event()

    def on_frame(self, frame: bytes) -> None:
        self.frames.append(frame)

    def on_played(self, item_id: ItemId, generation: int, played_ms: Ms) -> None:
        self.played.append((item_id, generation, played_ms))
        self.came.set()

    def on_mark(self, mark_id: MarkId) -> None:
        raise AssertionError("a sound card has no marks")

    def on_closed(self, by: str, reason: str) -> None:
        self.ends.append((by, reason))
        self.closed.set()


class Counting:
    """A far end that says the number of the frame, from 1."""

    hung_up = False

    def step(self, now_ms: Ms, ear: PCM, item_id: ItemId | None) -> PCM:
        return np.full(RATE_HZ * FRAME_MS // 1000, now_ms // FRAME_MS + 1, np.int16)


def numbers(frames: list[bytes]) -> list[int]:
    return [int(np.frombuffer(frame, np.int16)[0]) for frame in frames]


def tone(ms: Ms) -> bytes:
    return (np.arange(RATE_HZ * ms // 1000) % 97 + 1).astype(np.int16).tobytes()


@pytest.mark.parametrize("latency_ms", [0, 40, 300])
def test_it_keeps_every_rule_of_a_line(latency_ms: Ms) -> None:
    run_virtual(check_line(lambda: sound_card(portaudio=FakeCard(latency_ms=latency_ms))))


def test_a_card_that_calls_from_a_thread_of_its_own_carries_audio_both_ways_in_order() -> None:
    card = ThreadedCard(Counting())

    async def check() -> None:
        sink = Sink()
        async with sound_card(portaudio=card) as line:
            await line.open(sink)
            line.play(ITEM, 0, tone(200))
            async with asyncio.timeout(5):
                while (ITEM, 0, 200) not in sink.played:
                    sink.came.clear()
                    await sink.came.wait()
        assert numbers(sink.frames) == list(range(1, len(sink.frames) + 1))
        assert [ms for _, _, ms in sink.played] == sorted(ms for _, _, ms in sink.played)
        assert sink.ends == [("agent", "hung up")]

    asyncio.run(check())
    assert tone(200) in card.heard.tobytes()
    assert card.did == ["open", "stop", "close"]


def test_a_reply_is_at_the_ear_whole_and_reported_as_it_is_taken() -> None:
    """The report is of what the card took; its own latency is told beside it."""
    card = FakeCard(latency_ms=60)

    async def check() -> None:
        sink = Sink()
        async with sound_card(portaudio=card) as line:
            assert line.latency_ms == 60
            await line.open(sink)
            line.play(ITEM, 3, tone(50))
            await asyncio.sleep(0.041)
            assert sink.played == [(ITEM, 3, 20), (ITEM, 3, 40)]
            await asyncio.sleep(0.02)
            assert sink.played[-1] == (ITEM, 3, 50)

    run_virtual(check())
    assert card.heard.tobytes().strip(b"\0") == tone(50).strip(b"\0")
    assert not np.any(card.heard[: RATE_HZ * 80 // 1000])


def test_a_clear_leaves_the_card_nothing_but_what_it_has_taken() -> None:
    card = FakeCard()

    async def check() -> None:
        sink = Sink()
        async with sound_card(portaudio=card) as line:
            await line.open(sink)
            line.play(ITEM, 0, tone(1_000))
            await asyncio.sleep(0.205)
            line.clear()
            await asyncio.sleep(0.2)
            assert sink.played[-1] == (ITEM, 0, 200)

    run_virtual(check())
    assert np.count_nonzero(card.heard) == RATE_HZ * 200 // 1000


def test_calls_that_came_too_late_are_counted_told_and_survived(caplog: pytest.LogCaptureFixture) -> None:
    """Frames 5 to 7 of the microphone are gone, and the loudspeaker was silent meanwhile; nothing else is."""
    card = FakeCard(Counting(), missed=range(5, 8))

    async def check() -> None:
        sink = Sink()
        async with sound_card(portaudio=card) as line:
            await line.open(sink)
            line.play(ITEM, 0, tone(400))
            await asyncio.sleep(0.61)
            assert numbers(sink.frames) == [1, 2, 3, 4, *range(8, 31)]
            assert sink.played[-1] == (ITEM, 0, 400)
            assert (line.glitches.microphone_lost, line.glitches.loudspeaker_dry) == (1, 1)

    with caplog.at_level(logging.WARNING):
        run_virtual(check())
    assert np.count_nonzero(card.heard) == RATE_HZ * 400 // 1000
    assert "Built-in Audio: microphone lost 1, loudspeaker dry 1" in caplog.text


def test_a_busy_event_loop_silences_nobody_and_loses_the_oldest_words_after_five_seconds() -> None:
    """The card goes on while the loop does not: the agent's voice is whole, the microphone waits up to its bound."""
    card = FakeCard(Counting())

    async def check() -> None:
        sink = Sink()
        async with sound_card(portaudio=card) as line:
            stream = line._stream
            assert stream is not None
            line._loop, line._sink = asyncio.get_running_loop(), sink
            line.play(ITEM, 0, tone(6_000))
            for _ in range(6_000 // FRAME_MS):
                stream.turn()  # type: ignore[attr-defined]
            assert not sink.frames
            await asyncio.sleep(0)
            assert numbers(sink.frames) == list(range(51, 301))
            assert len(sink.frames) * FRAME_MS == WAITING_MS_MAX
            assert line.glitches.frames_dropped == 50
            assert sink.played == [(ITEM, 0, 6_000)]

    run_virtual(check())
    assert tone(6_000)[:-FRAME_BYTES] in card.heard.tobytes()


def test_a_card_that_is_unplugged_ends_the_line_with_the_reason() -> None:
    card = FakeCard(unplugged_ms=400)

    async def check() -> None:
        sink = Sink()
        async with sound_card(portaudio=card) as line:
            await line.open(sink)
            await sink.closed.wait()
            line.play(ITEM, 0, tone(20))
        assert len(sink.frames) == 400 // FRAME_MS
        assert sink.ends == [("fault", "Built-in Audio has stopped: was it unplugged?")]

    run_virtual(check())
    assert card.did[-1] == "close"


def test_a_line_that_was_never_opened_lets_go_of_the_card() -> None:
    card = FakeCard()

    async def check() -> None:
        async with sound_card(portaudio=card):
            pass

    run_virtual(check())
    assert card.did == ["open", "stop", "close"]


async def opened(card: FakeCard) -> SoundCard:
    line = sound_card(portaudio=card)
    await line.open(Sink())
    return line


def test_a_card_that_does_not_start_is_let_go_of() -> None:
    card = FakeCard(refuses="start")
    with pytest.raises(LineFailed, match=r"Built-in Audio did not start \(Device unavailable.*another program"):
        run_virtual(opened(card))
    assert card.did == ["open", "start", "stop", "close"]


def test_a_card_that_cannot_do_the_format_says_what_to_do() -> None:
    with pytest.raises(LineFailed, match=r"Built-in Audio will not carry 24000 Hz.*choose another device"):
        sound_card(portaudio=FakeCard(refuses="open"))


def test_a_sound_card_serves_one_call_and_has_no_marks() -> None:
    async def check() -> None:
        async with await opened(FakeCard()) as line:
            with pytest.raises(LineFailed, match="one call"):
                await line.open(Sink())
            with pytest.raises(LineFailed, match="no marks"):
                line.mark(MarkId("m"))

    run_virtual(check())


@pytest.mark.parametrize(
    ("device", "taken"),
    [(None, (0, 0)), (1, (1, 0)), ("Loudspeaker Box", (0, 2)), ((1, 2), (1, 2)), ((2, 1), (1, 2)), (0, (0, 0))],
)
def test_a_device_serves_the_directions_that_it_has(device: int | str | None, taken: tuple[int, int]) -> None:
    card = FakeCard()
    sound_card(portaudio=card, device=device)
    assert card.settings["device"] == taken
    assert (card.settings["samplerate"], card.settings["channels"], card.settings["dtype"]) == (24_000, 1, "int16")


def test_a_device_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"no such sound device: 9 .*0 Built-in Audio, 1 Desk Microphone, 2 Loud"):
        sound_card(portaudio=FakeCard(), device=9)


@pytest.mark.parametrize(("there", "what"), [((BOX,), "microphone"), ((DESK,), "loudspeaker")])
def test_a_machine_without_a_microphone_or_a_loudspeaker_says_so(there: tuple[dict[str, object]], what: str) -> None:
    with pytest.raises(LineFailed, match=f"there is no {what} here"):
        sound_card(portaudio=FakeCard(devices=there))


def test_devices_are_told_with_their_channels() -> None:
    found = [(each.number, each.name, each.inputs, each.outputs) for each in devices(FakeCard())]
    assert found == [tuple(each.values()) for each in (BUILT_IN, DESK, BOX)]


def echo_rms(*, speakers: bool) -> float:
    """How loud what the model is sent of a loudspeaker's echo is, in the third second of a reply."""

    async def check() -> float:
        sink = Sink()
        async with sound_card(portaudio=FakeCard(Echo(), latency_ms=40), speakers=speakers) as line:
            await line.open(sink)
            noise = np.random.default_rng(1).normal(0, 3_000, RATE_HZ * 3).astype(np.int16)
            line.play(ITEM, 0, noise.tobytes())
            await asyncio.sleep(3)
        samples = np.frombuffer(b"".join(sink.frames[100:]), np.int16)
        return float(np.sqrt(np.mean(samples.astype(float) ** 2)))

    return run_virtual(check())


class Echo:
    """A microphone that hears the loudspeaker at 30 %."""

    hung_up = False

    def step(self, now_ms: Ms, ear: PCM, item_id: ItemId | None) -> PCM:
        return np.rint(ear * 0.3).astype(np.int16)


def test_c034_the_canceller_runs_on_loudspeakers_and_never_on_headphones() -> None:
    """C034: on headphones it would only harm the caller's voice; the line says which it has."""
    assert echo_rms(speakers=True) < echo_rms(speakers=False) / 10
    assert isinstance(sound_card(portaudio=FakeCard(), speakers=True).canceller, KalmanCanceller)
    assert isinstance(sound_card(portaudio=FakeCard()).canceller, NoCanceller)


def test_the_level_is_that_of_the_latest_frame() -> None:
    async def check() -> None:
        async with await opened(FakeCard(Loud())) as line:
            assert line.level_dbfs == -100
            await asyncio.sleep(0.05)
            assert line.level_dbfs == -6

    run_virtual(check())


class Loud:
    hung_up = False

    def step(self, now_ms: Ms, ear: PCM, item_id: ItemId | None) -> PCM:
        return np.full(RATE_HZ * FRAME_MS // 1000, 16_384, np.int16)


def test_without_sounddevice_or_portaudio_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(UsageError, match=r"pip install 'callwright\[mic\]'"):
        cw.lines.sound_card()
    monkeypatch.delitem(sys.modules, "sounddevice")
    monkeypatch.setattr(sys, "meta_path", [NoLibrary()])
    with pytest.raises(UsageError, match=r"PortAudio library not found.*apt install libportaudio2"):
        cw.lines.sound_card()


class NoLibrary:
    """Finds a ``sounddevice`` that finds no PortAudio."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleType | None:
        if name == "sounddevice":
            raise OSError("PortAudio library not found")
        return None
