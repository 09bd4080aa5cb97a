"""A call in words: everything that the picture shows, by time, for whoever does not see it, and to be searched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from callwright.measure.course import WordFate
from callwright.measure.report.lanes import FATES, clock
from callwright.measure.report.markup import Content, Html, tag

if TYPE_CHECKING:
    from callwright.ids import Ms
    from callwright.measure.course import Course, TimedWord, Utterance

Row: TypeAlias = "tuple[Ms, str, Content]"
"""When, whose or what, and the words of it."""

_SET: dict[WordFate, str] = {
    WordFate.CUT: "i",
    WordFate.DOUBTED: "i",
    WordFate.UNHEARD: "del",
    WordFate.BELIEVED: "del",
    WordFate.MISSED: "u",
}
"""How a word that was not simply heard is set."""


def words_table(course: Course, anchor: str) -> Html:
    """One row for each thing that happened; its instant plays the call ``anchor`` from there."""
    shown = [
        tag("tr", tag("td", link(at_ms, anchor)), tag("th", who, scope="row"), tag("td", what))
        for at_ms, who, what in sorted(_rows(course), key=lambda row: row[0])
    ]
    return tag("div", tag("table", tag("tbody", shown), class_="words-table"), class_="wide")


def link(at_ms: Ms | None, anchor: str, *, before_ms: Ms = 0) -> Html:
    """An instant that is played when it is followed, or from so much before it on."""
    if at_ms is None:
        return tag("span", "whole call", class_="when")
    return tag("a", clock(at_ms), class_="when", href=f"#{anchor}", data_t=f"{max(0, at_ms - before_ms) / 1000:.3f}")


def _rows(course: Course) -> Iterator[Row]:
    for each in course.utterances:
        yield each.start_ms, str(each.speaker), list(_sentence(each))
    for use in course.tools:
        yield use.called_ms, "tool", [tag("b", use.name), " ", tag("code", use.arguments)]
        if use.answered_ms is not None:
            yield use.answered_ms, "tool output", [tag("b", use.name), " ", tag("code", use.output)]
    for where, lanes in (("record", course.record), ("provider's book", course.book)):
        for lane in lanes:
            for step in lane.steps:
                yield step.at_ms, where, f"{lane.name}: {step.told}"
            for told in lane.tellings:
                yield told.at_ms, "told", f"{lane.name}, {told.detail}: {told.state}"
    for stretch in course.far.spans if course.far else ():
        yield stretch.started_ms, "far end", f"{stretch.kind}, until {clock(stretch.ended_ms)}"
    for key in course.far.keys if course.far else ():
        yield key.started_ms, "far end", f"key {key.key} heard"
    for span in course.lost:
        yield span.start_ms, "lost", f"what the caller said up to {clock(span.end_ms)} never reached the model"
    for turn in course.turns:
        yield turn.start_ms, "turn", f"the server tells that he speaks, until {clock(turn.end_ms)}"
    for note in course.notes:
        yield note.at_ms, "event", note.told


def _sentence(utterance: Utterance) -> Iterator[Content]:
    """The words of one utterance, set by what became of them, with a mark where it was cut."""
    words = utterance.words
    last = max((number for number, word in enumerate(words) if word.is_audible), default=None)
    for number, word in enumerate(words):
        yield [" " * bool(number), _word(word, utterance)]
        if utterance.was_cut and number == last:
            yield tag("span", " // ", class_="cut-mark", title="cut here")


def _word(word: TimedWord, utterance: Utterance) -> Content:
    name = _SET.get(word.fate)
    return tag(name, word.text, class_=str(word.fate), title=FATES[word.fate, utterance.speaker]) if name else word.text
