"""Pages and exports of many calls: where they go, and what they lead to."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.cli.calling import CHECK_IN, callwright, variant

from callwright.cli.report import write
from callwright.errors import UsageError


def test_a_batchs_page_leads_to_the_page_of_each_call_wherever_both_are(tmp_path: Path) -> None:
    out, page = tmp_path / "the files", tmp_path / "pages" / "batch.html"
    result = callwright(
        "measure", "check-in", "--out", out, "--report", page, "--export", tmp_path / "judged", "--quiet"
    )
    assert result.exit_code == 0, result.output
    (link,) = re.findall(r'href="([^"]*report\.html)"', page.read_text("utf-8"))
    call = (page.parent / unquote(link)).resolve()
    assert call == (out / "check-in-callwright-1" / "report.html").resolve()
    assert "callwright: check-in, seed 1" in call.read_text("utf-8")
    assert (tmp_path / "judged" / "check-in-callwright-1" / "events.jsonl").is_file()


def test_scenarios_of_one_name_are_not_exported_over_each_other(tmp_path: Path) -> None:
    same = variant(tmp_path, "check-in")
    result = callwright("measure", CHECK_IN, same, "--export", tmp_path / "judged")
    assert result.exit_code == 2
    assert f"would both write to {tmp_path / 'judged' / 'check-in'}-..." in result.stderr


def test_a_page_that_cannot_be_written_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    path = tmp_path / "file" / "page.html"
    with pytest.raises(UsageError, match=f"{re.escape(str(path))} cannot be written .*: choose another --report"):
        write(path, "")
