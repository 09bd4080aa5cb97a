"""Realtime voice agents that are heard, whole, once and told.

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from callwright import lines as lines

if TYPE_CHECKING:
    from callwright.claims.lexicon import Lexicon as Lexicon
    from callwright.core.session import Can as Can
    from callwright.core.session import Ending as Ending
    from callwright.core.toolcalls import AfterOutput as AfterOutput
    from callwright.core.transcript import Source as Source
    from callwright.core.transcript import Speaker as Speaker
    from callwright.core.transcript import Turn as Turn
    from callwright.declare.actions import AUTOMATIC as AUTOMATIC
    from callwright.declare.actions import Authority as Authority
    from callwright.declare.actions import Card as Card
    from callwright.declare.actions import Money as Money
    from callwright.declare.actions import Terms as Terms
    from callwright.declare.agent import Agent as Agent
    from callwright.declare.agent import ModelChoice as ModelChoice
    from callwright.declare.agent import openai as openai
    from callwright.declare.agent import plain as plain
    from callwright.declare.agent import polyai as polyai
    from callwright.declare.digits import Digits as Digits
    from callwright.declare.notices import Recording as Recording
    from callwright.declare.tools import Context as Context
    from callwright.declare.tools import Facts as Facts
    from callwright.declare.tools import Grounded as Grounded
    from callwright.declare.tools import Spoken as Spoken
    from callwright.declare.voice import Said as Said
    from callwright.declare.voice import Voice as Voice
    from callwright.errors import CallwrightError as CallwrightError
    from callwright.errors import ConnectionFailed as ConnectionFailed
    from callwright.errors import DeclarationError as DeclarationError
    from callwright.errors import LedgerError as LedgerError
    from callwright.errors import LineFailed as LineFailed
    from callwright.errors import Refuse as Refuse
    from callwright.errors import UsageError as UsageError
    from callwright.ledger.provider import Provider as Provider
    from callwright.runtime.call import CallResult as CallResult
    from callwright.runtime.call import run as run
    from callwright.runtime.dispatcher import Ledger as Ledger

_PLACES = {
    "AUTOMATIC": "declare.actions",
    "AfterOutput": "core.toolcalls",
    "Agent": "declare.agent",
    "Authority": "declare.actions",
    "CallResult": "runtime.call",
    "CallwrightError": "errors",
    "Can": "core.session",
    "Card": "declare.actions",
    "ConnectionFailed": "errors",
    "Context": "declare.tools",
    "DeclarationError": "errors",
    "Digits": "declare.digits",
    "Ending": "core.session",
    "Facts": "declare.tools",
    "Grounded": "declare.tools",
    "Ledger": "runtime.dispatcher",
    "LedgerError": "errors",
    "Lexicon": "claims.lexicon",
    "LineFailed": "errors",
    "ModelChoice": "declare.agent",
    "Money": "declare.actions",
    "Provider": "ledger.provider",
    "Recording": "declare.notices",
    "Refuse": "errors",
    "Said": "declare.voice",
    "Source": "core.transcript",
    "Speaker": "core.transcript",
    "Spoken": "declare.tools",
    "Terms": "declare.actions",
    "Turn": "core.transcript",
    "UsageError": "errors",
    "Voice": "declare.voice",
    "openai": "declare.agent",
    "plain": "declare.agent",
    "polyai": "declare.agent",
    "run": "runtime.call",
}

__all__ = [
    "AUTOMATIC",
    "AfterOutput",
    "Agent",
    "Authority",
    "CallResult",
    "CallwrightError",
    "Can",
    "Card",
    "ConnectionFailed",
    "Context",
    "DeclarationError",
    "Digits",
    "Ending",
    "Facts",
    "Grounded",
    "Ledger",
    "LedgerError",
    "Lexicon",
    "LineFailed",
    "ModelChoice",
    "Money",
    "Provider",
    "Recording",
    "Refuse",
    "Said",
    "Source",
    "Speaker",
    "Spoken",
    "Terms",
    "Turn",
    "UsageError",
    "Voice",
    "lines",
    "openai",
    "plain",
    "polyai",
    "run",
]


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value
