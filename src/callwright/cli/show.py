"""What people look at: a call's timeline, what was heard beside what is believed, figures, lists.

Everything is plain text first and coloured second, so that it reads the same in a pipe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from callwright.cli.playing import CLIENT_LOG, Played
from callwright.cli.printing import clock, digits, heading, put, unwrapped, width
from callwright.cli.show_batch import left_open, verdict
from callwright.cli.show_hold import far_lane, far_legend, hold, who_spoke
from callwright.measure.figures import METRICS
from callwright.measure.outcome import seconds, what_went_right, what_went_wrong, words
from callwright.sim.record import Tells
from callwright.sim.speech import normalise
from callwright.sim.world import OURS

if TYPE_CHECKING:
    from callwright.audio.echo import EchoReport
    from callwright.ids import Ms
    from callwright.measure.figures import CallFigures, HeardFarewell, HeardReply
    from callwright.sim.record import CallRecord
    from callwright.sim.scenario import Scenario

_LANE = 14
"""Columns of the names before the timeline's lanes."""
_MARKS: Mapping[str, str] = {
    ">": "held, then sent",
    "x": "lost",
    "|": "session ready",
    "/": "reply cut",
    "]": "line ended",
}
"""What the marks below the lanes mean."""
_STEPS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)

_LEGEND = "(word) // cut in the word   [words] never heard   {words} heard, not believed"
_IN_DOUBT = "   (words?) heard or not, nobody knows"

HEADLINE: Mapping[str, str] = {
    "heard_error_ms": "heard error",
    "unheard_words_in_transcript": "unheard words in the transcript",
    "unheard_words_in_history": "in the history",
    "heard_words_missing": "heard words missing",
    "yield_latency_ms": "silent after",
    "starts_over": "starts over",
    "pickup_lost_words": "words lost at pickup",
    "goodbye_played_ms": "goodbye heard for",
    "late_talk_over": "hung up on",
}
"""The figures of the one line under a call, and how they are named there."""
HEADLINE_CALLING: Mapping[str, str] = {
    "spoke_on_hold": "spoke on hold",
    "keys_pressed": "keys",
    "seconds_on_hold": "on hold for",
    "answered_after_ms": "answered after",
    "message_share": "message recorded",
    "goodbye_played_ms": "goodbye heard for",
}
"""Those of a call that the agent makes."""
HEADLINE_ACTING: Mapping[str, str] = {
    "duplicate_effects": "effects too many",
    "missing_effects": "missing",
    "untold_at_hangup": "untold",
    "false_claims_heard": "false claims",
    "corrections_heard": "corrected",
    "time_to_truth_ms": "told after",
    "unheard_words_in_transcript": "unheard words in the transcript",
}
"""Those of a call in which something may be done on the world."""


NOTED_MAX = 20
"""How many anomalies of a call are printed."""


def call(played: Played, directory: Path) -> None:
    """One call, whole."""
    figures = played.run.figures
    put(_title(played), "", _timeline(played, width()), "", _transcript(played), _legend(played), "")
    put(*_edges(played), *_hold(played), *_books(played.record), "")
    put(
        _figures_table(figures),
        "",
        *verdict(played.plan, [played.run]),
        *noted(played.record.anomalies),
        _files(played, directory),
    )


def noted(anomalies: Sequence[str]) -> list[str]:
    """What happened out of order, line by line; of very much the beginning."""
    told = [f"noted   {what}" for what in anomalies[:NOTED_MAX]]
    more = len(anomalies) - NOTED_MAX
    return [*told, f"noted   and {more} more, which are in the trace"] if more > 0 else told


def demo(calls: Sequence[tuple[Played, Path]]) -> None:
    """The same call with one client after the other: of each the picture, the words, and what came of it."""
    plan = calls[0][0].plan
    lag = f"; the line plays {plan.setup.lag_ms} ms behind the stream" if plan.setup.lag_ms else ""
    put(Text.assemble((plan.scenario.name, "bold"), f": {plan.scenario.about}{lag}."))
    for played, directory in calls:
        put("", _title(played), "", _timeline(played, width()), "", _transcript(played), _legend(played), "")
        put(
            *_edges(played),
            *_hold(played),
            *_books(played.record),
            "",
            _sentence(played),
            _headline(played),
            *left_open([played.run]),
            _files(played, directory),
        )


def scenarios(found: Iterable[Scenario]) -> None:
    """Names, and what happens in each."""
    table = Table.grid(padding=(0, 3, 0, 0))
    for scenario in found:
        table.add_row(Text(scenario.name, style="bold"), scenario.about)
    put(table)


def _title(played: Played) -> Text:
    return heading(played.plan, f"seed {played.run.seed}")


