"""The table of figures for the documentation."""

from __future__ import annotations

from callwright.measure.figures import METRICS


def metrics_table() -> str:
    """Every figure with unit, which of two values is better, definition and window, as a Markdown table.

    The last column says what it rests on where the server is not ours.
    """
    head = "| name | unit | better | what it is | taken | elsewhere |\n|---|---|---|---|---|---|\n"
    rows = [
        f"| `{m.name}` | {m.unit} | {m.aim.value} | {m.definition} | {m.window} | {m.elsewhere.value} |\n"
        for m in METRICS.values()
    ]
    return head + "".join(rows)
