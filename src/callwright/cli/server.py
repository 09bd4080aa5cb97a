"""Which live server a command is to reach: a provider by its name, or any server by its address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from callwright.errors import UsageError
from callwright.runtime.endpoint import Endpoint
from callwright.wire.profiles import POLYAI, PROFILES, Profile


@dataclass(frozen=True, slots=True)
class Server:
    """Whose dialect is spoken and whose key is shown, and where, unless the environment says that."""

    profile: Profile
    url: str | None

    @classmethod
    def parse(cls, name: str, dialect: str | None = None) -> Server:
        """What ``--server`` names; ``dialect`` is for an address, and PolyAI's if it is left out.

        Raises UsageError for what names no server.
        """
        if "://" in name:
            Endpoint(name)
            return cls(PROFILES[dialect or POLYAI.name], name)
        if name not in PROFILES:
            raise UsageError(f"--server {name}: expected {', '.join(PROFILES)}, or an address with ws:// or wss://")
        if dialect:
            raise UsageError(f"--dialect is for a server that is named by its address: leave it out for {name}")
        return cls(PROFILES[name], None)

    def address(self, environment: Mapping[str, str]) -> str:
        """Where it is."""
        return self.profile.address(self.url or environment.get(self.profile.url_env, "").strip())
