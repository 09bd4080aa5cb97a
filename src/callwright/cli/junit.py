"""Batches as JUnit XML, which continuous integration shows: a suite for each, and in it a case for each seed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from callwright.cli.plan import Plan
from callwright.cli.show_batch import Measured, remark
from callwright.measure.batch import RunResult

_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""


def as_junit(batches: Sequence[Measured], unplayed: Sequence[Plan] = ()) -> str:
    """The document. A run that failed is a failure; one that is void or censored is an error, for it was not tried.

    One that is missing and may be is skipped.
    So is a batch of which no run was finished (``unplayed``): what is not there must not look as if all had held.
    The time of a case is the length of the model's connection, in seconds of the call's own clock.
    """
    root = ET.Element("testsuites", name="callwright")
    for batch in batches:
        _suite(root, batch)
    for plan in unplayed:
        suite = _named(root, plan)
        _missing(suite, "no run was finished")
        _count(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def _suite(root: ET.Element, batch: Measured) -> None:
    plan = batch.plan
    suite = _named(root, plan)
    for run in batch.runs:
        case = ET.SubElement(suite, "testcase", classname=suite.attrib["name"], name=f"seed {run.seed}")
        case.set("time", f"{_length_s(run):.3f}")
        if not plan.held(run):
            tag = "skipped" if run.seed in batch.excused else "error" if run.figures.void else "failure"
            _problem(case, tag, remark(plan, run), _kind(run))
    for reason in batch.missing:
        _missing(suite, reason)
    _count(suite)


def _named(root: ET.Element, plan: Plan) -> ET.Element:
    name = ", ".join([plan.scenario.name, plan.client, *plan.setup.settings()])
    return ET.SubElement(root, "testsuite", name=_writable(name))


def _missing(suite: ET.Element, reason: str) -> None:
    case = ET.SubElement(suite, "testcase", classname=suite.attrib["name"], name="all seeds", time="0.000")
    _problem(case, "error", reason, "missing")


def _count(suite: ET.Element) -> None:
    counts = {
        "tests": "testcase",
        "failures": "testcase/failure",
        "errors": "testcase/error",
        "skipped": "testcase/skipped",
    }
    for count, path in counts.items():
        suite.set(count, str(len(suite.findall(path))))


def _problem(case: ET.Element, tag: str, told: str, kind: str) -> None:
    ET.SubElement(case, tag, message=_writable(told), type=kind).text = _writable(told)


def _kind(run: RunResult) -> str:
    """What failed first; what must fail and did not, of a baseline that went right."""
    return run.verdict.failed[0].name if run.verdict.failed else "must_fail"


def _length_s(run: RunResult) -> float:
    return sum(run.figures.values.get("connected_s", ()))


def _writable(text: str) -> str:
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)
