"""Writes what is handed on of calls: the pages that show them, and the exports for other judges."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from callwright.cli.show_batch import Measured, differences, said
from callwright.errors import UsageError
from callwright.measure.export import export_call
from callwright.measure.report import Assets, Shown, ShownAgainst, ShownBatch, ShownRun, batch_page, call_page

if TYPE_CHECKING:
    from callwright.cli.playing import Played
    from callwright.measure.batch import RunResult


PAGE = "report.html"
"""The name of a call's page among its files."""


def assets() -> Assets:
    """The style sheet and the script of every page."""
    place = resources.files("callwright.measure.report")
    return Assets((place / "style.css").read_text("utf-8"), (place / "script.js").read_text("utf-8"))


def write_calls(calls: Sequence[Played], path: Path) -> None:
    """Write the page of a call, or of several beside each other. Raises UsageError where it cannot be written."""
    write(path, call_page(list(map(shown, calls)), assets()))


def write_batches(batches: Sequence[Measured], path: Path, out: Path | None) -> None:
    """Write the page of one batch or several; where ``out`` has the files of the calls, it leads to their pages.

    Raises UsageError where it cannot be written.
    """
    write(path, batch_page([shown_batch(batch, path, out) for batch in batches], assets()))


def shown_batch(batch: Measured, path: Path, out: Path | None) -> ShownBatch:
    """A batch as its page needs it, which is at ``path``."""
    plan = batch.plan

    def page_of(run: RunResult) -> str | None:
        page = out and Path(os.path.relpath(plan.directory(out, run.seed) / PAGE, path.parent))
        return quote(page.as_posix()) if page else None

    calls = [ShownRun(run, plan.held(run), plan.replay(run.seed), page_of(run)) for run in batch.runs]
    against = None
    if batch.against:
        sheet = differences(batch.against)
        against = ShownAgainst(batch.against.title, sheet.head, sheet.rows, tuple(said(batch.against)))
    return ShownBatch(
        batch.title.plain,
        plan.scenario.about,
        batch.summary,
        calls,
        plan.must_fail,
        tuple(batch.missing),
        against,
    )


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
