"""Writes the parts of the documentation that are generated, between their markers.

    python scripts/generated_pages.py            write them
    python scripts/generated_pages.py --check    say which are stale, and exit with 1 if one is

README.md holds a real run of the demo; the references of baselines, of scenarios, of phone trees, of the local server's
settings, of the figures and of the rows of a trace come from the scenario files, the schemas, the settings, the
metrics, and the core's events and commands themselves; what the sweeps can see comes from the tests that prove it.
Published figures come from the rows of ``reproduce_figures.py``, and what was measured beside them stays as it is.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir
from dataclasses import fields
from itertools import takewhile
from pathlib import Path
from typing import Any, get_args

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
BEGIN, END = "<!-- generated: begin -->\n", "<!-- generated: end -->"
COLUMNS = 100


def demo() -> str:
    """What ``make demo`` prints of its first scenario."""
    from click.testing import CliRunner

    from callwright.cli.main import main as callwright

    with tempfile.TemporaryDirectory() as directory, chdir(directory):
        done = CliRunner(env={"COLUMNS": str(COLUMNS)}).invoke(callwright, ["demo"], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    shown = "\n".join(trimmed(done.stdout.splitlines()))
    return f"```console\n$ make demo\n{shown}\n```\n"


def trimmed(lines: list[str]) -> Iterator[str]:
    """The lines of the first scenario; three dots stand for the other one, from its title on."""
    from callwright.cli.demo import DEMOS, REFUNDS

    _, other = DEMOS[REFUNDS].scenarios
    shown = [*takewhile(lambda line: not line.startswith(f"{other}: "), lines)]
    assert len(shown) < len(lines), f"{other}: no title of it is among the lines"
    yield from (*shown, "...")


def server_settings() -> str:
    """The settings of the local server as a table, and one for each dialect of what differs in it."""
    from callwright.sim.server import DIALECTS, list_differences, list_settings

    rows = [(f"`{info.name}`", told(info.default), info.about, info.source) for info in list_settings()]
    parts = [table(("setting", "default", "what", "source"), rows)]
    for name in DIALECTS:
        other = [(f"`{info.name}`", told(info.default), info.source) for info in list_differences(name)]
        parts += [f"### Dialect `{name}`\n\n{table(('setting', 'default', 'source'), other)}"] if other else []
    return "\n".join(parts)


def told(value: object) -> str:
    """A default as one reads it; a range whose ends are equal is one number."""
    if isinstance(value, tuple):
        low, high = value
        return f"{low}" if low == high else f"{low} to {high}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def baselines() -> str:
    """Each scenario that has a baseline, with what that fails of the expectations, and what is expected."""
    from callwright.cli.plan import ROOTS
    from callwright.sim.scenario import Scenario, find_scenarios, load_scenario

    def lines(scenario: Scenario) -> Iterator[tuple[str, ...]]:
        if scenario.before:
            fails = ", ".join(f"`{name}`" for name in scenario.before.must_fail)
            yield f"`{scenario.name}`", scenario.about, f"`{scenario.before.client}`", fails

    found = [load_scenario(path) for path in find_scenarios(ROOTS).values()]
    head = ("scenario", "what happens in it", "baseline", "fails with every seed")
    without = ", ".join(f"`{scenario.name}`" for scenario in found if scenario.before is None)
    return f"{table(head, (line for scenario in found for line in lines(scenario)))}\nWithout a baseline: {without}.\n"


def figures() -> str:
    """What was published beside what was measured here; that stays until ``reproduce_figures.py`` plays it again."""
    from scripts.reproduce_figures import stored, tables

    return tables(stored())


def scenario_keys() -> str:
    """The keys of each part of a scenario."""
    return schema_keys("scenario")


def tree_keys() -> str:
    """The keys of each part of a phone tree."""
    return schema_keys("exchange/tree")


def schema_keys(name: str) -> str:
    """The keys of each part of a file as a table, from its schema."""
    schema = json.loads((ROOT / f"src/callwright/sim/{name}.schema.json").read_text("utf-8"))
    parts = {
        "The file": schema,
        **{f"`{name}`": part for name, part in schema["$defs"].items() if "properties" in part},
    }
    return "\n".join(f"### {title}\n\n{table(('key', 'value', 'what'), rows(part))}" for title, part in parts.items())


def rows(part: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Key, value and meaning of each property of an object; required keys are bold."""
    for key, value in part["properties"].items():
        name = f"**`{key}`**" if key in part.get("required", ()) else f"`{key}`"
        yield name, kind(value), value.get("description", "")


