"""Which live server a command is to reach: a provider by its name, or any server by its address."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callwright.errors import UsageError
from callwright.runtime.connect import address_of, connector, endpoint_of, key_for
from callwright.runtime.endpoint import Endpoint
from callwright.runtime.environment import FILE
from callwright.wire.profiles import POLYAI, PROFILES, Profile

if TYPE_CHECKING:
    from callwright.core.ports import Connector


@dataclass(frozen=True, slots=True)
class Server:
    """Whose dialect is spoken and whose key is shown, and where, unless the environment says that."""

    profile: Profile
    url: str | None

    @classmethod
    def parse(cls, name: str, dialect: str | None = None, *, otherwise: Profile = POLYAI) -> Server:
        """What ``--server`` names; ``dialect`` is for an address, which speaks ``otherwise`` if it is left out.

        Raises UsageError for what names no server.
        """
        if "://" in name:
            Endpoint(name)
            return cls(PROFILES[dialect] if dialect else otherwise, name)
        if name not in PROFILES:
            raise UsageError(f"--server {name}: expected {', '.join(PROFILES)}, or an address with ws:// or wss://")
        if dialect:
            raise UsageError(f"--dialect is for a server that is named by its address: leave it out for {name}")
        return cls(PROFILES[name], None)

    def bare(self, environment: Mapping[str, str]) -> Endpoint:
        """Where it is, without a key. Raises UsageError for an address that cannot be used."""
        return Endpoint(address_of(self.profile, environment, self.url))

    def endpoint(self, environment: Mapping[str, str]) -> Endpoint:
        """Where it is, with the key; a server that is named by its address is shown one if there is one.

        Raises UsageError for an address or a key that cannot be used, and for a key that is missing.
        """
        profile = self.profile
        if self.url is None and profile.needs_key and not key_for(profile, environment):
            raise UsageError(
                f"no key for {profile.name}: set {profile.key_env} in the environment, or in {FILE} here; "
                f"callwright check --server {profile.name} says more"
            )
        return endpoint_of(profile, environment, self.url)

    def connector(self, environment: Mapping[str, str]) -> Connector:
        """What opens connections to it. Raises as ``endpoint``."""
        return connector(self.endpoint(environment))


def is_this_machine(host: str) -> bool:
    """Whether this is a name or number of this machine that no other one can reach."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
