"""The page of many calls: how many held, the figures as strips of dots, and a row for each call, the worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callwright.claims.cards import without_cards
from callwright.measure.batch import scored
from callwright.measure.figures import METRICS
from callwright.measure.moments import rank
from callwright.measure.report.markup import Html, tag
from callwright.measure.report.page import Assets, badge, document, judged, left_open

if TYPE_CHECKING:
    from callwright.measure.batch import RunResult

DOTS_MAX = 400
"""So many dots of a strip are told by their seeds; of more than that only where they are."""


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A call of a batch."""

    run: RunResult
    is_as_wanted: bool
    """Whether it ended as it should."""
    replay: str
    """The command that plays it again."""
    page: str | None = None
    """Where its own page is, seen from that of the batch; None if there is none."""


@dataclass(frozen=True, slots=True)
class ShownAgainst:
    """What the calls are compared with."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    """Texts, the first of each a name."""
    said: Sequence[tuple[str, str]]
    """What the differences come to in words, each with its label."""


@dataclass(frozen=True, slots=True)
class ShownBatch:
    """The calls of one scenario that are to be shown."""

    title: str
    about: str
    """What happens in the scenario."""
    summary: Mapping[str, Any]
    """Its figures, as `measure.batch` sums them up."""
    calls: Sequence[ShownRun]
    must_fail: tuple[str, ...] | None
    """What has to fail in every call; None where all has to hold."""
    missing: Sequence[str] = ()
    """What is missing of the batch as a whole."""
    against: ShownAgainst | None = None


def batch_page(batches: Sequence[ShownBatch], assets: Assets) -> str:
    """A whole HTML file that shows these batches, one below the other; at least one."""
    title = batches[0].title if len(batches) == 1 else f"{len(batches)} batches"
    heading = tag("h1", title) if len(batches) > 1 else ""
    return document(title, [heading, [_batch(batch, len(batches) > 1) for batch in batches]], assets)


def _batch(batch: ShownBatch, is_one_of_many: bool) -> Html:
    name = "h2" if is_one_of_many else "h1"
    return tag(
        "section",
        tag(name, batch.title),
        tag("p", without_cards(batch.about), class_="about"),
        tag("p", _sentence(batch), class_=f"verdict {'held' if _is_as_wanted(batch) else 'failed'}"),
        [tag("p", without_cards(missing), class_="verdict failed") for missing in batch.missing],
        _expectations(batch),
        left_open([call.run for call in batch.calls]),
        _strips(batch),
        _against(batch.against) if batch.against else "",
        _rows(batch),
        class_="batch",
    )


def _is_as_wanted(batch: ShownBatch) -> bool:
    return all(call.is_as_wanted for call in batch.calls) and not batch.missing


def _sentence(batch: ShownBatch) -> str:
    """How many calls came out how."""
    counts = Counter(_judged(batch, call) for call in batch.calls)
    told = ", ".join(f"{count} {word}" for word, count in sorted(counts.items(), key=lambda pair: -pair[1]))
    return f"{len(batch.calls)} call{'s' * (len(batch.calls) > 1)}: {told}."


def _judged(batch: ShownBatch, call: ShownRun) -> str:
    return judged(call.run, is_as_it_must=bool(batch.must_fail) and call.is_as_wanted)


def _expectations(batch: ShownBatch) -> Html | str:
    """What did not hold, in how many calls, the worst first."""
    failed = Counter(failure.name for call in batch.calls for failure in call.run.verdict.failed)
    rows = [
        tag("li", tag("b", name), f" did not hold in {failed[name]} of {len(batch.calls)}", class_="failed")
        for name in sorted(failed, key=rank)
    ]
    return tag("ul", rows, class_="moments") if rows else ""


# --- strips


def _strips(batch: ShownBatch) -> Html:
    """The figures: those that differ as strips, the others in a line."""
    metrics = batch.summary["metrics"]
    same = [f"{name} {each['median']:g}" for name, each in metrics.items() if each["min"] == each["max"]]
    strips = [_strip(name, each, batch) for name, each in metrics.items() if each["min"] != each["max"]]
    return tag(
        "div",
        strips,
        tag("p", "The same in every call: ", ", ".join(same), class_="hint") if same else "",
        class_="strips",
    )


def _strip(name: str, each: Mapping[str, Any], batch: ShownBatch) -> Html:
    """A dot for each value, from the smallest to the largest, over the median and the interval that it lies in."""
    low, span = each["min"], each["max"] - each["min"]

    def at(value: float) -> str:
        return f"{(value - low) / span:.2%}"

    unit, metric = METRICS[name].unit, METRICS[name]
    band = ""
    told = f"median {each['median']:g}"
    if each["interval"]:
        first, last = each["interval"]
        band = tag("span", class_="band", style=f"left:{at(first)};width:{(last - first) / span:.2%}")
        told += f", 95 %: {first:g} to {last:g}"
    dots = [
        tag(
            "span",
            class_="dot failed" if any(failure.name == name for failure in run.verdict.failed) else "dot",
            style=f"left:{at(value)}",
            title=f"seed {run.seed}: {value:g} {unit}" if each["n"] <= DOTS_MAX else None,
        )
        for run in (call.run for call in batch.calls)
        for value in scored(run).get(name, ())
    ]
    middle = tag("span", class_="median", style=f"left:{at(each['median'])}", title=told)
    return tag(
        "div",
        tag("div", tag("b", name), f" {unit}, {told}", class_="strip-name", title=metric.definition),
        tag("div", band, middle, dots, class_="strip"),
        tag("div", tag("span", f"{low:g}"), tag("span", f"{each['max']:g}"), class_="ends"),
        class_="strip-of",
    )


def _against(against: ShownAgainst) -> Html:
    """The differences in words, and as a table."""
    said = [tag("li", tag("b", label), " ", told) for label, told in against.said]
    head = tag("tr", [tag("th", name, scope="col") for name in against.head])
    rows = [
        tag("tr", tag("th", name, scope="row"), [tag("td", text) for text in texts]) for name, *texts in against.rows
    ]
    return tag(
        "div",
        tag("h3", f"against {against.title}"),
        tag("ul", said, class_="moments"),
        tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="wide") if rows else "",
        class_="against",
    )


# --- calls


def _rows(batch: ShownBatch) -> Html:
    """A row for each call, the worst first."""
    rows = [
        tag(
            "tr",
            tag("th", str(call.run.seed), scope="row"),
            tag("td", badge(_judged(batch, call))),
            tag("td", [tag("div", line) for line in _why(call)]),
            tag("td", tag("a", "look and listen", href=call.page) if call.page else ""),
            tag("td", tag("code", call.replay)),
        )
        for call in sorted(batch.calls, key=_badness)
    ]
    head = tag("tr", [tag("th", name, scope="col") for name in ("seed", "", "what did not hold", "", "play it again")])
    return tag("div", tag("table", tag("thead", head), tag("tbody", rows), class_="calls"), class_="wide")


def _badness(call: ShownRun) -> tuple[bool, int, int, int]:
    """Calls that did not end as they should first, those with the worst failure before the others."""
    failed = call.run.verdict.failed
    return call.is_as_wanted, min((rank(each.name) for each in failed), default=rank("")), -len(failed), call.run.seed


def _why(call: ShownRun) -> Iterator[str]:
    """What did not hold, line by line, the worst first."""
    if call.run.figures.void:
        yield without_cards(call.run.figures.void)
        return
    for failure in sorted(call.run.verdict.failed, key=lambda each: rank(each.name)):
        yield without_cards(f"{failure.name}: wanted {failure.wanted}, got {failure.got}")
