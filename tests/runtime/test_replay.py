"""A recorded call is the same again, and where the core was changed the first difference is found, in its line."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.calls import ANYTHING, BARGE_IN, OPENING, ended, error, reply, retrieved, take
from tests.runtime.calls import speech_started as starts
from tests.runtime.calls import speech_stopped as stops
from tests.runtime.test_kept import CONSENTED, agent, before_and_after
from tests.runtime.test_kept import take as take_of
from tests.sim.whole_call import LOOK_UP, hangs_up, quick, says, scenario

from callwright.core import cuts, stalls
from callwright.core.commands import TruncateItem
from callwright.core.turns import SPEAKING
from callwright.errors import UsageError
from callwright.ids import EventId, ItemId, Ms
from callwright.runtime.replay import Outcome, Replayed, replay
from callwright.sim.caller import Anchor, Step
from callwright.testing import after, replay_trace

SPEAKS_LONG = (*OPENING, starts(), after(7_000), stops(), *reply("Yes."), after(200))
SCRIPTED = {
    "cut": (*BARGE_IN, retrieved("From-"), ended("r1", "cancelled"), stops(), *reply("Yes.", 400, "b", "r2")),
    "timer": SPEAKS_LONG,
    "refused": (*OPENING, error(code="odd"), *reply("From three.")),
    "unreadable": (*OPENING, *reply("From three.")),
}


def recorded(*steps: Any) -> bytes:
    return take(*steps, ignoring=ANYTHING, hang_up_ms=10_000).result.trace


def changed(trace: bytes, line: int, **content: Any) -> bytes:
    """A trace with some content of one row replaced."""
    rows = trace.splitlines()
    at_ms, kind, name, was = json.loads(rows[line - 1])
    rows[line - 1] = json.dumps([at_ms, kind, name, {**was, **content}]).encode()
    return b"\n".join(rows)


def objected() -> bytes:
    """A caller says no to being recorded: what he said is not kept, and decides."""
    return take_of(agent(**CONSENTED), *before_and_after("No, I would rather not.")).result.trace


def line_of(trace: bytes, name: str, after_line: int = 0) -> int:
    named = [at for at, row in enumerate(trace.splitlines(), 1) if json.loads(row)[2] == name]
    return next(line for line in named if line > after_line)


def found(replayed: Replayed) -> tuple[int, str]:
    assert replayed.outcome is Outcome.DIFFERENT
    assert replayed.difference is not None
    return replayed.difference.line, replayed.difference.what


@pytest.mark.parametrize("name", SCRIPTED)
def test_a_call_is_the_same_again(name: str) -> None:
    trace = recorded(*SCRIPTED[name])
    replayed = replay(trace)
    assert replayed.outcome is Outcome.IDENTICAL
    assert replayed.events == trace.count(b',"on",')
    assert replayed.commands == trace.count(b',"do",')
    assert str(replayed).startswith(f"trace: identical: {replayed.events} events, {replayed.commands} commands, ")


LINES = st.sampled_from(["ask-pool", "ask-wifi", "ask-parking", "look-up-okafor", "mm-hmm"])
SAID = st.builds(
    says, LINES, st.sampled_from([Anchor.REPLY_START, Anchor.REPLY_END]), st.integers(0, 40).map(lambda n: n * 50)
)


@settings(max_examples=5, deadline=None)
@given(
    said=st.lists(SAID, max_size=3),
    seed=st.integers(1, 1_000),
    hidden_lag_ms=st.sampled_from([0, 600]),
    drops_at_ms=st.sampled_from([(), (3_000,), (6_500, 9_000)]),
)
def test_any_call_without_samples_is_the_same_again(
    said: list[Step], seed: int, hidden_lag_ms: Ms, drops_at_ms: tuple[Ms, ...]
) -> None:
    """Also one that goes through several sessions, since its connection breaks."""
    made = scenario(LOOK_UP, *said, hangs_up())
    line = replace(made.line, hidden_lag_ms=hidden_lag_ms)
    made = replace(made, line=line, connection=replace(made.connection, drops_at_ms=drops_at_ms))
    assert replay(quick(made, seed).trace).outcome is Outcome.IDENTICAL


def test_a_call_that_is_handed_over_is_the_same_again() -> None:
    made = scenario(LOOK_UP, hangs_up())
    trace = quick(replace(made, connection=replace(made.connection, drops_at_ms=(3_000,))), 1).trace
    assert trace.count(b',"do","Connect",') == 2
    assert replay(trace).outcome is Outcome.IDENTICAL


# --- a core that was changed


def test_a_changed_value_is_found_in_its_line_with_the_event_and_the_rows_around(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace = recorded(*SCRIPTED["cut"])

    def one_frame_more(event_id: EventId, item_id: ItemId, audio_end_ms: Ms) -> TruncateItem:
        return TruncateItem(event_id, item_id, audio_end_ms + 20)

    monkeypatch.setattr(cuts, "TruncateItem", one_frame_more)
    line = line_of(trace, "TruncateItem")
    row = json.loads(trace.splitlines()[line - 1])
    was = row[3]["audio_end_ms"]
    replayed = replay(trace, "call.jsonl")
    assert found(replayed) == (line, f"TruncateItem.audio_end_ms: {was} was recorded, now {was + 20}")
    assert replayed.difference is not None
    assert replayed.difference.event_line == line_of(trace, "SpeechStarted")
    assert [number for number, _ in replayed.difference.around] == list(range(line - 3, line + 4))
    head, *_ = str(replayed).splitlines()
    assert head.startswith(f"call.jsonl:{line}: different at {row[0] / 1000:.3f} s: TruncateItem.audio_end_ms")
    assert any(shown.startswith(f"> {line:6}  [") for shown in str(replayed).splitlines())


@pytest.mark.parametrize(
    ("patience_ms", "what"),
    [
        (3_000, "a timer is wanted at {0} ms; none had fired by {1} ms"),
        (6_000, "a timer was recorded; the timer is wanted at {0} ms"),
    ],
)
def test_a_timer_at_another_instant_is_a_difference(
    monkeypatch: pytest.MonkeyPatch, patience_ms: Ms, what: str
) -> None:
    trace = recorded(*SPEAKS_LONG)
    for floor in SPEAKING:
        monkeypatch.setitem(stalls._PATIENCE_MS, floor, patience_ms)
    began_ms, fired_ms = (
        json.loads(trace.splitlines()[line_of(trace, name) - 1])[0] for name in ("SpeechStarted", "TimerFired")
    )
    line, told = found(replay(trace))
    assert told == what.format(began_ms + patience_ms, fired_ms)
    assert line == line_of(trace, "TimerFired")


def test_a_command_too_many_or_too_few_and_another_one_are_differences() -> None:
    trace = recorded(*SCRIPTED["cut"])
    rows = trace.splitlines()
    line = line_of(trace, "TruncateItem")
    less = b"\n".join([*rows[: line - 1], *rows[line:]])
    assert found(replay(less)) == (line, "RetrieveItem was recorded; TruncateItem is asked for")
    more = b"\n".join([*rows[: line + 1], rows[line], *rows[line + 1 :]])
    assert found(replay(more)) == (line + 2, "RetrieveItem was recorded; nothing more is asked for")
    none = b"\n".join([*rows[:line], *rows[line + 1 :]])
    assert found(replay(none)) == (line, "nothing more was recorded; RetrieveItem is asked for")


def test_what_the_core_raises_is_compared_too() -> None:
    rows = recorded(*OPENING).splitlines()
    configured = line_of(b"\n".join(rows), "ConfigureSession")
    of_no_call = json.dumps([200, "on", "ToolFinished", {"tool_call_id": "k9", "outcome": "returned", "output": ""}])
    raising = b"\n".join([*rows[:configured], of_no_call.encode()])
    line, what = found(replay(raising))
    assert (line, what.partition(":")[0]) == (configured + 1, "ToolFinished led to nothing; it raises KeyError")
    replayed = replay(b"\n".join([raising, b'[200,"raised","KeyError"]']))
    assert replayed.outcome is Outcome.IDENTICAL


def test_commands_that_the_shell_could_not_carry_out_are_not_missed() -> None:
    """A line that breaks ends the call in the middle of what an event led to."""
    trace = recorded(*SCRIPTED["cut"])
    line = line_of(trace, "TruncateItem")
    broken = b"\n".join([*trace.splitlines()[:line], b'[9999,"raised","LineFailed"]'])
    assert replay(broken).outcome is Outcome.IDENTICAL


def test_a_trace_that_is_cut_between_two_events_is_replayed_as_far_as_it_goes() -> None:
    trace = recorded(*SCRIPTED["cut"])
    part = b"\n".join(trace.splitlines()[: line_of(trace, "SpeechStarted") - 1])
    replayed = replay(part)
    assert replayed.outcome is Outcome.IDENTICAL
    assert 0 < replayed.events < replay(trace).events


# --- words that are not there


def test_without_words_what_they_do_not_decide_is_the_same_and_the_place_is_told_where_they_do() -> None:
    trace = objected()
    replayed = replay(trace, "private.jsonl")
    assert replayed.outcome is Outcome.INCOMPLETE
    assert replayed.lacking[0] == line_of(trace, "CallerTranscribed")
    assert replayed.difference is not None
    assert (replayed.difference.line, replayed.difference.what) == (
        line_of(trace, "DropWords"),
        "DropWords was recorded; nothing more is asked for",
    )
    told = str(replayed)
    assert "that may come of words that were not kept (words are missing in line" in told
    before = replayed.difference.event_line - 1
    assert f"head -n {before} private.jsonl" in told
    assert replay(b"\n".join(trace.splitlines()[:before])).outcome is Outcome.IDENTICAL


@pytest.mark.parametrize("declared", [{}, CONSENTED])
def test_a_notice_that_was_heard_is_heard_again_though_no_word_of_it_is_kept(declared: dict[str, Any]) -> None:
    trace = take_of(agent(**declared), *before_and_after()).result.trace
    assert b"automated" not in trace.partition(b"\n")[2]
    replayed = replay(trace)
    assert replayed.outcome is Outcome.IDENTICAL
    assert replayed.lacking
    assert "(words are missing in line " in str(replayed)


def test_a_difference_before_the_first_missing_word_counts() -> None:
    trace = objected()
    line = line_of(trace, "ConfigureSession")
    assert found(replay(changed(trace, line, event_id="cw_7"))) == (
        line,
        'ConfigureSession.event_id: "cw_7" was recorded, now "cw_1"',
    )


def test_a_masked_card_is_the_same_again() -> None:
    figures = "My card is 4111 1111 1111 1111."
    trace = recorded(*OPENING, *reply(figures), error(code=figures))
    assert b"1111 1111 1111" not in trace
    replayed = replay(trace)
    assert replayed.outcome is Outcome.IDENTICAL
    assert replayed.lacking == (line_of(trace, "ReplyWritten"),)


# --- what is no trace of a call of ours


@pytest.mark.parametrize(
    ("line", "row", "expected"),
    [
        (1, b'[0,"trace",{"version":1}]', "t:1: a trace of version 1; here version 2 is replayed. Replay it with the"),
        (1, b'[0,"trace",{"version":2,"client":"naive"}]', "t:1: the trace of the client naive, which has no core"),
        (1, b'[0,"trace",{"version":2,"plan":{"mood":1}}]', "t:1: plan.mood is not known here; was it written by"),
        (1, b'[0,"trace",{"version":2,"plan":{"can":["fly"]}}]', "t:1: plan.can: 'FLY'; was it"),
        (1, b'[0,"trace",{"version":2,"plan":{}}]', "t:1: plan: "),
        (1, b"{}", "t:1: expected a row of a trace"),
        (1, b'[0,"on","LineOpened",{}]', "t:1: expected the head of a trace"),
        (2, b'[0,"on","LineOpened",{}', r"t:2: expected a row of a trace, \[t_ms, kind, ...\] as JSON"),
        (2, b'[0,"on","LineBlessed",{}]', "t:2: the event LineBlessed is not known here"),
        (2, b'[0,"on","CallerLoud",{"is_loud":7}]', "t:2: CallerLoud: Expected `bool`, got `int`"),
        (2, b'[0,"do","OpenUplink",{}]', "t:2: expected an event before the first command"),
        (3, b'[9,"on","LineOpened",{}]', "t:4: expected an instant that is not before 9 ms"),
    ],
)
def test_what_cannot_be_replayed_is_refused_by_line(line: int, row: bytes, expected: str) -> None:
    rows = recorded(*OPENING).splitlines()
    rows[line - 1] = row
    with pytest.raises(UsageError, match=expected):
        replay(b"\n".join(rows), "t")


def test_an_empty_file_is_no_trace() -> None:
    with pytest.raises(UsageError, match="t: expected a trace; there is no row in it"):
        replay(b"", "t")


# --- as a test of one's own


def test_a_recorded_call_is_a_test(tmp_path: Path) -> None:
    path = tmp_path / "call.jsonl"
    trace = recorded(*SCRIPTED["cut"])
    path.write_bytes(trace)
    assert replay_trace(path).outcome is Outcome.IDENTICAL
    line = line_of(trace, "TruncateItem")
    path.write_bytes(changed(trace, line, audio_end_ms=1))
    with pytest.raises(AssertionError, match=rf"call.jsonl:{line}: different at .*TruncateItem.audio_end_ms: 1 was"):
        replay_trace(path)


def test_the_documented_test_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fence of the how-to, with a trace where it says that one is."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / "replay-a-call.md"
    code = page.read_text("utf-8").partition("```python\n")[2].partition("```")[0]
    (path,) = re.findall(r'replay_trace\("(.+)"\)', code)
    (tmp_path / path).parent.mkdir(parents=True)
    trace = recorded(*SCRIPTED["cut"])
    monkeypatch.chdir(tmp_path)
    written: dict[str, Any] = {}
    exec(code, written)
    (test,) = (value for name, value in written.items() if name.startswith("test_"))
    Path(path).write_bytes(trace)
    test()
    Path(path).write_bytes(changed(trace, line_of(trace, "TruncateItem"), audio_end_ms=1))
    with pytest.raises(AssertionError, match="different at"):
        test()
