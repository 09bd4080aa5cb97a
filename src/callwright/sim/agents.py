"""Finds the agent that ``module:object`` names; what keeps it from being loaded is told with the user's file and line.

/home/ada/night/desk.py:12: TypeError: Agent.__init__() missing 1 required positional argument: 'model'
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
import sysconfig
import traceback
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import callwright
from callwright.declare.agent import Agent
from callwright.declare.tools import Tool
from callwright.errors import DeclarationError, UsageError
from callwright.sim.advice import did_you_mean

_LIBRARIES = (
    *(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    Path(callwright.__file__).parent,
)
"""Where code lies that is not the user's."""
_UNKNOWN_SETTING = re.compile(r"Agent\.__init__\(\) got an unexpected keyword argument '(\w+)'")


def load_agent(entry: str) -> Agent:
    """The agent that ``module:object`` names. Raises UsageError, whatever the module raises as it is imported."""
    module_name, _, attribute = entry.partition(":")
    module = imported(module_name)
    agent = getattr(module, attribute, None)
    if isinstance(agent, Agent):
        return agent
    agents = [name for name, value in vars(module).items() if isinstance(value, Agent)]
    found = f"it is of type {type(agent).__name__}" if hasattr(module, attribute) else "there is nothing of that name"
    raise UsageError(
        f"{module.__file__ or module_name}: expected {attribute} to be a callwright.Agent; {found} "
        f"(agents there: {', '.join(agents) or 'none'}){did_you_mean(attribute, agents)}"
    )


def tools_of(entry: str) -> Mapping[str, Tool]:
    """An agent's tools, by name. Raises as ``load_agent`` does."""
    return load_agent(entry).tools


def make_deps(entry: str) -> object:
    """What the object that ``module:object`` names returns when it is called with nothing. Raises UsageError."""
    module_name, _, attribute = entry.partition(":")
    module = imported(module_name)
    make = getattr(module, attribute, None)
    if not callable(make):
        found = (
            f"it is of type {type(make).__name__}" if hasattr(module, attribute) else "there is nothing of that name"
        )
        raise UsageError(
            f"{module.__file__ or module_name}: expected {attribute} to be what makes a call's deps; {found}"
            f"{did_you_mean(attribute, vars(module))}"
        )
    try:
        return make()
    except Exception as problem:  # a user's code may raise anything
        raise UsageError(_report(problem)) from problem


def imported(name: str) -> ModuleType:
    """A user's module. Raises UsageError, whatever the module raises as it is imported."""
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as problem:  # a user's module may raise anything
        absent = problem.name if isinstance(problem, ModuleNotFoundError) else None
        is_own = absent is not None and f"{name}.".startswith(f"{absent}.")
        raise UsageError(_absence(absent) if absent and is_own else _report(problem)) from problem


def _absence(name: str) -> str:
    """That a module is not there, and where it would have to be."""
    package, _, last = name.rpartition(".")
    if not package:
        here = Path.cwd()
        near = did_you_mean(name, [found.name for found in pkgutil.iter_modules([str(here)])])
        return (
            f"there is no module {name!r}: the directory that holds {name}.py or {name}/ must be the working "
            f"directory ({here}) or be named in PYTHONPATH{near}"
        )
    places = list(getattr(sys.modules.get(package), "__path__", ()))
    if not places:
        return f"there is no module {name!r}: {package} is a module, not a package"
    near = did_you_mean(last, [found.name for found in pkgutil.iter_modules(places)])
    return f"there is no module {name!r}: expected {last}.py or {last}/ in {places[0]}{near}"


def _report(problem: BaseException) -> str:
    """What was raised, behind the last place in the user's own code."""
    if isinstance(problem, DeclarationError):
        return str(problem)  # which begins with its place
    if isinstance(problem, SyntaxError):
        text = f"{type(problem).__name__}: {problem.msg}"
    else:
        text = next(traceback.TracebackException.from_exception(problem).format_exception_only()).splitlines()[0]
    unknown = _UNKNOWN_SETTING.fullmatch(str(problem))
    near = did_you_mean(unknown[1], [setting.name for setting in fields(Agent)]) if unknown else ""
    return f"{_place(problem)}: {text}{near}"


def _place(problem: BaseException) -> str:
    if isinstance(problem, SyntaxError) and problem.filename and Path(problem.filename).is_file():
        return f"{problem.filename}:{problem.lineno}"
    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if not frame.filename.startswith("<")]
    own = [frame for frame in frames if not any(Path(frame.filename).is_relative_to(place) for place in _LIBRARIES)]
    last = (own or frames)[-1]
    return f"{last.filename}:{last.lineno}"
