"""A way to the model that dies without a word is found out: the caller would talk to nobody for many minutes."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from callwright.runtime.endpoint import Endpoint
from callwright.runtime.fast import PicowsConnection, PicowsConnector
from callwright.runtime.websocket import WebSocketConnection, WebSocketConnector
from callwright.sim.server.websocket import RealtimeServer
from callwright.testing.connections import EchoPeer, Witness

OPTION = getattr(socket, "TCP_USER_TIMEOUT", None)
ALONE = ["unshare", "-rn", "sh", "-c"]
"""In a network of one's own, which needs no rights where users may have namespaces."""


def can_be_alone() -> bool:
    try:
        return not subprocess.run([*ALONE, "ip link set lo up"], check=False, capture_output=True).returncode
    except OSError:
        return False


@pytest.mark.skipif(OPTION is None, reason="this system ends no connection for that")
@pytest.mark.parametrize("make", [WebSocketConnector, PicowsConnector])
def test_what_was_sent_may_be_on_its_way_for_10_s(make: type[WebSocketConnector | PicowsConnector]) -> None:
    async def option() -> int:
        async with RealtimeServer(EchoPeer) as server:
            connection = await make(Endpoint(server.url)).connect(Witness())
            assert isinstance(connection, WebSocketConnection | PicowsConnection)
            transport = connection._transport
            raw = getattr(transport, "underlying_transport", transport).get_extra_info("socket")
            set_ms: int = raw.getsockopt(socket.IPPROTO_TCP, OPTION)
            await connection.close()
            return set_ms

    assert asyncio.run(option()) == 10_000


@pytest.mark.skipif(OPTION is None or not can_be_alone(), reason="no network of one's own can be had here")
def test_c113_a_way_that_dies_ends_the_connection() -> None:
    """Over either transport; whoever takes calls opens another session then."""
    script = Path(__file__).parent / "dead_way.py"
    command = f"ip link set lo up && exec {sys.executable} {script}"
    done = subprocess.run([*ALONE, command], check=True, capture_output=True, text=True, timeout=60)
    first, second = done.stdout.splitlines()
    assert first.startswith("[(1006, 'the connection broke: ")
    assert "timed out" in first
    assert second.startswith("[(1006, 'the connection broke: ")
