"""Speak into a refund at every instant of it, with every fault of the provider, and see that it is once, and told.

Run ``python scripts/sweep_refund.py``; ``--stride 5`` takes every fifth point, ``--seed`` other chances, ``--jobs``
several processes. In one row of each fault the connection to the model breaks at that instant instead. Prints one row
for each fault and speech; exits with 1 if an invariant was broken anywhere. Each point that breaks one is printed with
what plays it again: ``--play "F3 lost-reply" other-card 5420 7``.

```
caller     refund it, please                      speech
agent                  ~~ holding line ~~             ~~~~ it is done ~~~~
provider             sent │ ░░░ fault ░░░ │ settled
points               |.|.|.|.|.|.|.|.|.|.|.|.|.|.|.|.|.|.|.|.|.|.|.|.|.|.|   every 20 ms, until 2 s after the outcome
```

The model is that of the refund desk. On some seeds it has a bad habit: it claims too early, names the wrong card,
refuses to say it, or calls the tool once more; on some the line loses marks, or has none and reports what it takes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import callwright.apps.refunds as app
from callwright.declare.actions import Money
from callwright.ids import Ms
from callwright.sim.caller import Anchor, Step, Trigger
from callwright.sim.line import LineKind, LineSettings
from callwright.sim.network import NetworkSettings
from callwright.sim.provider import Answers, Cancel, Fault, ProviderSettings
from callwright.sim.provider.book import Status
from callwright.sim.quick import QuickCall, QuickProvider, QuickResult, ToldSpeech, play_quick, spoken_line
from callwright.sim.quick.judging import Case, Errand, judged, utterances
from callwright.sim.rules import RulesModel
from callwright.sim.speech import Speech

STEP_MS: Ms = 20
BEHIND_MS: Ms = 2_000
"""How long after the outcome was told the caller may speak."""
TIMEOUT_MS: Ms = 2_000
"""How long the provider's client waits."""
AFTER_MS: Ms = 20 * 60_000
"""The world goes on for so long after a call: by then every doubt is resolved or a person's."""
LIMIT_MS: Ms = 90_000
PARTY = "customer:81"

HERE = Path(app.__file__).parent
RECORDED = Speech.load(HERE / "speech")
SPEECH = ToldSpeech(
    [
        spoken_line("refund", "Please refund order 4417 to my Visa 4242.", 1_800),
        spoken_line("did-it", "Did that go through?", 900),
        spoken_line("same-card", "Please refund order 4417 to my Visa 4242.", 1_800),
        spoken_line("other-card", "Wrong card, use the Mastercard 8812.", 1_600),
        spoken_line("never-mind", "Actually, never mind.", 900),
        spoken_line("other-order", "Refund line 1 of order 6210 to my Visa 4242.", 1_900),
        spoken_line("thats-all", "That's all, goodbye.", 900),
        *(line for line in RECORDED.values() if line.kind == "agent"),
    ]
)
FIRST = Errand()
LINE_1 = Errand("order:6210", "line:1", Money(1500, "USD"), "refund_line")
BREAKS = "connection-breaks"
"""What happens instead of his speaking: the model's connection is gone, and the call goes on over another one."""
SPOKEN: Mapping[str, tuple[Errand, ...]] = {
    "did-it": (FIRST,),
    "same-card": (FIRST,),
    "other-card": (FIRST,),
    "never-mind": (FIRST,),
    "other-order": (FIRST, LINE_1),
    BREAKS: (FIRST,),
}
"""What he says, and all that he wants then."""
HABITS: tuple[Mapping[str, float], ...] = (
    {},
    {"names_wrong_card": 0.5},
    {},
    {"claims_too_early": 0.5},
    {},
    {"refuses_to_say": 0.5},
    {},
    {"repeats_call": 0.5},
)
LINES: Mapping[str, LineSettings] = {
    "marks": LineSettings(LineKind.PHONE),
    "marks lost": LineSettings(LineKind.PHONE, lose_marks=tuple(range(5, 1_000, 3))),
    "pulls": LineSettings(LineKind.SPEAKER),
}
TURNS = len(HABITS) * len(LINES)
"""The points of a row take turns with so many seeds, and each seed has its habits and its line."""


def _provider(*faults: str, by_hand: tuple[str, ...] = (), **habits: Any) -> QuickProvider:
    """A provider in which each of these goes wrong once."""
    settings = ProviderSettings(faults={name: Fault(1.0, 1) for name in faults}, lag_ms=1_000, **habits)
    return QuickProvider(settings, TIMEOUT_MS, by_hand, AFTER_MS)


