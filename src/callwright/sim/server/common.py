"""What all parts of one session work with."""

from __future__ import annotations

import random
from dataclasses import dataclass

from callwright.sim.server.agenda import Agenda
from callwright.sim.server.history import History
from callwright.sim.server.settings import ServerSettings
from callwright.sim.server.telling import Names, Teller


@dataclass(frozen=True, slots=True)
class Common:
    """One of each for the whole session."""

    settings: ServerSettings
    rng: random.Random
    agenda: Agenda
    history: History
    names: Names
    teller: Teller

    @staticmethod
    def for_session(settings: ServerSettings, rng: random.Random) -> Common:
        """A new session's; its ids carry a tag that is drawn from ``rng``."""
        names = Names(f"{rng.getrandbits(32):08x}")
        teller = Teller(names.next("conv"), with_items=settings.item_events)
        return Common(settings, rng, Agenda(), History(settings.speaks.profile.cut_suffix), names, teller)
