"""Two connections in a network of this process's own, whose way dies under them. Prints the ends that each reported.

``unshare -rn sh -c 'ip link set lo up && exec python dead_way.py'``
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

from callwright.core.ports import Connector
from callwright.ids import Ms
from callwright.runtime.endpoint import Endpoint
from callwright.runtime.fast import PicowsConnector
from callwright.runtime.websocket import WebSocketConnector
from callwright.sim.server.websocket import RealtimeServer
from callwright.testing.connections import EchoPeer, Witness

DEAD_AFTER_MS: Ms = 400
FRAME = bytes(900)


async def speaks(connector: Connector, witness: Witness) -> None:
    """Send as a caller does until the connection has ended."""
    connection = witness.connection = await connector.connect(witness)
    while not witness.ends:
        connection.send(FRAME)
        await asyncio.sleep(0.02)
    await connection.close()


async def main() -> None:
    """Let both speak, and take the loopback away."""
    witnesses = Witness(), Witness()
    async with RealtimeServer(EchoPeer, drain_ms=0) as server:
        endpoint = Endpoint(server.url, dead_after_ms=DEAD_AFTER_MS)
        connectors = WebSocketConnector(endpoint), PicowsConnector(endpoint)
        talk = asyncio.gather(*map(speaks, connectors, witnesses))
        for witness in witnesses:
            await witness.expect(lambda each=witness: each.messages, "the server's greeting arrives")
        await asyncio.create_subprocess_exec("ip", "link", "set", "lo", "down", stderr=subprocess.DEVNULL)
        await talk
    sys.stdout.write("".join(f"{witness.ends}\n" for witness in witnesses))


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(main(), 20))
