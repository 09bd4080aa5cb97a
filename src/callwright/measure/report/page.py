"""The page of a call, or of several beside each other: what came of each, where to listen, the picture, the words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callwright.claims.cards import without_cards
from callwright.measure.batch import reservations
from callwright.measure.course import course_of
from callwright.measure.figures import METRICS
from callwright.measure.moments import moments
from callwright.measure.outcome import what_went_right, what_went_wrong
from callwright.measure.report.lanes import FATES, overview, picture
from callwright.measure.report.markup import Content, Html, tag
from callwright.measure.report.sound import sound_uri
from callwright.measure.report.words import link, words_table
from callwright.measure.sides import hushed
from callwright.measure.void import is_censored

if TYPE_CHECKING:
    from callwright.ids import Ms
    from callwright.measure.batch import RunResult
    from callwright.measure.figures import CallFigures
    from callwright.measure.hearing import HeardCall
    from callwright.measure.moments import Moment

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; media-src data:; img-src data:"
"""What a page may load: nothing but itself."""
BEFORE_MS: Ms = 800
"""A moment is played from a little before it."""


@dataclass(frozen=True, slots=True)
class Assets:
    """What every page carries: its style sheet and its script."""

    style: str
    script: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A call that is to be shown."""

    call: HeardCall
    run: RunResult
    about: str
    """What happens in its scenario."""
    settings: tuple[str, ...]
    """What is out of the ordinary, as it is typed."""
    replay: str
    """The command that plays it again."""
    must_fail: tuple[str, ...] | None
    """What has to fail in it; None where all has to hold."""
    is_as_wanted: bool
    """Whether it ended as it should."""

    @property
    def title(self) -> str:
        """Who took which call."""
        record = self.call.record
        return f"{record.client}: {', '.join([record.scenario, f'seed {record.seed}', *self.settings])}"


def call_page(calls: Sequence[Shown], assets: Assets) -> str:
    """A whole HTML file that shows these calls, one below the other; at least one."""
    scenarios = dict.fromkeys(shown.call.record.scenario for shown in calls)
    title = calls[0].title if len(calls) == 1 else f"{', '.join(scenarios)}: {len(calls)} calls, one below the other"
    about = dict.fromkeys(without_cards(shown.about) for shown in calls)
    heading = [tag("h1", title), [tag("p", text, class_="about") for text in about]]
    parts = [_call(number, shown) for number, shown in enumerate(calls, 1)]
    legend = tag("details", tag("summary", "What the marks mean"), _legend(), class_="legend")
    return document(title, [heading, parts, legend], assets)


def document(title: str, body: Content, assets: Assets) -> str:
    """A whole HTML file with this body, which can load nothing."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Html(assets.style)),
    )
    shown = tag("body", tag("main", body), tag("script", Html(assets.script)))
    return f"<!doctype html>\n{tag('html', head, shown, lang='en')}\n"


def judged(run: RunResult, *, is_as_it_must: bool) -> str:
    """A word for how a call was judged."""
    if run.figures.void:
        return "censored" if is_censored(run.figures.void) else "void"
    if not run.verdict.failed:
        return "held"
    return "failed as it must" if is_as_it_must else "failed"


def left_open(runs: Sequence[RunResult]) -> list[Html]:
    """What is not judged, and what is estimated, because server or client is not ours."""
    return [tag("p", tag("b", str(kind)), " ", told, class_="hint") for kind, told in reservations(runs)]


def badge(word: str) -> Html:
    """The same, to be seen from afar."""
    return tag("span", word, class_=f"badge {_CSS.get(word, word)}")


_CSS = {"failed as it must": "must"}
"""Classes of what was judged, where they are not the word itself."""


def _sentence(shown: Shown) -> str:
    """What came of a call."""
    figures, failed = shown.run.figures, shown.run.verdict.failed
    if figures.void:
        return without_cards(figures.void)
    wrong = " ".join(what_went_wrong(shown.call.record, figures))
    if wrong or not failed:
        return wrong or what_went_right(shown.call.record, figures)
    return f"Not as expected: {', '.join(failure.name for failure in failed)}."


def _call(number: int, shown: Shown) -> Html:
    call, record = shown.call, shown.call.record
    course = course_of(call)
    worst = moments(call, shown.run.figures, shown.run.verdict)
    sides = hushed(record.recording, course.hushed)
    word = judged(shown.run, is_as_it_must=bool(shown.must_fail) and shown.is_as_wanted)
    anchor = f"call-{number}"
    return tag(
        "section",
        tag("h2", tag("span", record.client, class_="client"), " ", badge(word)),
        tag("p", _sentence(shown), class_=f"verdict {_CSS.get(word, word)}"),
        left_open([shown.run]),
        _moments(worst, anchor),
        tag(
            "div",
            tag("audio", controls=True, preload="metadata", src=sound_uri(sides)),
            tag("span", "caller left, agent as heard right", class_="hint"),
            tag("span", [_zoom("wider", "in"), _zoom("narrower", "out"), _zoom("whole call", "fit")], class_="zoom"),
            class_="player",
        ),
        overview(course, worst, anchor),
        tag(
            "div",
            picture(course, sides, worst, anchor),
            class_="scroll",
            tabindex="0",
            role="slider",
            aria_label=f"Position in the call of {record.client}: arrows move it, space plays",
            aria_valuemin="0",
            aria_valuemax=f"{course.sound_ms / 1000:.2f}",
            aria_valuenow="0",
            data_length=f"{course.length_ms / 1000:.3f}",
        ),
        tag("details", tag("summary", "The call in words"), words_table(course, anchor)),
        tag("details", tag("summary", "Figures"), _figures(shown.run.figures)),
        tag("p", "Play it again: ", tag("code", shown.replay), class_="replay"),
        id=anchor,
        class_="call",
    )


def _zoom(label: str, how: str) -> Html:
    return tag("button", label, type="button", data_zoom=how)


def _moments(worst: Sequence[Moment], anchor: str) -> Html | str:
    rows = [
        tag(
            "li",
            link(moment.at_ms, anchor, before_ms=BEFORE_MS),
            " ",
            moment.what,
            class_="failed" if moment.is_failure else None,
        )
        for moment in worst
    ]
    return tag("ol", rows, class_="moments") if rows else ""


def _figures(figures: CallFigures) -> Html:
    rows = [
        tag(
            "tr",
            tag("th", name, scope="row", title=METRICS[name].definition),
            tag("td", ", ".join(f"{value:g}" for value in values)),
            tag("td", METRICS[name].unit),
        )
        for name, values in figures.values.items()
        if not METRICS[name].is_rate
    ]
    return tag("table", tag("tbody", rows), class_="figures")


def _legend() -> Html:
    words = [
        tag("li", tag("span", "word", class_=f"bar word {who} {fate} sample"), f" {who}: {meaning}")
        for (fate, who), meaning in FATES.items()
    ]
    others = [
        tag("li", tag("span", class_="cut-here sample"), " a reply was cut"),
        tag("li", tag("span", class_="lost sample"), " the caller's voice never reached the model"),
        tag("li", tag("span", class_="owed sample"), " an outcome that is known and that the caller has not heard"),
        tag("li", tag("span", class_="flag failed sample"), " an expectation that did not hold"),
        tag("li", tag("span", class_="flag sample"), " worth a look"),
    ]
    return tag("ul", words, others)
