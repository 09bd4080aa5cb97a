"""Talk over a goodbye at every instant of it, and see that the call neither cuts it off nor stays open.

Run ``python scripts/sweep_goodbye.py``; ``--stride 5`` takes every fifth point, ``--seed`` other chances, ``--jobs``
several processes. Prints one row for each line, speech and stall; exits with 1 if a rule was broken anywhere.

```
caller     that's all                        speech
agent                  ~~~~~~~~ goodbye ~~~~~~~~
points                |.|.|.|.|.|.|.|.|.|.|.|.|.|.|   every 20 ms from 0.5 s before the goodbye to 0.5 s after its end
```

All times are those of the ear. Whatever happens first, the caller says again that this is all once he was answered.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import NamedTuple

import callwright as cw
from callwright.ids import ItemId, Ms
from callwright.sim.caller import Anchor, Step, Trigger
from callwright.sim.line import LineKind, LineSettings
from callwright.sim.models import AgentSaid, CallerSaid, Clip, HistoryItem, Reply, ToolAnswered, ToolRequest
from callwright.sim.quick import QuickCall, QuickResult, ToldSpeech, play_quick, spoken_line
from callwright.sim.record import CallerLine

STEP_MS: Ms = 20
AROUND_MS: Ms = 500
"""How long before and after the goodbye the caller may speak."""
CAP_MS: Ms = 8_000
"""How long after its last sound at the ear a call may be open at most, beside ``DECISION_MS``."""
DECISION_MS: Ms = 1_000
TOLD_MS: Ms = 700
"""How long after a short word the server may still tell that somebody spoke."""
LAST_MS: Ms = 100
"""Speech that begins later before the end of the goodbye may come too late for anybody."""
SEEDS = 4
"""The points of a row take turns with so many."""
STALLS: tuple[Ms, ...] = tuple(range(0, 1_001, 100))
STALL_AT_MS: Ms = 1_600

LINES = {
    "marks": LineSettings(LineKind.PHONE),
    "marks, 300 ms hidden": LineSettings(LineKind.PHONE, hidden_lag_ms=300),
    "pulled": LineSettings(LineKind.SPEAKER),
    "pulled, 200 ms fixed": LineSettings(LineKind.SPEAKER, fixed_lag_ms=200),
}
SPEECH = ToldSpeech(
    [
        spoken_line("thats-all", "No, that's all, thank you.", 900),
        spoken_line("word", "Wait.", 300),
        spoken_line("sentence", "Oh, and is breakfast included?", 1_500),
        spoken_line("goodbye", "Thank you for calling, and have a pleasant stay. Goodbye.", 3_600, "agent"),
        spoken_line("breakfast", "Yes, breakfast is included.", 1_000, "agent"),
        spoken_line("go-ahead", "Yes, please?", 700, "agent"),
    ]
)
SPOKEN = ("word", "sentence")
CONFIRMED = ("sentence",)
"""What is long enough to be a turn over a reply."""

desk = cw.Agent("sweep", model=cw.polyai(), instructions="Answer the caller, and end the call when that is all.")


@desk.tool(after=cw.AfterOutput.HANG_UP)
async def end_call(ctx: cw.Context[None], reason: str, goodbye: cw.Spoken) -> str:
    """End the call."""
    return reason


class Desk:
    """Answers the latest turn; takes a call for hung up whose history does not say that it is still open."""

    def reply(self, history: Sequence[HistoryItem], rng: Random) -> Reply:
        """The next reply."""
        text = next((item.text for item in reversed(history) if isinstance(item, CallerSaid)), "")
        if "breakfast" in text:
            return Reply((Clip("breakfast"),))
        if "all" not in text:
            return Reply((Clip("go-ahead"),))
        outputs = [item.output for item in history if isinstance(item, ToolAnswered)]
        if not all("still open" in output or "caller spoke first" in output for output in outputs):
            return Reply((Clip("goodbye"),))
        return Reply((Clip("goodbye"),), ToolRequest("end_call", {"reason": "done", "goodbye": "Goodbye."}))


class Point(NamedTuple):
    """One call of the sweep."""

    line: str
    says: str
    stall_ms: Ms
    at_ms: Ms | None
    """When he speaks; None: he does not."""
    seed: int


class Verdict(NamedTuple):
    """What became of one call."""

    broken: tuple[str, ...]
    withdrawals: int
    is_late: bool
    """He spoke before the hang-up, long enough for a turn, and was hung up on."""
    open_ms: Ms
    """From the last sound of the farewell at the ear to the hang-up."""


def played(point: Point) -> QuickResult:
    """The call of a point."""
    steps = [Step(Trigger(Anchor.PICKUP, 100), "thats-all")]
    if point.at_ms is not None:
        steps.append(Step(Trigger(Anchor.PICKUP, point.at_ms), point.says))
        steps += [Step(Trigger(Anchor.REPLY_END, 700), "thats-all")] * 2
    stall = (point.stall_ms, point.stall_ms)
    server = {"item_events": False, "stall_at_ms": STALL_AT_MS if point.stall_ms else 0, "stall_ms": stall}
    call = QuickCall(desk, Desk(), SPEECH, steps, LINES[point.line], server, limit_ms=60_000)
    return play_quick(call, point.seed)


@cache
def goodbye_of(line: str, stall_ms: Ms, seed: int) -> tuple[Ms, Ms]:
    """When the goodbye begins and ends at the ear of a caller who lets it be."""
    call = played(Point(line, "", stall_ms, None, seed))
    return call.ear[0].at_ms, _end_ms(call, call.ear[-1].item_id)


def points(line: str, says: str, stall_ms: Ms, seed: int, stride: int = 1, offset: int = 0) -> Iterator[Point]:
    """The points of one row: every ``stride``-th, from number ``offset`` on."""
    began_ms, ended_ms = goodbye_of(line, stall_ms, seed)
    for number in range(offset, (ended_ms - began_ms + 2 * AROUND_MS) // STEP_MS + 1, stride):
        its_seed = seed + number // stride % SEEDS
        from_ms = goodbye_of(line, stall_ms, its_seed)[0] - AROUND_MS
        yield Point(line, says, stall_ms, from_ms + number * STEP_MS, its_seed)


def judged(point: Point, call: QuickResult) -> Verdict:
    """Hold a call to every rule."""
    goodbyes = [item for item in call.spoken if item.tool == "end_call"]
    outputs = call.outputs("end_call")
    if not goodbyes or not outputs or call.ending.by != "agent":
        return Verdict((f"the call was not ended: {call.ending}",), 0, False, 0)
    said = next((line for line in call.caller_lines if line.line_id == point.says), None)
    is_late = point.says in CONFIRMED and said is not None and not any(_is_of(item, said) for item in call.history)
    heard_ms, end_ms = call.heard_ms(goodbyes[-1].item_id), _end_ms(call, goodbyes[-1].item_id)
    open_ms = call.ended_ms - end_ms
    withdrawn_at = _withdrawals(call)
    last = outputs[-1][-1] if outputs[-1] else "none"
    rules = {
        f"the farewell was heard to {heard_ms} of {goodbyes[-1].audio_ms} ms": heard_ms >= goodbyes[-1].audio_ms - 1,
        f"withdrawn at {withdrawn_at}, when nobody spoke": all(_is_spoken_over(call, at) for at in withdrawn_at),
        f"the end calls have {[len(output) for output in outputs]} outputs": all(len(each) == 1 for each in outputs),
        f"the last output does not say that it is over: {last}": "over" in last and "still open" not in last,
        "there was not one hang-up": call.trace.count(b'"do","HangUp"') == 1,
        f"the call was open for {open_ms} ms after the farewell": open_ms <= CAP_MS + DECISION_MS,
        f"anomalies: {call.anomalies}": not any("unconfirmed" in each for each in call.anomalies),
        "a goodbye was withdrawn, and the caller got no answer": _is_each_answered(call),
        "he spoke early enough, and was hung up on": not (
            is_late and said is not None and said.started_ms < end_ms - LAST_MS
        ),
    }
    broken = tuple(what for what, holds in rules.items() if not holds)
    return Verdict(broken, len(withdrawn_at), is_late, open_ms)


def _end_ms(call: QuickResult, item_id: ItemId) -> Ms:
    """When the last of an item reached the ear."""
    return max((span.at_ms + span.to_ms - span.from_ms for span in call.ear if span.item_id == item_id), default=0)


def _is_of(item: HistoryItem, line: CallerLine) -> bool:
    """Whether a turn in history holds the caller's line."""
    return isinstance(item, CallerSaid) and SPEECH[line.line_id].text.rstrip(".").lower() in item.text.lower()


