"""Every started tool ends in exactly one report, and what the model is told of a failure quotes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from typing import Annotated, Any, Literal

import msgspec
import pytest
from tests.runtime.calls import ANYTHING, OPENING, Model, calls, delta, ended, speech_started, started, take, written

import callwright as cw
from callwright.core.commands import StartTool
from callwright.core.events import ToolFinished, ToolOutcome
from callwright.declare.tools import Context
from callwright.ids import ToolCallId
from callwright.runtime.tools import ToolRunner
from callwright.sim.caller import Anchor, ScriptedCaller, Step, Trigger
from callwright.sim.line import LineKind, LineSettings, SimulatedLine
from callwright.sim.server import MemoryConnector
from callwright.sim.vloop import VirtualLoop, run_virtual
from callwright.testing.scripted import after

SECRET = "card 4111 1111 1111 1111"


class Stubborn(Exception):
    pass


desk = cw.Agent("desk", model=cw.polyai(), instructions="Be brief.")
contexts: list[Context[Any]] = []


@desk.tool
async def look(ctx: cw.Context[str], order: str, count: int = 1, kind: Literal["a", "b"] = "a") -> cw.Facts:
    """Look."""
    contexts.append(ctx)
    return {"order": order, "count": count, "kind": kind, "deps": ctx.deps}


@desk.tool
async def look_up(ctx: cw.Context[str], number: Annotated[str, cw.Digits(8)]) -> cw.Facts:
    """Look up a number that is dictated."""
    contexts.append(ctx)
    return {"number": number}


@desk.tool
async def plain(ctx: cw.Context[str]) -> str:
    """Answer in words."""
    return "two rooms, é"


@desk.tool
async def raises(ctx: cw.Context[str]) -> str:
    """Raise."""
    raise Stubborn(SECRET)


@desk.tool
async def raises_later(ctx: cw.Context[str]) -> str:
    """Raise after a while."""
    await asyncio.sleep(2)
    raise ExceptionGroup(SECRET, [ValueError(SECRET)])


@desk.tool
async def unwritable(ctx: cw.Context[str]) -> cw.Facts:
    """Return what is no JSON."""
    return {"what": object()}


@desk.tool
async def half_a_character(ctx: cw.Context[str]) -> str:
    """Return what is no text."""
    return "\ud83d"


@desk.tool(timeout_ms=500)
async def slow(ctx: cw.Context[str]) -> str:
    """Take too long."""
    await asyncio.sleep(10)
    return SECRET


@desk.tool(timeout_ms=1_500)
async def stubborn(ctx: cw.Context[str]) -> str:
    """Let nothing stop it for an hour."""
    for _ in range(3600):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(1)
    return SECRET


@desk.tool
async def blocks(ctx: cw.Context[str]) -> str:
    """Compute for 250 ms, twice, with a pause in between."""
    for _ in range(2):
        until_s = time.perf_counter() + 0.25
        while time.perf_counter() < until_s:
            pass
        await asyncio.sleep(0.01)
    return "computed"


@desk.tool
async def stops_itself(ctx: cw.Context[str]) -> str:
    """Be cancelled from within."""
    raise asyncio.CancelledError


def tool_ends(*calls: tuple[str, str], close_at_s: float = 20) -> list[tuple[int, ToolFinished]]:
    """What is reported of these calls (name, arguments), begun together, and when (ms)."""
    ends: list[tuple[int, ToolFinished]] = []

    async def go() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        runner = ToolRunner(
            desk.tools,
            deps="the shop",
            party="guest:7",
            finished=lambda end: ends.append((loop.now_ms(), end)),
            note=pytest.fail,
        )
        for number, (name, arguments) in enumerate(calls):
            runner.start(StartTool(ToolCallId(f"k{number}"), name, arguments))
            assert len(ends) == 0  # never from within
        await asyncio.sleep(close_at_s)
        await runner.close()
        await runner.close()

    run_virtual(go())
    return ends


def the_end(name: str, arguments: str = "{}") -> ToolFinished:
    ((_, end),) = tool_ends((name, arguments))
    assert end.tool_call_id == "k0"
    return end


def problem(end: ToolFinished) -> str:
    told: str = msgspec.json.decode(end.output)["error"]
    assert SECRET not in end.output
    assert "Traceback" not in end.output
    return told


def test_facts_go_to_the_model_as_json_and_text_as_it_is() -> None:
    end = the_end("look", '{"order": "4417", "kind": "b"}')
    assert end.outcome is ToolOutcome.RETURNED
    assert msgspec.json.decode(end.output) == {"order": "4417", "count": 1, "kind": "b", "deps": "the shop"}
    assert the_end("plain") == ToolFinished(ToolCallId("k0"), ToolOutcome.RETURNED, "two rooms, é")
    assert the_end("plain", "").outcome is ToolOutcome.RETURNED  # some models send no arguments as no text


def test_a_tool_knows_its_call_and_the_party_comes_from_the_app() -> None:
    contexts.clear()
    the_end("look", '{"order": "4417", "party": "guest:1"}')
    assert contexts == [Context("the shop", "guest:7", ToolCallId("k0"))]


@pytest.mark.parametrize(
    ("name", "exception"),
    [
        ("raises", "Stubborn"),
        ("raises_later", "ExceptionGroup"),
        ("unwritable", "TypeError"),
        ("half_a_character", "UnicodeEncodeError"),
    ],
)
def test_c087_an_exception_is_told_by_its_kind(name: str, exception: str, caplog: pytest.LogCaptureFixture) -> None:
    """Its text may quote anything, so that the log has its type and place; the whole of it is there at DEBUG."""
    caplog.set_level(logging.DEBUG, "callwright.runtime.tools")
    end = the_end(name)
    assert end.outcome is ToolOutcome.RAISED
    assert problem(end) == f"the tool failed ({exception})"
    assert end.raised == exception
    told, whole = caplog.records
    assert (told.levelno, told.exc_info) == (logging.ERROR, None)
    assert re.fullmatch(rf"tool {name} raised {exception} at .*\.py:\d+", told.getMessage())
    assert whole.levelno == logging.DEBUG
    assert whole.getMessage().startswith(f"tool {name} raised\n")
    assert "Traceback (most recent call last):" in whole.getMessage()


@pytest.mark.parametrize(
    "arguments",
    [
        "{",
        "null",
        "[]",
        "{}",
        '{"order": 1}',
        '{"order": "x", "count": "many"}',
        '{"order": "x", "kind": "c"}',
        '{"order": "\ud800"}',
        "[" * 5_000,
        '{"order":' + "[" * 5_000,
    ],
)
def test_c087_arguments_that_do_not_fit_are_told_to_the_model(arguments: str) -> None:
    end = the_end("look", arguments)
    assert end.outcome is ToolOutcome.RAISED
    assert problem(end).startswith("the arguments do not fit the tool: ")


def test_c146_half_a_number_runs_nothing_and_the_whole_one_does() -> None:
    """The caller says 4 1 7, 8 8 2, 0 9 with pauses, and the model calls behind every one of them."""
    contexts.clear()
    for number, so_many in (("417", 3), ("417 882", 6)):
        half = the_end("look_up", f'{{"number": "{number}"}}')
        assert half.outcome is ToolOutcome.RAISED
        assert problem(half).startswith(f"number is incomplete: it has {so_many} of 8 digits, so nothing was done.")
        assert "ask for the rest" in problem(half)
    assert contexts == []
    whole = the_end("look_up", '{"number": "417-882 09"}')
    assert whole.outcome is ToolOutcome.RETURNED
    assert msgspec.json.decode(whole.output) == {"number": "41788209"}
    assert len(contexts) == 1


def test_a_tool_that_takes_too_long_is_stopped_and_its_effect_is_called_unknown() -> None:
    ((at_ms, end),) = tool_ends(("slow", "{}"))
    assert (at_ms, end.outcome) == (500, ToolOutcome.TIMED_OUT)
    assert "not known" in problem(end)


def test_a_tool_that_cannot_be_stopped_is_not_waited_for() -> None:
    ((at_ms, end),) = tool_ends(("stubborn", "{}"))
    assert (at_ms, end.outcome) == (1_500, ToolOutcome.TIMED_OUT)


def test_a_tool_that_cannot_be_stopped_is_named_at_the_end_of_the_call() -> None:
    notes: list[str] = []
    ends: list[ToolFinished] = []

    async def go() -> int:
        loop = asyncio.get_running_loop()
        runner = ToolRunner(desk.tools, deps="the shop", party=None, finished=ends.append, note=notes.append)
        runner.start(StartTool(ToolCallId("k0"), "stubborn", "{}"))
        await asyncio.sleep(0.1)
        await runner.close()
        return round(loop.time() * 1000)

    assert run_virtual(go()) <= 1_200
    assert [end.outcome for end in ends] == [ToolOutcome.CANCELLED]
    assert notes == ["tool stubborn does not stop when it is cancelled; it was left running"]


def test_tools_run_beside_each_other_and_each_ends_once() -> None:
    calls = [("raises_later", "{}"), ("plain", "{}"), ("slow", "{}"), ("look", "{"), ("stops_itself", "{}")]
    ends = tool_ends(*calls)
    assert sorted(end.tool_call_id for _, end in ends) == [f"k{number}" for number in range(len(calls))]
    assert {end.tool_call_id: (at_ms, end.outcome) for at_ms, end in ends} == {
        "k0": (2_000, ToolOutcome.RAISED),
        "k1": (0, ToolOutcome.RETURNED),
        "k2": (500, ToolOutcome.TIMED_OUT),
        "k3": (0, ToolOutcome.RAISED),
        "k4": (0, ToolOutcome.CANCELLED),
    }


def test_what_still_runs_at_the_end_of_the_call_is_reported_as_cancelled() -> None:
    ends = tool_ends(("slow", "{}"), ("raises_later", "{}"), close_at_s=0.2)
    assert [(at_ms, end.outcome) for at_ms, end in ends] == [(200, ToolOutcome.CANCELLED)] * 2
    assert {problem(end) for _, end in ends} == {"the tool was stopped before it was through"}


def test_a_tool_that_is_stopped_before_its_first_step_is_reported() -> None:
    ends: list[ToolFinished] = []

    async def go() -> None:
        runner = ToolRunner(desk.tools, deps="the shop", party=None, finished=ends.append, note=pytest.fail)
        runner.start(StartTool(ToolCallId("k0"), "plain", "{}"))
        await runner.close()

    run_virtual(go())
    assert [end.outcome for end in ends] == [ToolOutcome.CANCELLED]


def test_c127_a_tool_that_blocks_the_loop_is_named_with_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    """A call hears and says nothing meanwhile. One that only waits beside it is not accused."""
    notes: list[str] = []
    ends: list[ToolFinished] = []

    async def go() -> None:
        is_over = asyncio.Event()

        def finished(end: ToolFinished) -> None:
            ends.append(end)
            is_over.set()

        runner = ToolRunner(desk.tools, deps="the shop", party=None, finished=finished, note=notes.append)
        runner.start(StartTool(ToolCallId("k0"), "raises_later", "{}"))
        runner.start(StartTool(ToolCallId("k1"), "blocks", "{}"))
        await is_over.wait()
        await runner.close()

    asyncio.run(go())
    assert [(end.tool_call_id, end.output) for end in ends[:1]] == [("k1", "computed")]
    assert len(notes) == 2
    for note in notes:
        told = re.fullmatch(r"the event loop stood still for (\d+) ms while tool blocks ran; (.*)", note)
        assert told
        assert int(told[1]) >= 250
        assert told[2] == "run blocking work with asyncio.to_thread"
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == notes


def test_c127_the_call_keeps_it_on_record() -> None:
    async def go() -> cw.CallResult:
        hang_up = Step(Trigger(Anchor.PICKUP, 100), None)
        line = SimulatedLine(LineSettings(LineKind.PHONE), ScriptedCaller([hang_up], {}, 8_000))
        model = Model(*OPENING, started(), calls("blocks"), ended(), ignoring=ANYTHING)
        return await cw.run(desk, line, connector=MemoryConnector(lambda: model))

    (note, *_) = asyncio.run(go()).anomalies
    assert note.endswith("while tool blocks ran; run blocking work with asyncio.to_thread")


def test_c092_a_tool_that_runs_holds_up_neither_the_filler_nor_an_interruption() -> None:
    """It runs to the end of the call; 3 s of filler come 0.5 s after it was called, and the caller speaks at 3 s."""
    steps = (*OPENING, started(), calls("endless"), after(500), delta(3_000), written("One moment."), after(2_500))
    taken = take(*steps, speech_started(), ignoring=ANYTHING)
    (cleared_ms,) = taken.did("ClearPlayout")
    assert 3_000 <= cleared_ms <= 3_100
    assert 2_400 <= taken.line.ear[-1].to_ms <= cleared_ms - 500, "heard since 0.6 s at the latest, to the end"
