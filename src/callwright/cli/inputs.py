"""What a scenario's calls are played from, as hashes: batches of other inputs cannot be compared."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from callwright.sim.scenario import Scenario


def inputs_of(scenario: Scenario) -> dict[str, str]:
    """Each input by name: files by the SHA-256 of their content, what is installed by its versions.

    An agent is the module that the scenario names, or its package. Raises OSError for a file that cannot be read.
    """
    return {
        "scenario": _hash([scenario.path]),
        "rules": _hash([scenario.rules]),
        "speech": _directory(scenario.speech, "*"),
        "agent": _module(scenario.agent.partition(":")[0]),
        "versions": _versions(),
    }


def _module(name: str) -> str:
    spec = find_spec(name)
    origin = Path(spec.origin) if spec and spec.origin else None
    if origin is None or not origin.is_file():
        return ""
    return _directory(origin.parent, "*.py") if spec and spec.submodule_search_locations else _hash([origin])


def _directory(path: Path, pattern: str) -> str:
    return _hash(sorted(file for file in path.rglob(pattern) if file.is_file()))


def _hash(paths: Iterable[Path]) -> str:
    whole = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        whole.update(f"{path.name} {len(content)}\n".encode() + content)
    return whole.hexdigest()


@cache
def _versions() -> str:
    """Callwright and what it needs, each with its version; an extra that is not installed is left out."""
    needed = [re.match(r"[\w.-]+", each) for each in metadata.requires("callwright") or () if "extra ==" not in each]
    names = ["callwright", *(found[0] for found in needed if found)]
    return ", ".join(f"{name} {metadata.version(name)}" for name in names)
