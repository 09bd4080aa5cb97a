"""When the calls of the live tests are played, and who begins them.

Calls by the wall clock take more than a minute and next to no work. So the local ones begin, in a process of their own,
as soon as it is known that their tests will run; the tests come in the middle of all others, and find them played. Of
the processes that a run has one begins them, and the lock that it hands down is held until they are over.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.live.player import LOCAL

from callwright.runtime.connect import key_for
from callwright.runtime.environment import read_environment
from callwright.wire.profiles import OPENAI, POLYAI

ROOT = Path(__file__).parent.parent.parent
PROVIDERS = {each.name: each for each in (POLYAI, OPENAI)}
PLACE = pytest.StashKey[Path]()

_begun: list[subprocess.Popen[bytes]] = []
"""What this process began; whoever waits for the calls may be another one."""


class Playing:
    """The calls on one server: a lock that is held while they are played, and a file that is there afterwards."""

    def __init__(self, directory: Path, server: str) -> None:
        self._directory = directory
        self._server = server
        self._lock, self._log, self._file = (directory / f"{server}.{end}" for end in ("lock", "log", "json"))

    def begin(self, names: Sequence[str]) -> None:
        """Begin to play these scenarios, unless another process of the run has."""
        self._directory.mkdir(mode=0o700, exist_ok=True)
        mine = self._directory / f"{self._server}.{os.getpid()}"
        lock = os.open(mine, os.O_CREAT | os.O_RDWR)
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            self._lock.hardlink_to(mine)
        except FileExistsError:
            pass
        else:
            command = [sys.executable, "-m", "tests.live.player", self._server, str(self._file), *names]
            with self._log.open("wb") as log:
                quiet = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
                _begun.append(subprocess.Popen(command, cwd=ROOT, pass_fds=[lock], **quiet))
        mine.unlink()
        os.close(lock)

    def outcomes(self) -> dict[str, Any]:
        """What was measured, by scenario, once all calls are over."""
        with self._lock.open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
        if not self._file.exists():
            pytest.fail(f"the calls on {self._server} were not played:\n{self._log.read_text('utf-8', 'replace')}")
        outcomes: dict[str, Any] = json.loads(self._file.read_text("utf-8"))
        return outcomes


def _wanted(items: Sequence[pytest.Item], server: str) -> list[str]:
    """The scenarios that the tests of this server look at."""
    plays = [item for item in items if isinstance(item, pytest.Function) and "call" in item.fixturenames]
    marks = [item.get_closest_marker("plays") for item in plays if item.callspec.params["call"] == server]
    return [str(mark.args[0]) for mark in marks if mark]


def pytest_collection_finish(session: pytest.Session) -> None:
    """The local calls begin."""
    config = session.config
    run = getattr(config, "workerinput", {}).get("testrunuid") or secrets.token_hex(8)
    config.stash[PLACE] = Path(tempfile.gettempdir()) / f"callwright-live-{run}"
    if (names := _wanted(session.items, LOCAL)) and not config.option.collectonly:
        Playing(config.stash[PLACE], LOCAL).begin(names)


def pytest_sessionfinish(exitstatus: int) -> None:
    """Whoever began calls waits for their end, or ends them where the run was interrupted."""
    for player in _begun:
        if exitstatus == pytest.ExitCode.INTERRUPTED:
            player.send_signal(signal.SIGINT)
        player.wait()


@pytest.fixture(scope="session")
def outcomes(request: pytest.FixtureRequest) -> Iterator[Callable[[str], dict[str, Any]]]:
    """What the calls on a server came to; those on a live one begin when the first test asks."""
    place, items = request.config.stash[PLACE], request.session.items
    known: dict[str, dict[str, Any]] = {}

    def of(server: str) -> dict[str, Any]:
        if server not in known:
            playing = Playing(place, server)
            playing.begin(_wanted(items, server))
            known[server] = playing.outcomes()
        return known[server]

    yield of
    if place.exists():
        shutil.rmtree(place)


@pytest.fixture(params=[LOCAL, *(pytest.param(name, marks=pytest.mark.live) for name in PROVIDERS)])
def call(request: pytest.FixtureRequest, outcomes: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """The call that a test looks at, on each server."""
    if request.param in PROVIDERS:
        _skip_unless_asked_for(request.param)
    (name,) = request.node.get_closest_marker("plays").args
    found: dict[str, Any] = outcomes(request.param)[name]
    return found


def _skip_unless_asked_for(provider: str) -> None:
    """Live calls cost money, so that two variables ask for them."""
    asked = ("CALLWRIGHT_LIVE", f"{provider.upper()}_LIVE")
    if lacking := [name for name in asked if os.environ.get(name) != "1"]:
        pytest.skip(f"calls to {provider} cost money; to play them set {' and '.join(f'{name}=1' for name in lacking)}")
    profile = PROVIDERS[provider]
    if not key_for(profile, read_environment(ROOT)):
        pytest.skip(f"no key for {provider}: set {profile.key_env} in the environment, or in .env")
