"""What people look at of a call that the agent makes: where it was in the callee's tree, its keys, and the waiting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from rich.text import Text

from callwright.cli.printing import clock
from callwright.measure.hold import cost_usd
from callwright.measure.outcome import seconds

if TYPE_CHECKING:
    from callwright.ids import Ms
    from callwright.measure.far import FarSide
    from callwright.measure.figures import CallFigures
    from callwright.sim.record import CallRecord, FarKind

_MARKS: Final[Mapping[FarKind, str]] = {
    "ringing": "r",
    "menu": "m",
    "announcement": "a",
    "music": "~",
    "person": "P",
    "beep": "b",
    "recording": "v",
    "busy": "x",
}
"""How a lane shows what the far end does. All are letters or ``~``, so none is a key; capitals stand out."""


def far_lane(far: FarSide, cell_ms: Ms, count: int) -> str:
    """One character a cell: what the far end did last in it, or the last key that it heard."""
    cells = ["·"] * count
    for span in far.book.spans:
        first, end = span.started_ms // cell_ms, -(-span.ended_ms // cell_ms)
        cells[first:end] = _MARKS[span.kind] * (min(end, count) - first)
    for key in far.book.keys:
        cells[min(key.started_ms // cell_ms, count - 1)] = key.key
    return "".join(cells)


def far_legend(far: FarSide) -> str:
    """What those of its marks mean that occur."""
    kinds = [span.kind for span in far.book.spans]
    told = [f"{mark} {kind}" for kind, mark in _MARKS.items() if kind in kinds]
    return "   ".join([*told, *([f"{far.keys[-1]} key"] if far.keys else [])])


def who_spoke(far: FarSide | None, at_ms: Ms) -> str:
    """Whose line began at this instant: at a far end a person's, or a machine's."""
    if far is None:
        return "caller"
    is_person = any(span.kind == "person" and span.started_ms == at_ms for span in far.book.spans)
    return "person" if is_person else "machine"


def hold(record: CallRecord, far: FarSide, figures: CallFigures) -> Iterator[Text]:
    """Phases, keys, the waiting, what it costs, and the result, one below the other."""
    phases = ", ".join(f"{clock(phase.start_ms)} {phase.name}" for phase in far.phases)
    yield Text.assemble(("line    ", "dim"), phases)
    if record.hold:
        believed = ", ".join(f"{clock(each.since_ms)} {each.phase}" for each in record.hold.phases)
        yield Text.assemble(("client  ", "dim"), believed)
    yield Text.assemble(("keys    ", "dim"), _keys(far, figures))
    yield Text.assemble(("hold    ", "dim"), waiting(far))
    for share in figures.values.get("message_share", ()):
        recorded = ("recorded whole", "") if share == 1 else (f"{share:.0%} of it recorded", "red")
        yield Text.assemble(("message ", "dim"), recorded)
    usd = cost_usd(record)
    cost = "" if usd is None else f", {usd:.4f} USD and tokens"
    yield Text.assemble(("cost    ", "dim"), f"connected for {seconds(record.connected_ms)}{cost}")
    yield Text.assemble(("Result: ", "bold"), record.result or f"none; {record.ended_because}")


def _keys(far: FarSide, figures: CallFigures) -> str:
    after = [f"{seconds(ms)} after the menu" for ms in figures.values.get("key_after_ms", ())]
    return ", ".join([far.keys, *after]) if far.keys else "none"


def waiting(far: FarSide) -> Text:
    """How long one was on hold, what was said meanwhile, and how a person was met."""
    waited, spoken, answered_ms = far.on_hold_ms, len(far.spoken_on_hold), far.answered_after_ms
    until = "person" if far.person else "end"
    text = Text("" if waited is None else f"{seconds(waited)} from key to {until}, ")
    if spoken:
        text.append(f"spoke {spoken} time{'s' * (spoken != 1)} while nobody was there, ", style="red")
    else:
        text.append("nothing said while nobody was there, ")
    if not far.person:
        return text.append("no person reached")
    if answered_ms is None:
        return text.append("a person reached and not answered", style="red")
    return text.append(f"the person answered after {seconds(answered_ms)}")
