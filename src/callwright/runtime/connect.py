"""From the model that an agent names to a connector for it: which address, which key, which transport."""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING, Literal, TypeAlias

from callwright.errors import UsageError, how_to_install
from callwright.runtime.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callwright.core.ports import Connector
    from callwright.declare.agent import ModelChoice
    from callwright.wire.profiles import Profile

Transport: TypeAlias = Literal["auto", "websockets", "picows"]
"""``auto`` is picows where it is installed."""


def connect_to(
    choice: ModelChoice, *, environment: Mapping[str, str] | None = None, transport: Transport = "auto"
) -> Connector:
    """A connector for this model.

    The address is the choice's own, else that in the environment variable of its provider, else the provider's; the
    key is read from there too. ``environment`` is the process's own as it is now, if none is handed in; no file is
    read. Raises UsageError if the key is missing, or the address is of no use.
    """
    variables = os.environ if environment is None else environment
    if choice.profile.needs_key and not key_for(choice.profile, variables):
        raise UsageError(f"no key for {choice.profile.name}: set the environment variable {choice.profile.key_env}")
    return connector(endpoint_of(choice.profile, variables, choice.url), transport=transport)


def key_for(profile: Profile, environment: Mapping[str, str]) -> str:
    """The key for a provider; empty if there is none."""
    return environment.get(profile.key_env, "").strip()


def address_of(profile: Profile, environment: Mapping[str, str], url: str | None = None) -> str:
    """Where a provider's model is: at ``url``, else where the environment says, else where it usually is."""
    return profile.address(url or environment.get(profile.url_env, "").strip())


def endpoint_of(profile: Profile, environment: Mapping[str, str], url: str | None = None) -> Endpoint:
    """The same, with the key if there is one. Raises UsageError for an address or a key that cannot be used."""
    return Endpoint(address_of(profile, environment, url), key_for(profile, environment) or None, profile.key_env)


def connector(endpoint: Endpoint, *, transport: Transport = "auto") -> Connector:
    """A connector for this endpoint. Raises UsageError for picows where it is not installed."""
    has_picows = importlib.util.find_spec("picows") is not None
    if transport == "picows" and not has_picows:
        raise UsageError(f"the transport picows is not installed: {how_to_install('fast')}")
    if transport == "websockets" or not has_picows:
        from callwright.runtime.websocket import WebSocketConnector

        return WebSocketConnector(endpoint)
    from callwright.runtime.fast import PicowsConnector

    return PicowsConnector(endpoint)
