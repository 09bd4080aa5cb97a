"""The local realtime server: the protocol's server side from one session machine, in memory and on a socket.

``ServerSession`` is sans-I/O: time and chance are handed in, messages go in and come out as bytes. Who owns what:

========== =====================================================================
settings   every delay and habit, with its source
dialects   what differs between the protocol's dialects
voice      the caller's bytes as 32 ms frames at 16 kHz, each voice or not
listening  where the caller's turns begin and end (the turn rule)
caller     telling the client about those turns; what was said in them
speaking   recorded clips as one reply's audio, and when each piece leaves
replies    the one open response
writing    replies that are written, and what the client reports of them
outside    responses that leave the history alone
errands    what a session asks for that cannot be there at once
history    the conversation, and what a cut leaves of it
config     what ``session.update`` may say
telling    the server events, in the protocol's order
agenda     what is still to be done, by time
common     what all of these work with
session    the whole, behind ``receive`` and ``outgoing``
memory     a connection to it on the running event loop
websocket  a real WebSocket in front of it
========== =====================================================================
"""

from callwright.sim.server.dialects import DIALECTS
from callwright.sim.server.memory import MemoryConnector, Peer
from callwright.sim.server.session import ServerSession
from callwright.sim.server.settings import ServerSettings, SettingInfo, list_differences, list_settings

__all__ = [
    "DIALECTS",
    "MemoryConnector",
    "Peer",
    "ServerSession",
    "ServerSettings",
    "SettingInfo",
    "list_differences",
    "list_settings",
]
