"""From the model that an agent names to a connector for it: which address, which key, which transport."""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING, Literal, TypeAlias

from callwright.errors import UsageError
from callwright.runtime.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callwright.core.ports import Connector
    from callwright.declare.agent import ModelChoice

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
    profile = choice.profile
    variables = os.environ if environment is None else environment
    key = variables.get(profile.key_env, "").strip()
    if profile.needs_key and not key:
        raise UsageError(f"no key for {profile.name}: set the environment variable {profile.key_env}")
    url = profile.address(choice.url or variables.get(profile.url_env))
    return connector(Endpoint(url, key or None, profile.key_env), transport=transport)


def connector(endpoint: Endpoint, *, transport: Transport = "auto") -> Connector:
    """A connector for this endpoint. Raises UsageError for picows where it is not installed."""
    has_picows = importlib.util.find_spec("picows") is not None
    if transport == "picows" and not has_picows:
        raise UsageError("the transport picows is not installed: pip install 'callwright[fast]'")
    if transport == "websockets" or not has_picows:
        from callwright.runtime.websocket import WebSocketConnector

        return WebSocketConnector(endpoint)
    from callwright.runtime.fast import PicowsConnector

    return PicowsConnector(endpoint)
