"""The room at the caller's end: what it makes of his voice before a microphone hears it. See `Room`."""

from callwright.sim.room.beds import BEDS, room_lines
from callwright.sim.room.microphone import Aec, Microphone
from callwright.sim.room.responses import DRY, ROOMS
from callwright.sim.room.room import Noise, Room, RoomSettings

__all__ = ["BEDS", "DRY", "ROOMS", "Aec", "Microphone", "Noise", "Room", "RoomSettings", "room_lines"]
