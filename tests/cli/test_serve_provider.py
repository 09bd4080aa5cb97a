"""``callwright serve-provider``: the stand-in provider as a process, and Ctrl-C ends it in good order."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from tests.cli.calling import callwright


@contextmanager
def serving(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A provider's process and its address."""
    command = [sys.executable, "-m", "callwright", "serve-provider", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server, server.stdout.readline().split(" at ")[1].split(";")[0]
        finally:
            server.kill()


def test_a_provider_serves_until_it_is_asked_to_end() -> None:
    options = ("--charge", "order:9=500,EUR,card:1,card:2", "--fault", "error-after=1*1", "--idempotency", "resume")
    with serving(*options, "--after-ms", "1") as (server, url):
        asked = {"charge": "order:9", "amount": 500, "currency": "EUR", "destination": "card:2"}
        with httpx.Client(base_url=url, trust_env=False) as http:
            answers = [http.post("/refunds", json=asked, headers={"Idempotency-Key": "k"}) for _ in range(2)]
            book = http.get("/book").json()
        server.send_signal(signal.SIGTERM)
        stderr = server.communicate(timeout=10)[1]
    assert server.returncode == 0
    assert [answer.status_code for answer in answers] == [500, 200]
    assert book["faults"]["error-after"] == 1
    assert stderr.startswith("POST /refunds 500 ms=")
    assert stderr.count("\n") == 3


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--fault", "lost-replies=1"], "lost-reply"),
        (["--charge", "order:9=0,EUR,card:1"], "ID=MINOR,CURRENCY,CARD"),
        (["--answers", "soon"], "soon"),
        (["--host", "192.0.2.1", "--port", "0"], "cannot listen on 192.0.2.1"),
    ],
)
def test_wrong_use_is_named(options: list[str], told: str) -> None:
    result = callwright("serve-provider", *options)
    assert result.exit_code == 2
    assert told in result.output
