"""The options of the server for free speech, which ``serve`` and ``talk`` have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

from callwright.errors import UsageError
from callwright.sim.open.chat import CHAT_KEY_ENV, ChatEndpoint

LOCAL: Final = "local"
"""What names it where a server is asked for."""

chat_url = click.option("--chat-url", metavar="URL", help="The chat endpoint that answers free speech, up to /v1.")
chat_model = click.option("--chat-model", metavar="NAME", help="The model that it is to take.")


def chat_endpoint(url: str | None, model: str | None, environment: Mapping[str, str]) -> ChatEndpoint | None:
    """The chat endpoint that was asked for, with its key if there is one. Raises UsageError."""
    if url is None and model is None:
        return None
    if url is None or model is None:
        raise UsageError(
            "--chat-url and --chat-model go together: where the chat endpoint is, and which model it takes"
        )
    return ChatEndpoint(url, model, environment.get(CHAT_KEY_ENV, "").strip() or None)