PROVIDERS: Mapping[str, QuickProvider] = {
    "none": _provider(),
    "F2 lost-request": _provider("lost-request"),
    "F3 lost-reply": _provider("lost-reply"),
    "F4 late": _provider("late", late_ms=(2_500, 60_000)),
    "F5 error-before": _provider("error-before"),
    "F6 error-after": _provider("error-after"),
    "F12 already-refunded": _provider("already-refunded", by_hand=(FIRST.subject,)),
    # the first request lands after the look-up that does not find it, and is forgotten when it is sent again
    "F12 forgotten-key": _provider("late", "already-refunded", late_ms=(2_200, 2_240), kept_ms=0),
    "no-cancel": _provider(cancel=Cancel.NEVER),
    "sync": _provider(answers=Answers.SYNC, settles_ms=1_500),
    "sync too-slow": _provider(answers=Answers.SYNC),
}
"""The last one answers when the refund is settled, which is later than its client waits."""


class Point(NamedTuple):
    """One call of the sweep."""

    fault: str
    says: str
    at_ms: Ms | None
    """When he speaks; None: he does not."""
    seed: int


@cache
def _model(habit: int) -> RulesModel:
    return RulesModel.load(HERE / "refunds.model.yaml", RECORDED, HABITS[habit])


def habit_of(seed: int) -> int:
    """The number of the habits that the model has on this seed."""
    return seed % len(HABITS)


def line_of(seed: int) -> str:
    """The name of the line that the call has on this seed."""
    return tuple(LINES)[seed % len(LINES)]


def played(point: Point) -> QuickResult:
    """The call of a point."""
    steps, network = [Step(Trigger(Anchor.PICKUP, 100), "refund")], NetworkSettings()
    if point.at_ms is None:
        steps.append(Step(Trigger(Anchor.PICKUP, 40_000), None))
    else:
        if point.says == BREAKS:
            network = NetworkSettings(drops_at_ms=(point.at_ms,))
        else:
            steps.append(Step(Trigger(Anchor.PICKUP, point.at_ms), point.says))
        steps.append(Step(Trigger(Anchor.REPLY_END, 3_000), "thats-all"))
        steps.append(Step(Trigger(Anchor.REPLY_END, 3_000), "thats-all"))
        steps.append(Step(Trigger(Anchor.REPLY_END, 3_000), None))
    call = QuickCall(
        app.desk,
        _model(0 if point.at_ms is None else habit_of(point.seed)),
        SPEECH,
        steps,
        server={"item_events": False},
        deps=app.Shop(),
        line=LINES[line_of(point.seed)],
        network=network,
        party=PARTY,
        provider=PROVIDERS[point.fault],
        limit_ms=LIMIT_MS,
    )
    return play_quick(call, point.seed)


@cache
def span_of(fault: str, seed: int) -> tuple[Ms, Ms]:
    """From when to when the caller may speak: from the tool call to a while after the outcome that is told first."""
    call = played(Point(fault, "", None, seed))
    began_ms = next(item.started_ms for item in call.spoken if item.tool == "issue_refund")
    ended_ms = next(each.ended_ms for each in utterances(call) if each.tool is None and "4242" in each.whole)
    return began_ms - began_ms % STEP_MS, ended_ms + BEHIND_MS


