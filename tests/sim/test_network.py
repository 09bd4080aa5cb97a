"""A connection that opens late, and one that stalls: what arrives later arrives in order, and nothing is lost."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pytest
from tests.sim.whole_call import first, hangs_up, says, scenario

from callwright.audio.g711 import pcmu_decode, pcmu_encode
from callwright.audio.resample import Resampler
from callwright.errors import ConnectionFailed
from callwright.measure.figures import measure_call
from callwright.sim.caller import Anchor
from callwright.sim.network import Network, NetworkSettings, Stall
from callwright.sim.server import MemoryConnector
from callwright.sim.speech import Speech
from callwright.sim.vloop import run_virtual
from callwright.sim.world import Options, play
from callwright.testing.scripted import ScriptedModel, after, close, emit


def now_ms() -> int:
    return round(asyncio.get_running_loop().time() * 1000)


@dataclass
class Sink:
    """Notes what arrives, and when."""

    arrived: list[tuple[int, str]] = field(default_factory=list)

    def on_message(self, message: bytes | str) -> None:
        text = message if isinstance(message, str) else message.decode()
        self.arrived.append((now_ms(), text.partition('"n":')[2].partition("}")[0]))

    def on_closed(self, code: int, reason: str) -> None:
        self.arrived.append((now_ms(), f"closed {code}"))


def numbered(instants: Sequence[int]) -> list[object]:
    """Messages at these instants, by number; then the server closes."""
    waits = [after(at - before) for before, at in zip((0, *instants), instants, strict=False)]
    events = [emit({"type": "note", "n": number}) for number in range(len(instants))]
    return [step for pair in zip(waits, events, strict=True) for step in pair]


def arrivals(
    instants: Sequence[int], stalls: Sequence[Stall], *, closes_ms: int | None = None, is_closed_by_server: bool = True
) -> list[tuple[int, str]]:
    async def call() -> Sink:
        sink = Sink()
        ends = [close(4408, "idle")] if is_closed_by_server else []
        script = ScriptedModel(*numbered(instants), *ends)
        network = Network(MemoryConnector(lambda: script), NetworkSettings(stalls=tuple(stalls)), now_ms)
        connection = await network.connect(sink)
        await asyncio.sleep((closes_ms or 10_000) / 1000)
        await connection.close()
        await asyncio.sleep(10)
        return sink

    return run_virtual(call()).arrived


def test_a_stall_holds_what_would_arrive_in_it_and_the_end_of_the_connection() -> None:
    smooth = arrivals([100, 200, 300, 400], [])
    assert smooth == [(100, "0"), (200, "1"), (300, "2"), (400, "3"), (400, "closed 4408")]
    assert arrivals([100, 200, 300, 400], [Stall(150, 200)]) == [
        (100, "0"), (350, "1"), (350, "2"), (400, "3"), (400, "closed 4408"),
    ]  # fmt: skip
    assert arrivals([100, 200], [Stall(200, 1_000)]) == [(100, "0"), (1_200, "1"), (1_200, "closed 4408")]


def test_stalls_that_touch_hold_like_one() -> None:
    assert arrivals([100, 250], [Stall(100, 100), Stall(200, 100)])[:2] == [(300, "0"), (300, "1")]
    assert arrivals([100], [Stall(50, 100), Stall(80, 300)])[0] == (380, "0")


def test_what_is_held_when_the_client_leaves_never_arrives() -> None:
    arrived = arrivals([100, 200, 300], [Stall(150, 5_000)], closes_ms=250, is_closed_by_server=False)
    assert arrived == [(100, "0"), (250, "closed 1000")]


@pytest.mark.parametrize("opens_after_ms", [0, 700, 10_000])
def test_a_connection_opens_when_it_is_time(opens_after_ms: int) -> None:
    async def call() -> int:
        settings = NetworkSettings(opens_after_ms=opens_after_ms)
        await Network(MemoryConnector(lambda: ScriptedModel()), settings, now_ms).connect(Sink())
        return now_ms()

    assert run_virtual(call()) == opens_after_ms


def test_a_connection_that_fails_fails_when_it_is_time() -> None:
    class Refused:
        async def connect(self, sink: object) -> MemoryConnector:
            raise ConnectionFailed(f"refused at {now_ms()} ms")

    async def call() -> None:
        await Network(Refused(), NetworkSettings(opens_after_ms=700), now_ms).connect(Sink())  # type: ignore[arg-type]

    with pytest.raises(ConnectionFailed, match="refused at 700 ms"):
        run_virtual(call())


# --- in a whole call


CALL = scenario(first("ask-pool"), hangs_up())


def test_a_call_is_answered_though_its_connection_opens_late() -> None:
    """The caller speaks while nobody is there yet; what he said is held, and heard."""
    late = replace(CALL, connection=NetworkSettings(opens_after_ms=3_000))
    for record in (play(late, 1), play(CALL, 1, options=Options(connect_ms=3_000))):
        assert record.session_ready_ms == 3_234
        assert record.held_sent_ms == pytest.approx(3_234, abs=20)
        assert [turn.heard for turn in record.turns] == [
            "Good morning, could you please tell me which floor your pool is on?",
            "You will find the pool on floor two.",
        ]
    assert play(CALL, 1, options=Options(connect_ms=3_000)).settings == {"connect_ms": 3_000}
    assert play(late, 1, options=Options(connect_ms=0)).session_ready_ms == 234


def test_a_reply_goes_on_after_a_stall_of_the_connection() -> None:
    patient = scenario(first("ask-pool"), hangs_up(6_000))
    usual = play(patient, 1)
    reply = next(span for span in usual.ear if span.item_id)
    stall = Stall(reply.at_ms + 500, 2_000)
    record = play(replace(patient, connection=NetworkSettings(stalls=(stall,))), 1)
    assert [turn.heard for turn in record.turns] == [turn.heard for turn in usual.turns]
    gap = [later.at_ms - span.at_ms - (span.to_ms - span.from_ms) for span, later in pairwise(record.ear)]
    assert max(gap) == pytest.approx(2_000, abs=500)


def test_c045_c046_of_a_caller_who_speaks_for_10_s_before_anybody_is_there_exactly_the_last_5_s_are_heard() -> None:
    """Ready at 10,234 ms: 511 frames have come, 250 are held, and the loss of the others is told and measured."""
    questions = [("ask-pool", 0), ("look-up-okafor", 4_400), ("ask-check-in", 8_000)]
    talker = scenario(*(says(line_id, Anchor.PICKUP, at_ms) for line_id, at_ms in questions), hangs_up())
    record = play(talker, 1, options=Options(connect_ms=10_000))
    assert (record.session_ready_ms, record.held_sent_ms, record.held_lost_ms) == (10_234, 5_000, 5_220)
    assert measure_call(record, Speech.load(talker.speech)).values["pickup_lost_ms"] == (5_220,)
    assert "5220 ms of the caller's first words were lost: they were held for too long" in record.anomalies
    sent = pcmu_decode(pcmu_encode(record.recording.caller[5_220 * 8 :]))
    heard = Resampler(8_000, 16_000).process(sent)[: 7_000 * 16]
    assert np.array_equal(record.first_audio[: len(heard)], heard)
    assert np.abs(heard).max() > 1_000