def _withdrawals(call: QuickResult) -> list[Ms]:
    """When the model was told that the call is still open."""
    rows = [json.loads(row) for row in call.trace.splitlines() if b'"PostToolOutput"' in row]
    return [at_ms for at_ms, _, _, posted in rows if "still open" in posted["output"]]


def _is_spoken_over(call: QuickResult, at_ms: Ms) -> bool:
    """Whether the caller spoke then, or had until a moment before: that he speaks is confirmed after 0.8 s."""
    return any(line.started_ms <= at_ms <= line.ended_ms + TOLD_MS for line in call.caller_lines)


def _is_each_answered(call: QuickResult) -> bool:
    """Whether after every output that says that the call is open there is a turn of the caller and a reply to it."""
    history = call.history
    for at, item in enumerate(history):
        if isinstance(item, ToolAnswered) and "still open" in item.output:
            turn = next((after for after in range(at, len(history)) if isinstance(history[after], CallerSaid)), None)
            if turn is None or not any(isinstance(after, AgentSaid) for after in history[turn:]):
                return False
    return True


@dataclass
class Row:
    """What came of all points of one line, speech and stall."""

    line: str
    says: str
    stall_ms: Ms
    calls: int = 0
    withdrawn: int = 0
    late: int = 0
    open_ms: Ms = 0
    """The longest."""
    broken: list[tuple[Point, tuple[str, ...]]] = field(default_factory=list)

    def add(self, point: Point, verdict: Verdict) -> None:
        """Count one call."""
        self.calls += 1
        self.withdrawn += verdict.withdrawals > 0
        self.late += verdict.is_late
        self.open_ms = max(self.open_ms, verdict.open_ms)
        if verdict.broken:
            self.broken.append((point, verdict.broken))


