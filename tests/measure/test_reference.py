"""The documentation of figures says what the code measures."""

from __future__ import annotations

from pathlib import Path

from callwright.measure.reference import metrics_table

PAGE = Path(__file__).parents[2] / "docs/reference/metrics.md"
BEGIN, END = "<!-- generated: begin -->\n", "<!-- generated: end -->"


def test_the_page_has_the_table_of_the_code() -> None:
    written = PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    assert written == metrics_table()
