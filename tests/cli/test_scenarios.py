"""``callwright scenarios``: what can be named."""

from __future__ import annotations

import json

from tests.cli.calling import callwright


def test_scenarios_are_listed_with_what_happens_in_them() -> None:
    result = callwright("scenarios", columns=120)
    assert result.exit_code == 0
    assert any(line.startswith("check-in ") and "talks over the answer" in line for line in result.stdout.splitlines())


def test_the_schema_is_printed_as_it_is_published() -> None:
    assert json.loads(callwright("scenarios", "--schema").stdout)["title"] == "Callwright scenario"
