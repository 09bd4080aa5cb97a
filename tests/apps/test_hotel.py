"""The hotel desk stands on the public API alone, and answers what it was asked."""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path

import pytest

import callwright as cw
from callwright.apps import hotel
from callwright.ids import ToolCallId
from callwright.sim.vloop import run_virtual

SOURCES = sorted(Path(inspect.getfile(hotel)).parent.rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_an_app_uses_the_public_api_only(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules = [name.name for name in names]
            case ast.ImportFrom(module=str() as module, level=0):
                modules = [module]
            case ast.ImportFrom():
                modules = ["a relative import"]
            case ast.Attribute(value=ast.Name(id="cw"), attr=name):
                assert name in cw.__all__
                continue
            case _:
                continue
        for module in modules:
            assert module == "callwright" or module.partition(".")[0] in sys.stdlib_module_names, module


def look_up(surname: str) -> cw.Facts:
    async def ask() -> cw.Facts:
        context: cw.Context[None] = cw.Context(None, None, ToolCallId("k"))
        return await hotel.look_up_booking(context, surname, cw.Spoken("one moment"))

    return run_virtual(ask())


def test_a_booking_is_found_however_the_name_is_written() -> None:
    assert look_up("Okafor") == look_up(" OKAFOR ") == {"found": True, "room": "214", "nights": 2, "check_in": "Friday"}
    assert look_up("Smith") == {"found": False}


def test_the_holding_line_is_spoken_and_always_asked_for() -> None:
    parameters = hotel.desk.tools["look_up_booking"].schema(spoken=True)["parameters"]
    assert isinstance(parameters, dict)
    assert parameters["properties"]["holding"]["poly_spoken"] is True
    assert parameters["required"] == ["surname", "holding"]