def row(line: str, says: str, stall_ms: Ms, seed: int, stride: int = 1, offset: int = 0) -> Row:
    """Play the points of one row."""
    result = Row(line, says, stall_ms)
    for point in points(line, says, stall_ms, seed, stride, offset):
        result.add(point, judged(point, played(point)))
    return result


def rows(seed: int, stride: int = 1, jobs: int = 1, stalls: Sequence[Ms] = STALLS) -> Iterator[Row]:
    """The whole sweep. With a stride, the rows begin at different points."""
    plans = [(line, says, stall_ms) for line in LINES for says in SPOKEN for stall_ms in stalls]
    given = [(*plan, seed, stride, number % stride) for number, plan in enumerate(plans)]
    if jobs == 1:
        yield from (row(*each) for each in given)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(row, *zip(*given, strict=True))


def main() -> int:
    """Run the sweep and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--stride", type=int, default=1, help="take every so-manieth point")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}, every {options.stride * STEP_MS} ms\n")
    print(f"{'line':22}{'speech':10}{'stall ms':>9}{'calls':>7}{'withdrawn':>11}{'late':>6}{'open ms':>9}{'broken':>8}")
    began_s, calls, broken = time.perf_counter(), 0, []
    for each in rows(options.seed, options.stride, options.jobs):
        calls += each.calls
        broken += each.broken
        print(
            f"{each.line:22}{each.says:10}{each.stall_ms:>9}{each.calls:>7}{each.withdrawn:>11}{each.late:>6}"
            f"{each.open_ms:>9}{len(each.broken):>8}",
            flush=True,
        )
    took_s = time.perf_counter() - began_s
    print(f"\n{calls} calls in {took_s:.0f} s; {len(broken)} broke a rule")
    for point, what in broken[:20]:
        print(f"  {tuple(point)}: {'; '.join(what)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
