"""The diagrams in the documentation are those of the tables."""

from __future__ import annotations

import pytest
from scripts import draw_machines
from scripts.draw_machines import PAGE, TABLES, drawn, main
from tests.core import machines


def test_the_page_shows_the_tables_as_they_are():
    assert main(["--check"]) == 0, "run: python scripts/draw_machines.py"


def test_every_machine_is_on_the_page():
    assert tuple(sorted(TABLES, key=lambda table: table.name)) == machines.TABLES


def test_a_page_that_differs_fails_the_check_and_is_rewritten(tmp_path, monkeypatch):
    page = tmp_path / "machines.md"
    text = PAGE.read_text(encoding="utf-8")
    page.write_text(text.replace("QUIET --> CALLER", "QUIET --> NOWHERE"), encoding="utf-8")
    monkeypatch.setattr(draw_machines, "PAGE", page)
    assert main(["--check"]) == 1
    assert main([]) == 0
    assert page.read_text(encoding="utf-8") == text


def test_a_machine_without_a_place_is_an_error():
    with pytest.raises(LookupError, match="0 places for pickup"):
        drawn("# empty")
