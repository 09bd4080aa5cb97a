"""``callwright serve``: any client can call the local server, and Ctrl-C ends it in good order."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.cli.calling import callwright
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from callwright.cli.serve import _check_key


@contextmanager
def serving(*options: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """A server's process, its address, and what it says of how an agent finds it."""
    command = [sys.executable, "-m", "callwright", "serve", "--port", "0", *options]
    with subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            first, hint = server.stdout.readline(), server.stdout.readline()
            url = hint.split("DIALOG_REALTIME_URL=")[1].split()[0]
            assert url in first
            yield server, url, hint
        finally:
            server.kill()


async def first_event(url: str, key: str) -> str:
    async with connect(url, additional_headers={"Authorization": f"Bearer {key}"}) as connection:
        return str(json.loads(await connection.recv())["type"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_takes_calls_until_it_is_asked_to_end(number: signal.Signals) -> None:
    with serving("booking", "--dialect", "polyai", CALLWRIGHT_SERVE_KEY="sk-test") as (server, url, hint):
        assert asyncio.run(first_event(url, "sk-test")) == "session.created"
        with pytest.raises(InvalidStatus, match="401"):
            asyncio.run(first_event(url, "sk-other"))
        server.send_signal(number)
        stdout, stderr = server.communicate(timeout=10)
    assert server.returncode == 0
    assert "POLY_API_KEY=KEY" in hint
    assert stderr.startswith("session=1 client=127.0.0.1:")
    assert stderr.count("\n") == 1
    assert "sk-test" not in hint + stdout + stderr


def test_quiet_tells_of_no_session() -> None:
    with serving("--quiet") as (server, url, _):
        assert asyncio.run(first_event(url, "any")) == "session.created"
        server.send_signal(signal.SIGINT)
        assert server.communicate(timeout=10)[1] == ""


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--port", "0", "--host", "192.0.2.1", "--key", "sk-test"], "cannot listen on 192.0.2.1"),
        (["--key", " "], "the key is empty"),
        (["no-such-scenario"], "no-such-scenario"),
        (["--chat-url", "http://127.0.0.1:9/v1", "--chat-model", "m"], "say --listen, too"),
        (["--listen", "--chat-url", "http://127.0.0.1:9/v1"], "--chat-url and --chat-model go together"),
        (["--dialect", "latin"], "latin"),
    ],
)
def test_wrong_use_is_named(options: list[str], told: str) -> None:
    result = callwright("serve", *options)
    assert result.exit_code == 2
    assert told in result.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "", "build-7"])
def test_c151_a_server_that_others_can_reach_asks_for_a_key(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever finds it could talk at its owner's cost."""
    monkeypatch.delenv("CALLWRIGHT_SERVE_KEY", raising=False)
    result = callwright("serve", "--port", "0", "--host", host)
    assert result.exit_code == 2
    assert "ask for a --key" in result.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_a_server_that_others_cannot_reach_needs_none(host: str) -> None:
    _check_key(host, None)


def test_free_speech_is_not_served_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py_nanotts", None)
    result = callwright("serve", "--port", "0", "--listen")
    assert result.exit_code == 2
    assert "pip install 'callwright[local]'" in result.stderr
