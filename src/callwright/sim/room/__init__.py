"""The room at the caller's end: what it makes of his voice before a microphone hears it. See `Room`."""

from callwright.sim.room.beds import BEDS, room_lines, together
from callwright.sim.room.microphone import Microphone
from callwright.sim.room.responses import DRY, ROOMS
from callwright.sim.room.room import ECHO_DELAY_MS, LEVELS_DB, LONGEST_DELAY_MS, Aec, Noise, Room, RoomSettings

__all__ = [
    "BEDS",
    "DRY",
    "ECHO_DELAY_MS",
    "LEVELS_DB",
    "LONGEST_DELAY_MS",
    "ROOMS",
    "Aec",
    "Microphone",
    "Noise",
    "Room",
    "RoomSettings",
    "room_lines",
    "together",
]
