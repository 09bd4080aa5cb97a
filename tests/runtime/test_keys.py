"""Keys go out alone and spaced, on every kind of line; the far end hears them as they were asked for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import numpy as np
import pytest
from tests.runtime.calls import (
    APPEND,
    OPENING,
    PHONE,
    SPEAKER,
    Taken,
    after,
    calls,
    delta,
    ended,
    expect,
    reply,
    speech_started,
    speech_stopped,
    started,
    take,
    written,
)

import callwright as cw
from callwright.audio.dtmf import KeyDetector, KeyHeard
from callwright.core.keys import KEY_MS, PATIENCE_MS, QUIET_MS
from callwright.errors import LineFailed
from callwright.ids import ItemId, MarkId, Ms
from callwright.sim.line import LineKind, LineSettings, SimulatedLine
from callwright.testing.scripted import Step as ModelStep

caller = cw.Agent("pharmacy", model=cw.polyai(), instructions="Get through the menu.")


@caller.tool(after=cw.AfterOutput.SILENCE)
async def press_keys(ctx: cw.Context[None], digits: str) -> cw.Facts:
    """Press keys of the telephone."""
    return await ctx.press_keys(digits)


@caller.tool(after=cw.AfterOutput.SILENCE, timeout_ms=100)
async def press_hastily(ctx: cw.Context[None], digits: str) -> cw.Facts:
    """Press keys, and have no patience."""
    return await ctx.press_keys(digits)


@caller.tool(after=cw.AfterOutput.HANG_UP)
async def end_call(ctx: cw.Context[None], reason: str, goodbye: cw.Spoken) -> str:
    """End the call."""
    return reason


def presses(digits: object, call_id: str = "k1", response_id: str = "r1", name: str = "press_keys") -> ModelStep:
    return calls(name, call_id, response_id, json.dumps({"digits": digits}))


def pressing(digits: object, call_id: str = "k1", response_id: str = "r1") -> tuple[ModelStep, ...]:
    return started(response_id), presses(digits, call_id, response_id), ended(response_id)


RESTART_MS: Ms = 1_200


class NoStream:
    """Between two streams: what a line reports is for nobody."""

    def on_frame(self, frame: bytes) -> None: ...

    def on_played(self, item_id: ItemId, generation: int, played_ms: Ms) -> None: ...

    def on_mark(self, mark_id: MarkId) -> None: ...

    def on_closed(self, by: str, reason: str) -> None: ...


class CarriersLine(SimulatedLine):
    """A phone whose carrier presses the keys: the stream begins anew meanwhile, for 1.2 s without a frame (C066)."""

    way = ""

    async def press_keys(self, keys: str) -> None:
        stream, self._sink = self._sink, NoStream()
        await asyncio.sleep(RESTART_MS / 1000)
        self._sink = stream
        if self.way == "fails":
            raise LineFailed("the carrier says 404, about a number")
        if self.way == "hangs":
            await asyncio.sleep(3_600)
        self.way += keys


def heard(taken: Taken) -> tuple[KeyHeard, ...]:
    """The keys that reached the far end, by their tones."""
    recording = taken.line.recording
    return KeyDetector(recording.rate_hz).take(recording.agent)


def sounds(taken: Taken) -> list[tuple[Ms, Ms]]:
    """When the agent's side was not silent: spans of 20 ms frames, with gaps of less than 150 ms taken for sound."""
    recording = taken.line.recording
    frames = np.abs(recording.agent.astype(int)).reshape(-1, recording.rate_hz // 50).max(axis=1) > 300
    spans: list[tuple[Ms, Ms]] = []
    for at in np.flatnonzero(frames).tolist():
        if spans and at * 20 - spans[-1][1] < 150:
            spans[-1] = (spans[-1][0], at * 20 + 20)
        else:
            spans.append((at * 20, at * 20 + 20))
    return spans


def press(*steps: ModelStep, is_whole: bool = True, **options: Any) -> Taken:
    ignoring = tuple(f"conversation.item.{what}" for what in ("create", "truncate", "retrieve"))
    return take(*OPENING, *steps, agent=caller, ignoring=(APPEND, *ignoring), is_whole=is_whole, **options)


LAGGING = LineSettings(LineKind.PHONE, hidden_lag_ms=400)


@pytest.mark.parametrize("settings", [PHONE, SPEAKER, LAGGING])
def test_c060_the_far_end_hears_the_keys_and_the_model_is_told_when_they_are_out(settings: LineSettings) -> None:
    taken = press(*pressing("0042#"), settings=settings)
    keys = heard(taken)
    assert "".join(key.key for key in keys) == "0042#"
    assert all(abs(key.ended_ms - key.started_ms - 100) <= 20 for key in keys)
    assert json.loads(taken.model.outputs()["k1"]) == {"pressed": "0042#"}
    assert taken.model.times("conversation.item.create")[0] >= keys[-1].ended_ms
    assert taken.model.of("response.create") == []
    assert taken.result.anomalies == ()


@pytest.mark.parametrize("settings", [PHONE, SPEAKER, LAGGING])
def test_c060_nothing_is_spoken_over_keys_and_there_is_quiet_on_either_side(settings: LineSettings) -> None:
    """A reply plays when keys are asked for, and the next one comes while they are pressed."""
    taken = press(
        started(), delta(600), written("I press two."), presses("2"), ended(), after(900),
        *reply("So.", 400, "b", "r2"), after(2_000), settings=settings,
    )  # fmt: skip
    (first, key, second) = sounds(taken)
    assert "".join(each.key for each in heard(taken)) == "2"
    assert key[0] - first[1] >= QUIET_MS - 20
    assert second[0] - key[1] >= QUIET_MS - 20
    assert taken.agent_turns == [("I press two.", "I press two.", "whole"), ("So.", "So.", "whole")]
    assert taken.result.anomalies == ()


def test_keys_that_are_asked_for_meanwhile_follow_in_their_order() -> None:
    both = started(), presses("1"), presses("2", "k2"), ended()
    taken = press(*both, *pressing("3", "k3", "r2"))
    assert "".join(key.key for key in heard(taken)) == "123"
    assert list(taken.model.outputs()) == ["k1", "k2", "k3"]


@pytest.mark.parametrize("settings", [PHONE, SPEAKER])
def test_c060_a_menu_that_speaks_again_stops_a_reply_and_never_the_keys(settings: LineSettings) -> None:
    """The reply that was held is dropped, and counts as not heard."""
    taken = press(
        *pressing("12345"), after(400), started("r2"), delta(400, "b", "r2"), written("Hello?", "b", "r2"),
        speech_started(), ended("r2", "cancelled"), speech_stopped(), after(500), settings=settings,
    )  # fmt: skip
    assert "".join(key.key for key in heard(taken)) == "12345"
    assert len(sounds(taken)) == 1
    assert taken.agent_turns == [("", "Hello?", "estimated")]


@pytest.mark.parametrize("settings", [PHONE, SPEAKER])
def test_the_call_is_not_ended_while_keys_are_on_their_way(settings: LineSettings) -> None:
    goodbye = calls("end_call", "k2", arguments='{"reason": "done", "goodbye": "Bye."}')
    taken = press(
        started(), delta(400), written("Bye."), presses("0123456789" * 5), goodbye, ended(), after(11_500),
        settings=settings, hang_up_ms=30_000, is_whole=False,
    )  # fmt: skip
    assert "".join(key.key for key in heard(taken)) == "0123456789" * 5
    assert taken.result.ending == cw.Ending("agent", "done")
    assert taken.result.anomalies == ()


@pytest.mark.parametrize(
    ("digits", "why"),
    [("2x", '"X" is no key'), (" ", "no keys to press"), (2, "Expected `str`, got `int`")],
)
def test_what_is_no_key_is_refused_by_name_and_nothing_is_pressed(digits: object, why: str) -> None:
    """Keys are text: a number has lost its leading zeros."""
    taken = press(*pressing(digits))
    assert why in json.loads(taken.model.outputs()["k1"])["error"]
    assert heard(taken) == ()
    assert taken.model.of("response.create") == []


def test_keys_are_declared_to_the_model_as_text() -> None:
    schema = caller.tools["press_keys"].schema(spoken=True)
    assert schema["parameters"]["properties"]["digits"] == {"type": "string"}  # type: ignore[index]


def test_c066_a_line_with_its_own_way_is_asked_to_press_and_its_stream_may_begin_anew() -> None:
    lines: list[CarriersLine] = []

    def make(*given: Any) -> CarriersLine:
        lines.append(CarriersLine(*given))
        return lines[0]

    taken = press(*pressing("2"), after(300), *reply("So.", 400, "b", "r2"), after(1_000), make_line=make)
    assert lines[0].way == "2"
    assert heard(taken) == ()
    pressed_ms = QUIET_MS + RESTART_MS + QUIET_MS
    assert sounds(taken)[0][0] >= pressed_ms
    assert taken.agent_turns == [("So.", "So.", "whole")]
    assert json.loads(taken.model.outputs()["k1"]) == {"pressed": "2"}
    assert (taken.result.sessions, len(taken.model.of("session.update"))) == (1, 1)
    assert (taken.model.of("response.create"), taken.result.anomalies) == ([], ())


def test_c066_a_mark_that_went_with_the_old_stream_says_nothing_of_the_reply_in_the_new_one() -> None:
    """The last mark of what was said before the keys never comes back: nothing waits for it but the keys."""
    lossy = LineSettings(LineKind.PHONE, lose_marks=(2, 3))
    spoken = started(), delta(600), written("I press two."), presses("2"), ended()
    later = after(7_000), *reply("So.", 400, "b", "r2"), after(1_500)
    taken = press(*spoken, *later, settings=lossy, make_line=CarriersLine, hang_up_ms=12_000)
    assert [heard for heard, *_ in taken.agent_turns] == ["I press two.", "So."]
    assert taken.result.sessions == 1


class FailingLine(CarriersLine):
    way = "fails"


class HangingLine(CarriersLine):
    way = "hangs"


class RefusingLine(SimulatedLine):
    def press_keys(self, keys: str) -> Awaitable[None]:
        raise LineFailed("the carrier says 404 before it is asked")


@pytest.mark.parametrize("make_line", [FailingLine, RefusingLine])
def test_c066_a_carrier_that_refuses_is_told_to_the_model_and_quoted_nowhere(make_line: type[SimulatedLine]) -> None:
    taken = press(*pressing("2"), after(300), *reply("So.", 400, "b", "r2"), after(500), make_line=make_line)
    assert "could not press" in json.loads(taken.model.outputs()["k1"])["error"]
    assert [note for note in taken.result.anomalies if "404" in note] == []
    assert "the line could not press keys (LineFailed)" in taken.result.anomalies
    assert taken.agent_turns == [("So.", "So.", "whole")]


def test_c066_a_carrier_that_never_answers_keeps_nothing_waiting_for_long() -> None:
    taken = press(*pressing("2"), after(300), *reply("So.", 400, "b", "r2"), make_line=HangingLine, hang_up_ms=9_000)
    assert json.loads(taken.model.outputs()["k1"]) == {"pressed": "2", "confirmed": False}
    assert sounds(taken)[0][0] >= KEY_MS + PATIENCE_MS
    assert len(taken.result.anomalies) == 1


@pytest.mark.parametrize("make_line", [SimulatedLine, HangingLine])
def test_the_end_of_the_line_is_the_end_of_its_keys(make_line: type[SimulatedLine]) -> None:
    taken = press(*pressing("0123456789"), after(1_500), make_line=make_line, hang_up_ms=1_500, is_whole=False)
    assert taken.result.ending.by == "caller"
    assert [row[3] for row in taken.rows if row[1:3] == ["do", "AnswerKeys"]] == [{"fate": "ended"}]


def test_a_tool_without_patience_ends_and_its_keys_go_out_all_the_same() -> None:
    """What became of them is not known to the model then, and nobody else gets its answer."""
    hasty = started(), presses("1", name="press_hastily"), presses("2", "k2"), ended(), after(1_500)
    taken = press(*hasty)
    assert "not known" in json.loads(taken.model.outputs()["k1"])["error"]
    assert json.loads(taken.model.outputs()["k2"]) == {"pressed": "2"}
    assert "".join(key.key for key in heard(taken)) == "12"


def test_a_card_number_that_is_keyed_in_is_in_no_trace() -> None:
    taken = press(*pressing("4111111111111111"), hang_up_ms=6_000)
    assert "".join(key.key for key in heard(taken)) == "4111111111111111"
    assert b"4111111111111111" not in taken.result.trace


# --- the call as a whole ---------------------------------------------------------------------------------------------


@caller.tool(after=cw.AfterOutput.SILENCE)
async def wait(ctx: cw.Context[None]) -> str:
    """Say nothing."""
    return "waiting"


def turn(item_id: str, ms: Ms = 600) -> tuple[ModelStep, ...]:
    return speech_started(item_id), after(ms), speech_stopped(item_id), after(100)


def test_a_call_tells_how_it_went_through_menus_and_queues_and_what_came_of_it() -> None:
    goodbye = calls("end_call", "k3", "r4", '{"result": "ready after two", "reason": "done", "goodbye": "Bye."}')
    taken = press(
        *turn("u1"), *pressing("2"), after(1_000),
        *turn("u2"), started("r2"), calls("wait", "k2", "r2"), ended("r2"), after(1_000),
        *turn("u3"), *reply("Hello.", 600, "b", "r3"), after(800),
        *turn("u4"), started("r4"), delta(400, "c", "r4"), written("Bye.", "c", "r4"), goodbye, ended("r4"),
        hang_up_ms=20_000, is_whole=False,
    )  # fmt: skip
    hold = taken.result.hold
    assert hold is not None
    assert [each.phase.value for each in hold.phases] == ["ringing", "menu", "queue", "person", "over"]
    assert (hold.keys_pressed, hold.max_hold_reached) == ("2", False)
    assert hold.phases[2].since_ms - hold.phases[1].since_ms == pytest.approx(900, abs=60)
    assert hold.on_hold_ms == hold.phases[3].since_ms - hold.phases[2].since_ms
    assert taken.result.result == "ready after two"
    assert taken.result.connection_micro_usd == taken.result.connected_ms * 20_000 // 60_000
    assert taken.model.of("response.create") == []


def test_of_a_call_of_which_no_word_may_be_kept_no_result_is_told() -> None:
    class PersonsLine(SimulatedLine):
        reaches_person = True

    goodbye = calls("end_call", "k3", "r4", '{"result": "ready after two", "reason": "done", "goodbye": "Bye."}')
    last = started("r4"), delta(400, "c", "r4"), written("Bye.", "c", "r4"), goodbye, ended("r4")
    taken = press(*pressing("31337"), after(2_000), *last, make_line=PersonsLine, hang_up_ms=9_000, is_whole=False)
    assert taken.result.result == ""
    assert b"31337" not in taken.result.trace
    assert taken.result.hold is not None
    assert len(taken.result.hold.keys_pressed) == 5, "who made the call is told; it is no record of it"


def test_a_call_that_waits_for_too_long_is_given_up() -> None:
    waiting = started(), calls("wait", "k1"), ended(), expect("response.create")
    taken = press(*waiting, max_hold_ms=2_000, hang_up_ms=30_000, is_whole=False)
    assert taken.result.ending == cw.Ending("agent", "gave up after 2 s on hold")
    assert taken.result.hold is not None
    assert taken.result.hold.max_hold_reached
    assert len(taken.model.of("response.create")) == 1
    with pytest.raises(cw.UsageError, match="max_hold_ms is 0"):
        press(*waiting, max_hold_ms=0)