def kind(value: Mapping[str, Any]) -> str:
    """What a property may be, and its default."""
    if "enum" in value:
        what = " or ".join(f"`{choice}`" for choice in value["enum"])
    elif "const" in value:
        what = f"`{value['const']}`"
    elif "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        told_as = {
            "share": "a share, 0 to 1",
            "lines": "ids of lines",
            "drawn_line": "id of a line, or ids of lines",
            "music": "id of a line",
            "place": "a node, or `hang_up`",
            "pause": "0 to 21600000; default 1000",
        }
        what = told_as.get(name, f"see `{name}`")
    elif "minimum" in value:
        what = f"{value['minimum']} to {value['maximum']}"
    else:
        what = {"array": "list", "object": "mapping"}.get(value["type"], value["type"])
    default = value.get("default", [])
    return what if default == [] else f"{what}; default {told(default)}"


def metrics() -> str:
    """Every figure with its definition."""
    from callwright.measure.reference import metrics_table

    return metrics_table()


def trace_rows() -> str:
    """The rows of a trace: every event and command of the core, by where it comes from or goes to."""
    from callwright.core import commands, events

    parts = {
        "`on`: from the model": events.ModelEvent,
        "`on`: from the line": events.LineEvent,
        "`on`: from a voice of our own": events.VoiceEvent,
        "`on`: from the tools and the app": events.AppEvent,
        "`do`: to the model": commands.ModelCommand,
        "`do`: to a voice of our own": commands.VoiceCommand,
        "`do`: to the line": commands.LineCommand,
        "`do`: to the ear on the caller's level": commands.WatchCommand,
        "`do`: to the ledger": commands.LedgerCommand,
        "`do`: to the tool runner and the record": commands.ToolCommand | commands.RecordCommand,
    }
    kinds_of = {title: get_args(kinds) or (kinds,) for title, kinds in parts.items()}
    told = [kind for kinds in kinds_of.values() for kind in kinds]
    assert {*told} == {*get_args(events.Event), *get_args(commands.Command)}
    head = ("row", "content", "means")
    return "\n".join(f"### {title}\n\n{table(head, map(row, kinds))}" for title, kinds in kinds_of.items())


def row(kind: type[Any]) -> tuple[str, str, str]:
    """Name, fields and meaning of an event or command."""
    names = ", ".join(f"`{field.name}`" for field in fields(kind))
    return f"`{kind.__name__}`", names, " ".join((kind.__doc__ or "").split()).replace("``", "`")


def mutants() -> str:
    """Each wrong way of doing it that a test has to see, with the invariant that catches it, and where."""
    from tests.ledger import mutants, test_sweep
    from tests.sim import test_refund_sweep

    rows = [(each, name, "schedules of a ledger") for each, (_, name) in test_sweep.CAUGHT.items()]
    rows += [(mutants.what_came_last_counts, "I11", "evidence in every order")]
    rows += [(each, name, "calls about a refund") for each, (_, name) in test_refund_sweep.CAUGHT.items()]
    return table(("mutant", "caught by", "in"), ((f"{each.__name__.replace('_', ' ')}", *rest) for each, *rest in rows))


def table(head: tuple[str, ...], body: Any) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *body]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


PAGES: Mapping[str, Callable[[], str]] = {
    "README.md": demo,
    "docs/how-to/read-a-trace.md": trace_rows,
    "docs/how-to/sweep-calls.md": mutants,
    "docs/reference/baselines.md": baselines,
    "docs/reference/figures.md": figures,
    "docs/reference/metrics.md": metrics,
    "docs/reference/phone-tree.md": tree_keys,
    "docs/reference/scenario.md": scenario_keys,
    "docs/reference/server-settings.md": server_settings,
}


def main(check: bool) -> int:
    """Write the pages, or only look at them. Returns the exit code."""
    stale = []
    for name, generate in PAGES.items():
        path = ROOT / name
        text = path.read_text("utf-8")
        before, _, rest = text.partition(BEGIN)
        fresh = before + BEGIN + generate() + END + rest.partition(END)[2]
        if fresh != text:
            stale.append(name)
            if not check:
                path.write_text(fresh, "utf-8")
    for name in stale:
        print(f"{name}: {'is stale; run scripts/generated_pages.py' if check else 'written'}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
