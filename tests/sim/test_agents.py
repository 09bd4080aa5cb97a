"""Whatever keeps an agent from being loaded is told with the user's own file and line, and never as a traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from callwright.errors import UsageError
from callwright.sim.agents import load_agent, tools_of

HEAD = "import callwright as cw\n"
TYPO = HEAD + 'desk = cw.Agent("night", model=cw.polyai(), instruction="Be brief.")\n'
WELL = HEAD + 'desk = cw.Agent("night", model=cw.polyai(), instructions="Be brief.")\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory whose modules can be imported, and are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    known = set(sys.modules)
    yield tmp_path
    for name in [name for name in sys.modules if name not in known]:
        del sys.modules[name]


def refused(entry: str) -> str:
    with pytest.raises(UsageError) as error:
        load_agent(entry)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("module", "line", "message"),
    [
        (HEAD + "\ndesk = cw.Agent(\n", 3, "SyntaxError: '(' was never closed"),
        (HEAD + "x = 1\n1/0\n", 3, "ZeroDivisionError: division by zero"),
        (HEAD + 'desk = cw.Agent("night", instructions="Be brief.")\n', 2, "missing 1 required positional argument"),
        (TYPO, 2, "unexpected keyword argument"),
        (TYPO, 2, "instructions"),
        (HEAD + 'desk = cw.Agent("night", model="polyai", instructions="Be brief.")\n', 2,
         "agent 'night' needs a model such as callwright.polyai(); got 'polyai'"),
        (HEAD + 'desk = cw.Agent(5, model=cw.polyai(), instructions="Be brief.")\n', 2, "needs a name and"),
        (HEAD + 'desk = cw.Agent("night", model=cw.ModelChoice("acme"), instructions="Be brief.")\n', 2,
         "agent 'night': there is no provider 'acme'"),
        (WELL + "\n@desk.tool\nasync def look_up(ctx: cw.Context[None]) -> cw.Facts: ...\n", 4, "has no docstring"),
        ("import json\njson.loads('{')\n", 2, "JSONDecodeError"),
        ("import sys\nsys.exit('bye')\n", 2, "SystemExit: bye"),
        ("import no_such_library\n", 1, "ModuleNotFoundError: No module named 'no_such_library'"),
        ("from callwright import Agnet\n", 1, "ImportError: cannot import name 'Agnet'"),
        ("raise ValueError('first\\nsecond')\n", 1, "ValueError: first"),
    ],
)  # fmt: skip
def test_what_a_module_raises_is_told_with_the_place_in_it(here: Path, module: str, line: int, message: str) -> None:
    (here / "night.py").write_text(module)
    told = refused("night:desk")
    assert told.startswith(f"{here}/night.py:{line}: ")
    assert message in told


def test_the_place_is_in_the_last_file_of_the_user(here: Path) -> None:
    (here / "night.py").write_text("import shop\n")
    (here / "shop.py").write_text("import json\n\ndef read():\n    json.loads('')\n\nread()\n")
    assert refused("night:desk").startswith(f"{here}/shop.py:4: json.decoder.JSONDecodeError: ")


def test_a_module_that_is_not_there_is_told_with_the_directory_where_it_must_be(here: Path) -> None:
    (here / "night.py").write_text(WELL)
    (here / "hotel").mkdir()
    (here / "hotel" / "desks.py").write_text(WELL)
    told = refused("nihgt:desk")
    assert "there is no module 'nihgt': the directory that holds nihgt.py or nihgt/ must be the working " in told
    assert f"({here})" in told
    assert told.endswith('did you mean "night"?')
    assert refused("hotel.desk:desk") == (
        f"there is no module 'hotel.desk': expected desk.py or desk/ in {here / 'hotel'}; did you mean \"desks\"?"
    )
    assert refused("night.desk:desk") == "there is no module 'night.desk': night is a module, not a package"


def test_a_name_that_is_no_agent_is_told_with_those_that_are(here: Path) -> None:
    (here / "night.py").write_text(WELL + "size = 4\n")
    place, near = f"{here}/night.py: expected", 'did you mean "desk"?'
    assert refused("night:dsk") == (
        f"{place} dsk to be a callwright.Agent; there is nothing of that name (agents there: desk); {near}"
    )
    assert refused("night:size") == f"{place} size to be a callwright.Agent; it is of type int (agents there: desk)"


def test_an_agent_is_found_with_its_tools(here: Path) -> None:
    assert load_agent("callwright.apps.hotel:desk").name == "hotel"
    assert list(tools_of("callwright.apps.hotel:desk")) == ["look_up_booking", "end_call"]
