"""Writes what is handed on of calls: the pages that show them, and the exports for other judges."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from callwright.errors import UsageError
from callwright.measure.export import export_call
from callwright.measure.report import Assets, Shown, call_page

if TYPE_CHECKING:
    from callwright.cli.playing import Played


def assets() -> Assets:
    """The style sheet and the script of every page."""
    place = resources.files("callwright.measure.report")
    return Assets((place / "style.css").read_text("utf-8"), (place / "script.js").read_text("utf-8"))


def write_calls(calls: Sequence[Played], path: Path) -> None:
    """Write the page of a call, or of several beside each other. Raises UsageError where it cannot be written."""
    write(path, call_page(list(map(shown, calls)), assets()))


def write_export(played: Played, parent: Path) -> Path:
    """Write a call's export to a directory of its own below ``parent``, named as `save` names it; returns that.

    Raises UsageError where it cannot be written.
    """
    directory = played.plan.directory(parent, played.run.seed)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in export_call(played.heard, played.plan.replay(played.run.seed)).items():
            (directory / name).write_bytes(content)
    except OSError as problem:
        raise UsageError(f"{directory} cannot be written ({problem.strerror}): choose another --export") from problem
    return directory


def shown(played: Played) -> Shown:
    """A call that was played, as a page needs it."""
    plan = played.plan
    return Shown(
        call=played.heard,
        run=played.run,
        about=plan.scenario.about,
        settings=tuple(plan.setup.settings()),
        replay=plan.replay(played.run.seed),
        must_fail=plan.must_fail,
        is_as_wanted=plan.held(played.run),
    )


def write(path: Path, text: str) -> None:
    """Write a file, and the directories that it needs. Raises UsageError where that is not possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as problem:
        raise UsageError(f"{path} cannot be written ({problem.strerror}): choose another --report") from problem
