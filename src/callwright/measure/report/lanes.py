"""The picture of a call: lanes below one time axis. Places on it are shares of its length, so that it can be zoomed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callwright.measure.course import WordFate
from callwright.measure.report.markup import Content, Html, tag
from callwright.measure.report.sound import view_box, waveform

if TYPE_CHECKING:
    from callwright.ids import Ms
    from callwright.measure.course import Course, Lane, Span, Step, TimedWord, ToolUse, Utterance
    from callwright.measure.moments import Moment
    from callwright.measure.sides import Sides
    from callwright.sim.record import FarBook

LETTER_MS: Ms = 70
"""A letter of a label is as wide as so much time, at the width at which a page opens."""
_ROW_PX = 20


@dataclass(frozen=True, slots=True)
class Bar:
    """A labelled stretch of a lane."""

    start_ms: Ms
    end_ms: Ms
    label: str
    kind: str
    detail: str = ""


def clock(ms: float) -> str:
    """An instant as it is written everywhere on a page: minutes, seconds and hundredths."""
    hundredths = round(ms / 10)
    return f"{hundredths // 6000}:{hundredths // 100 % 60:02}.{hundredths % 100:02}"


def picture(course: Course, sides: Sides, worst: Sequence[Moment], anchor: str) -> Html:
    """All lanes of the call ``anchor``, without their frame."""
    length_ms = course.length_ms
    waves = [waveform(sides.said, sides.rate_hz, length_ms, "said", f"{anchor}-said")]
    if (sides.sent != sides.said).any():
        waves.insert(0, waveform(sides.sent, sides.rate_hz, length_ms, "sent", f"{anchor}-sent"))
    lost = [
        tag("span", class_="lost", style=_place(span.start_ms, span.end_ms, length_ms), title="never reached the model")
        for span in course.lost
    ]
    ear = waveform(sides.heard, sides.rate_hz, length_ms, "heard", f"{anchor}-heard")
    other = "far end" if course.far else "caller"
    return tag(
        "div",
        _ruler(length_ms),
        flags(worst, length_ms),
        _rows("far end", _far(course.far), length_ms),
        _lane(f"{other} says", [tag("div", lost, waves, class_="waves"), _words(course.said, length_ms)], "caller"),
        _lane(f"{other} hears", [tag("div", ear, class_="waves"), _words(course.spoken, length_ms)], "agent"),
        _rows("written, never heard", _ghosts(course.spoken), length_ms),
        _rows("turns, as the server tells them", map(_turn, course.turns), length_ms),
        _rows("tool calls", (_tool(use, course.sound_ms) for use in course.tools), length_ms),
        [_states(f"record: {lane.name}", lane, course.sound_ms, length_ms) for lane in course.record],
        [_states(f"provider's book: {lane.name}", lane, length_ms, length_ms) for lane in course.book],
        _rows("events", map(_event, course.notes), length_ms),
        _after(course),
        tag("div", class_="hover", aria_hidden="true"),
        tag("div", class_="cursor", aria_hidden="true"),
        class_="axis",
        style=f"--seconds:{length_ms / 1000:.3f}",
    )


def overview(course: Course, worst: Sequence[Moment], anchor: str) -> Html:
    """The whole call at one sight: both voices, where to look, and the part of it that the picture shows."""
    uses = [
        tag("svg", tag("use", href=f"#{anchor}-{kind}"), viewBox=view_box(course.length_ms), preserveAspectRatio="none")
        for kind in ("said", "heard")
    ]
    voices = [tag("div", use, class_=f"voice {kind}") for use, kind in zip(uses, ("said", "heard"), strict=True)]
    window = tag("div", class_="window")
    cursor = tag("div", class_="cursor")
    return tag("div", voices, flags(worst, course.length_ms), window, cursor, class_="overview", aria_hidden="true")


def flags(worst: Sequence[Moment], length_ms: Ms) -> Html:
    """Where to look: a flag for each moment that has an instant."""
    shown = []
    for moment in worst:
        if moment.at_ms is not None:
            kind = "flag failed" if moment.is_failure else "flag"
            shown.append(tag("span", class_=kind, style=_from(moment.at_ms, length_ms), title=moment.what))
    return tag("div", shown, class_="flags")


def _after(course: Course) -> Html | str:
    if course.length_ms == course.sound_ms:
        return ""
    return tag("div", class_="after", style=_from(course.sound_ms, course.length_ms), title="after the call")


def _lane(name: str, content: Content, kind: str) -> Html:
    return tag("div", tag("div", name, class_="name"), tag("div", content, class_="track"), class_=f"lane {kind}")


def _place(start_ms: Ms, end_ms: Ms, length_ms: Ms) -> str:
    left, width = start_ms / length_ms, (min(end_ms, length_ms) - start_ms) / length_ms
    return f"left:{left:.4%};width:{max(width, 0):.4%}"


def _from(at_ms: Ms, length_ms: Ms) -> str:
    return f"left:{min(at_ms, length_ms) / length_ms:.4%}"


def _ruler(length_ms: Ms) -> Html:
    ticks = []
    for second in range(length_ms // 1000 + 1):
        grade = "minute" if second % 60 == 0 else "ten" if second % 10 == 0 else "five" if second % 5 == 0 else ""
        label = f"{second // 60}:{second % 60:02}" if grade else str(second % 60)
        ticks.append(tag("span", label, class_=f"tick {grade}".strip(), style=_from(second * 1000, length_ms)))
    return tag("div", ticks, class_="ruler", aria_hidden="true")


def _words(utterances: Sequence[Utterance], length_ms: Ms) -> list[Html]:
    """The words that sounded, where they did, and where a reply was cut."""
    cuts = [
        tag("span", class_="cut-here", style=_from(each.end_ms, length_ms), title="cut here")
        for each in utterances
        if each.was_cut and each.is_audible
    ]
    heard = [_word(word, each) for each in utterances for word in each.words if word.is_audible]
    return [_stacked(heard, length_ms), *cuts]


def _ghosts(utterances: Sequence[Utterance]) -> list[Bar]:
    """The words that were never heard, where they would have been."""
    return [_word(word, each) for each in utterances for word in each.words if not word.is_audible]


def _word(word: TimedWord, utterance: Utterance) -> Bar:
    kind = f"word {utterance.speaker} {word.fate}"
    return Bar(word.start_ms, word.end_ms, word.text, kind, FATES[word.fate, utterance.speaker])


FATES = {
    (WordFate.HEARD, "caller"): "understood by the server",
    (WordFate.MISSED, "caller"): "said, and not understood by the server",
    (WordFate.HEARD, "agent"): "heard, and in the client's record",
    (WordFate.MISSED, "agent"): "heard, and not in the client's record",
    (WordFate.CUT, "agent"): "cut in the word",
    (WordFate.DOUBTED, "agent"): "near a cut on a live server: heard or not, nobody knows",
    (WordFate.UNHEARD, "agent"): "written, never heard",
    (WordFate.BELIEVED, "agent"): "never heard, and on record as heard",
}
"""What became of a word, by whose it is."""


# --- bars in rows


def _rows(name: str, bars: Iterable[Bar], length_ms: Ms) -> Html | str:
    """A lane of bars; none where there are none."""
    found = list(bars)
    return _lane(name, _stacked(found, length_ms), "rows") if found else ""


def _stacked(bars: Sequence[Bar], length_ms: Ms) -> Html:
    """Bars, of which those that would cover each other, labels included, stand in different rows."""
    ends: list[Ms] = []
    shown = []
    for bar in sorted(bars, key=lambda bar: bar.start_ms):
        row = next((number for number, end_ms in enumerate(ends) if end_ms <= bar.start_ms), len(ends))
        ends += [0] * (row == len(ends))
        ends[row] = max(bar.end_ms, bar.start_ms + LETTER_MS * (len(bar.label) + 1))
        style = f"{_place(bar.start_ms, bar.end_ms, length_ms)};top:{row * _ROW_PX}px"
        detail = f"{clock(bar.start_ms)} {bar.label}" + (f": {bar.detail}" if bar.detail else "")
        shown.append(tag("span", bar.label, class_=f"bar {bar.kind}", style=style, title=detail))
    return tag("div", shown, class_="stack", style=f"height:{len(ends) * _ROW_PX}px")


def _far(book: FarBook | None) -> Iterator[Bar]:
    """What the far end did, and the keys that it heard."""
    for span in book.spans if book else ():
        yield Bar(
            span.started_ms, span.ended_ms, span.kind, f"far {span.kind}", " ".join([span.line_id or "", span.node])
        )
    for key in book.keys if book else ():
        yield Bar(key.started_ms, key.ended_ms, key.key, "far key", "key heard")


def _turn(span: Span) -> Bar:
    return Bar(span.start_ms, span.end_ms, "the caller speaks", "turn")


def _tool(use: ToolUse, end_ms: Ms) -> Bar:
    answer = f"output at {clock(use.answered_ms)}: {use.output}" if use.answered_ms is not None else "no output"
    return Bar(
        use.called_ms,
        end_ms if use.answered_ms is None else use.answered_ms,
        use.name,
        "tool" if use.answered_ms is not None else "tool open",
        f"{use.arguments} {answer}",
    )


def _event(note: Step) -> Bar:
    return Bar(note.at_ms, note.at_ms, note.state, "event", note.detail)


def _states(name: str, lane: Lane, end_ms: Ms, length_ms: Ms) -> Html:
    """A lane of states, each up to the next, and below it what is owed and told of them."""
    steps = []
    for step, until_ms in zip(lane.steps, [*(each.at_ms for each in lane.steps[1:]), end_ms], strict=True):
        kind = f"state {step.state.partition(' ')[0]}"
        place = _place(min(step.at_ms, length_ms), max(step.at_ms, until_ms), length_ms)
        steps.append(tag("span", step.state, class_=kind, style=place, title=f"{clock(step.at_ms)} {step.told}"))
    owed = []
    for span in lane.owed:
        title = f"owed to the caller from {clock(span.start_ms)} to {clock(span.end_ms)}"
        owed.append(tag("span", class_="owed", style=_place(span.start_ms, span.end_ms, length_ms), title=title))
    told = [
        Bar(each.at_ms, each.at_ms, f"telling it: {each.state}", f"telling {each.state}", each.detail)
        for each in lane.tellings
    ]
    rows = [tag("div", steps, class_="stack", style=f"height:{_ROW_PX}px")]
    rows += [tag("div", owed, class_="debts")] if owed else []
    rows += [_stacked(told, length_ms)] if told else []
    return _lane(name, rows, "states")