# --- the picture ----------------------------------------------------------------------------------------------------


def _timeline(played: Played, width: int) -> Text:
    """Lanes over the seconds of the call: what the caller said, what he heard, and where the edges are."""
    record = played.record
    cells = width - _LANE - 1
    length_ms = len(record.recording.agent) * 1000 // record.recording.rate_hz
    cell_ms = max(100, -(-length_ms // cells // 100) * 100)
    count = -(-length_ms // cell_ms)
    said = lane([(line.started_ms, line.ended_ms) for line in record.caller_lines], cell_ms, count)
    heard = lane([(span.at_ms, span.at_ms + span.to_ms - span.from_ms) for span in record.ear], cell_ms, count)
    both = "".join("^" if "█" == one == two else " " for one, two in zip(said, heard, strict=True))
    marks = edge_lane(record, played.run.figures, cell_ms, count)
    far, other = played.heard.far, "far end" if played.heard.far else "caller"
    lanes = [
        Text.assemble((f"{other} says".ljust(_LANE), "bold"), (said, "cyan")),
        Text.assemble((f"{other} hears".ljust(_LANE), "bold"), (heard, "green")),
        Text.assemble(("marks".ljust(_LANE), "dim"), (marks, "yellow")),
        Text.assemble(" " * _LANE, (ruler(cell_ms, count, cells), "dim")),
        Text.assemble(" " * _LANE, (edge_legend(marks), "dim")),
    ]
    if both.strip():
        lanes.insert(2, Text.assemble(("both at once".ljust(_LANE), "dim"), (both, "red")))
    if far:
        lanes.insert(0, Text.assemble(("far end".ljust(_LANE), "dim"), (far_lane(far, cell_ms, count), "magenta")))
        lanes.append(Text.assemble(" " * _LANE, (far_legend(far), "dim")))
    return Text("\n").join(lanes)


def lane(spans: Iterable[tuple[Ms, Ms]], cell_ms: Ms, count: int) -> str:
    """One character a cell: full where at least half of it is speech, half where some is."""
    covered = [0] * count
    for start_ms, end_ms in spans:
        for cell in range(start_ms // cell_ms, min(count, -(-end_ms // cell_ms))):
            covered[cell] += min(end_ms, (cell + 1) * cell_ms) - max(start_ms, cell * cell_ms)
    return "".join("█" if 2 * ms >= cell_ms else "▄" if ms else "·" for ms in covered)


def edge_lane(record: CallRecord, figures: CallFigures, cell_ms: Ms, count: int) -> str:
    """One mark a cell: audio held or lost until the session was ready, that instant, cut replies, the line's end."""
    cells = [" "] * (count + 1)
    ready_ms = record.ended_ms if record.session_ready_ms is None else record.session_ready_ms
    held_ms = ready_ms if record.held_sent_ms else 0
    marks = [(at_ms, ">") for at_ms in range(0, held_ms, cell_ms)]
    for start_ms, end_ms in figures.lost:
        marks += [(at_ms, "x") for at_ms in range(start_ms // cell_ms * cell_ms, end_ms, cell_ms)]
    marks += [(record.session_ready_ms, "|")] if record.session_ready_ms is not None else []
    marks += [(reply.ended_ms, "/") for reply in figures.replies if reply.was_cut and reply.ended_ms is not None]
    for at_ms, mark in [*marks, (record.ended_ms, "]")]:
        cells[min(at_ms // cell_ms, count)] = mark
    return "".join(cells).rstrip()


def edge_legend(marks: str) -> str:
    """What those of the marks mean that occur."""
    return "   ".join(f"{mark} {meaning}" for mark, meaning in _MARKS.items() if mark in marks)


def ruler(cell_ms: Ms, count: int, cells: int) -> str:
    """Seconds below the cells, at least eight cells apart."""
    step_s = next((step for step in _STEPS_S if step * 1000 >= 8 * cell_ms), _STEPS_S[-1])
    marks = ""
    for second in range(0, count * cell_ms // 1000 + 1, step_s):
        label = f"{second} s"
        column = second * 1000 // cell_ms
        if column + len(label) <= cells:
            marks = marks.ljust(column) + label
    return marks


# --- the words ------------------------------------------------------------------------------------------------------


def _transcript(played: Played) -> Table:
    """The call's words by time: on the left what reached the caller's ear, on the right what is believed of it."""
    speech = played.plan.scenario.lines
    table = Table(box=None, padding=(0, 2, 0, 0), expand=True, header_style="bold", pad_edge=False)
    far = played.heard.far
    table.add_column("", width=13 if far else 11, style="dim")
    table.add_column("said and heard at the far end" if far else "heard by the caller", ratio=1)
    table.add_column("believed by client and server", ratio=1)
    rows: list[tuple[Ms, str, Text, Text]] = [
        (line.started_ms, who_spoke(far, line.started_ms), Text(speech[line.line_id].text, style="cyan"), Text())
        for line in played.record.caller_lines
    ]
    sent_ms = {item.item_id: item.started_ms for item in played.record.spoken}
    for reply in played.run.figures.replies:
        at_ms = sent_ms[reply.item_id] if reply.started_ms is None else reply.started_ms
        rows.append((at_ms, "agent", heard_words(reply), believed_words(reply)))
    for at_ms, who, heard, believed in sorted(rows, key=lambda row: row[0]):
        table.add_row(f"{clock(at_ms)} {who}", heard, believed)
    return table


def _legend(played: Played) -> Text:
    has_doubt = any(reply.in_doubt for reply in played.run.figures.replies)
    return Text(_LEGEND + _IN_DOUBT if has_doubt else _LEGEND, style="dim")


def heard_words(reply: HeardReply) -> Text:
    """The words that were heard; in braces those that the client's record lacks, in brackets what is in doubt."""
    words = reply.heard.split()
    known = len(words) if reply.in_transcript is None else _shared(words, reply.in_transcript.split())
    text = _marked(words, known, "{}", "yellow") if words else Text("nothing", style="dim")
    if reply.partial:
        text.append(f" ({reply.partial.strip('.,!?')})", style="dim")
    if reply.in_doubt:
        text.append(f" ({reply.in_doubt.rstrip('.,!?')}?)", style="dim")
    return text.append(" //", style="red") if reply.was_cut else text


def believed_words(reply: HeardReply) -> Text:
    """What the client's record and the server's history hold; in brackets the words that were never heard."""
    told = reply.in_history if reply.in_transcript is None else reply.in_transcript
    beliefs = {"client": told, "server": reply.in_history}
    client, server = (list(map(normalise, text.split())) for text in beliefs.values())
    if client != server:
        return Text("\n").join(
            Text.assemble((f"{who}: ", "dim"), _belief(text, reply)) for who, text in beliefs.items()
        )
    if client == list(map(normalise, reply.heard.split())) and not reply.was_cut:
        return Text("the same", style="dim")
    return _belief(told, reply)


def _belief(text: str, reply: HeardReply) -> Text:
    words = text.split()
    heard = _shared(words, [*reply.heard.split(), *([reply.partial] if reply.partial else []), *reply.in_doubt.split()])
    return _marked(words, heard, "[]", "red") if words else Text("nothing", style="dim")


def _shared(words: Sequence[str], others: Sequence[str]) -> int:
    """How many words both begin with; the last of ``others`` may have been heard in part."""
    count = 0
    for word, other in zip(words, others, strict=False):
        if normalise(word) != normalise(other):
            break
        count += 1
    return count


def _marked(words: Sequence[str], known: int, brackets: str, style: str) -> Text:
    """Words of which those from ``known`` on stand in brackets."""
    text = Text(" ".join(words[:known]))
    if known < len(words):
        text.append(" " if known else "")
        text.append(f"{brackets[0]}{' '.join(words[known:])}{brackets[1]}", style=style)
    return text


# --- the edges ------------------------------------------------------------------------------------------------------


def _edges(played: Played) -> Iterator[Text]:
    """How the call began and ended: the first words, each goodbye, and the end of the line, one below the other."""
    record, figures = played.record, played.run.figures
    yield Text.assemble(("pickup  ", "dim"), pickup(record, figures))
    for number, farewell in enumerate(figures.farewells, 1):
        what = goodbye(record, figures, farewell, is_last=number == len(figures.farewells))
        yield Text.assemble(("goodbye ", "dim"), what)
    if record.echo is not None:
        yield Text.assemble(("echo    ", "dim"), echo(record.echo))
    ended = f"{clock(record.ended_ms)} by the {record.ended_by}: {record.ended_because}"
    yield Text.assemble(("ended   ", "dim"), ended)


def _hold(played: Played) -> Iterator[Text]:
    """Where a call that the agent makes was, and how it waited."""
    if played.heard.far:
        yield from hold(played.record, played.heard.far, played.run.figures)


def echo(report: EchoReport) -> str:
    """What the canceller found, and how much softer it made it lately."""
    softer = "nothing was played" if report.erle_db is None else f"{report.erle_db} dB softer at the end"
    if report.delay_ms is None:
        return f"canceller on, no delay found, {softer}"
    return f"canceller on, {report.delay_ms} ms late, clocks {report.drift_ppm} ppm apart, {softer}"


def _books(record: CallRecord) -> Iterator[Text]:
    """What the client's own ledger holds in the end, and below it what the provider's book does."""
    if not record.action_tools:
        return
    if not record.has_witness:
        yield Text.assemble(("book    ", "dim"), "the client did not come to it")
        return
    for line in ledger(record):
        yield Text.assemble(("ledger  ", "dim"), line)
    for effect in record.book:
        yield Text.assemble(("book    ", "dim"), f"{effect.text}: {effect.status} {_when(effect.at_ms)}")
    if not record.book:
        yield Text.assemble(("book    ", "dim"), "nothing")


def ledger(record: CallRecord) -> Iterator[str]:
    """Each operation with its state, its attempts and what was told of it, line by line."""
    if record.tells is not Tells.ALL:
        yield "the client's own"
    elif record.client != OURS:
        yield f"none: what {record.client} knows ends with the call"
    elif not record.ledger:
        yield "nothing"
    for operation in record.ledger:
        yield f"{operation.what}: {operation.state}"
        for number, (what, outcome) in enumerate(operation.attempts, 1):
            yield f"  attempt {number}  {what}: {outcome}"
        for milestone, how_far, at_ms in operation.told:
            yield f"  told       {milestone}: {how_far} {_when(at_ms)}"


def _when(at_ms: Ms) -> str:
    return "before the call" if at_ms < 0 else f"at {clock(at_ms)}"


def pickup(record: CallRecord, figures: CallFigures) -> Text:
    """What became of the caller's first words."""
    ready_ms = record.session_ready_ms
    parts = ["the session was never ready" if ready_ms is None else f"session ready after {seconds(ready_ms)}"]
    parts += [f"{seconds(record.held_sent_ms)} held and sent"] if record.held_sent_ms else []
    lost_ms, count = (sum(figures.values.get(name, ())) for name in ("pickup_lost_ms", "pickup_lost_words"))
    if not lost_ms:
        return Text(", ".join([*parts, "nothing lost"]))
    lost = f"{seconds(lost_ms)} lost" + (f" with {words(count)}" if count else "")
    return Text.assemble(", ".join(parts), ", ", (lost, "red"))


def goodbye(record: CallRecord, figures: CallFigures, farewell: HeardFarewell, *, is_last: bool) -> Text:
    """What was heard of a goodbye, and what came of it."""
    whole = seconds(farewell.whole_ms)
    at = "" if farewell.started_ms is None else f"{clock(farewell.started_ms)} "
    heard = f"heard whole, {whole}" if farewell.is_whole else f"heard for {seconds(farewell.heard_ms)} of {whole}"
    text = Text(at + heard if farewell.whole_ms else "without a sound")
    if not is_last:
        return text.append(", taken back: the call went on")
    if record.ended_by != "agent":
        return text.append(f", and the call was ended by the {record.ended_by}")
    if sum(figures.values.get("late_talk_over", ())):
        return text.append(", and hung up on a caller who spoke", style="red")
    if not farewell.is_whole:
        return text.append(", cut off by the hang-up", style="red")
    for after_ms in figures.values.get("open_after_goodbye_ms", ()):
        text.append(f", hung up {after_ms:.0f} ms after it")
    return text


# --- the figures ----------------------------------------------------------------------------------------------------


def _headline(played: Played) -> Text:
    taken = HEADLINE_ACTING if played.record.action_tools else HEADLINE
    figures, names = played.run.figures, HEADLINE_CALLING if played.heard.far else taken
    measured = [(label, name) for name, label in names.items() if name in figures.values]
    shown = [f"{label} {_value(name, max(figures.values[name]))}" for label, name in measured]
    return Text(" · ".join(shown))


def _sentence(played: Played) -> Text:
    """What came of the call: what went wrong, one sentence each, or that nothing did."""
    wrong = what_went_wrong(played.record, played.run.figures)
    if wrong:
        return Text(" ".join(wrong), style="bold red")
    return Text(what_went_right(played.record, played.run.figures), style="bold green")


def _figures_table(figures: CallFigures) -> Table:
    """Every figure with its values, without shares: one call has too few events for them."""
    table = Table.grid(padding=(0, 3, 0, 0))
    for name, values in figures.values.items():
        if METRICS[name].is_rate:
            continue
        table.add_row(name, " ".join(_value(name, value) for value in values))
    return table


def _value(name: str, value: float) -> str:
    unit = METRICS[name].unit
    return f"{digits(value)} {unit}" if unit in ("ms", "s") else digits(value)


def _files(played: Played, directory: Path) -> Text:
    names = ("call.wav", "trace.jsonl", "figures.json", *(() if played.output is None else (CLIENT_LOG,)))
    return unwrapped((f"files   {directory}/{{{','.join(names)}}}", "dim"))