def points(fault: str, says: str, seed: int, stride: int = 1, offset: int = 0) -> Iterator[Point]:
    """The points of one row: every ``stride``-th, from number ``offset`` on."""
    from_ms, to_ms = span_of(fault, seed)
    for number in range(offset, (to_ms - from_ms) // STEP_MS + 1, stride):
        yield Point(fault, says, from_ms + number * STEP_MS, seed + number // stride % TURNS)


def case_of(point: Point) -> Case:
    """What is expected at a point."""
    habits = HABITS[habit_of(point.seed)]
    return Case(
        PROVIDERS[point.fault].settings,
        SPOKEN[point.says],
        strict_cards=point.fault == "none",
        says_what_it_is_told="repeats_call" in habits or not habits,
    )


@dataclass
class Row:
    """What came of all points of one fault and speech."""

    fault: str
    says: str
    calls: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[Point, list[str]]] = field(default_factory=list)

    def add(self, point: Point, call: QuickResult) -> None:
        """Count one call."""
        assert call.books is not None
        broken = judged(call, case_of(point))
        self.calls += 1
        slots = [each.slot for each in SPOKEN[point.says]]
        live = [each for each in call.books.book.refunds() if each.status.is_live and each.ask.slot in slots]
        self.counts["effects"] += len(live)
        self.counts["mastercard"] += any(each.card == "card:8812" for each in live)
        self.counts["fired"] += all(call.books.fired.get(name) for name in PROVIDERS[point.fault].settings.faults)
        self.counts["stopped"] += any(each.status is Status.CANCELLED for each in call.books.book.refunds())
        self.counts["heard"] += b'"state":"heard"' in call.trace
        self.counts["outside"] += any(row.done_at_ms is None for row in call.books.outbox)
        self.counts["reminded"] += b'"state":"missed"' in call.trace
        self.counts["corrected"] += b'"state":"correction"' in call.trace
        if broken:
            self.broken.append((point, broken))


COLUMNS = ("fired", "effects", "mastercard", "stopped", "heard", "outside", "reminded", "corrected")


def row(fault: str, says: str, seed: int, stride: int = 1, offset: int = 0) -> Row:
    """Play the points of one row."""
    result = Row(fault, says)
    for point in points(fault, says, seed, stride, offset):
        result.add(point, played(point))
    return result


def rows(seed: int, stride: int = 1, jobs: int = 1) -> Iterator[Row]:
    """The whole sweep. With a stride, the rows begin at different points."""
    plans = [(fault, says) for fault in PROVIDERS for says in SPOKEN]
    given = [(*plan, seed, stride, number % stride) for number, plan in enumerate(plans)]
    if jobs == 1:
        yield from (row(*each) for each in given)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(row, *zip(*given, strict=True))


def show(point: Point) -> int:
    """Play one point and print what was heard, done and believed."""
    call = played(point)
    assert call.books is not None
    print(f"{tuple(point)}, habits {dict(HABITS[habit_of(point.seed)])}, line {line_of(point.seed)}\n")
    said = [(line.started_ms, "caller", SPEECH[line.line_id].text) for line in call.caller_lines]
    said += [(each.began_ms, each.tool or "agent", f"{each.text}  | {each.ended_ms} ms") for each in utterances(call)]
    for at_ms, who, text in sorted(said):
        print(f"{at_ms:>7}  {who:13} {text}")
    print(f"{call.ended_ms:>7}  ended by {call.ending.by}: {call.ending.reason}\n")
    for each in (*call.books.book.entries, *call.books.told, *call.books.outbox, *call.untold, *call.anomalies):
        print(f"  {each}")
    broken = judged(call, case_of(point))
    print(*(broken or ["every invariant holds"]), sep="\n")
    return 1 if broken else 0


def replay(point: Point) -> str:
    """The command that plays a point again."""
    return f'python scripts/sweep_refund.py --play "{point.fault}" {point.says} {point.at_ms} {point.seed}'


def _print_rows(swept: Iterator[Row]) -> tuple[int, list[tuple[Point, list[str]]]]:
    print(f"{'fault':22}{'says':12}{'calls':>6}" + "".join(f"{name:>11}" for name in COLUMNS) + f"{'broken':>8}")
    calls, broken = 0, []
    for each in swept:
        calls += each.calls
        broken += each.broken
        counts = "".join(f"{each.counts[name]:>11}" for name in COLUMNS)
        print(f"{each.fault:22}{each.says:12}{each.calls:>6}{counts}{len(each.broken):>8}", flush=True)
    return calls, broken


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sweep and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--stride", type=int, default=1, help="take every so-manieth point")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--play", nargs=4, metavar=("FAULT", "SAYS", "AT_MS", "SEED"), help="play one point")
    options = parser.parse_args(arguments)
    if options.play:
        fault, says, at_ms, seed = options.play
        return show(Point(fault, says, int(at_ms), int(seed)))
    print(f"seed {options.seed}, every {options.stride * STEP_MS} ms\n")
    began_s = time.perf_counter()
    calls, broken = _print_rows(rows(options.seed, options.stride, options.jobs))
    print(f"\n{calls} calls in {time.perf_counter() - began_s:.0f} s; {len(broken)} broke an invariant")
    for point, what in broken[:40]:
        print(f"  {replay(point)}\n    " + "\n    ".join(what))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
