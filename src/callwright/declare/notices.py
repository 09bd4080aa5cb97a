"""What a caller has to be told at the beginning of a call, and what may be kept of it: how an agent declares that.

The words of a notice are given to the model with its instructions; whether the caller has heard them is seen from what
he heard of its replies.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

from callwright.claims.words import plain
from callwright.core.keeping import STOP_RECORDING
from callwright.core.toolcalls import AfterOutput
from callwright.declare.tools import DEFAULT_TIMEOUT_MS, Context, Facts, Tool, declare_tool
from callwright.errors import DeclarationError


class Recording(StrEnum):
    """Whether words and sound of a call with a person may be kept."""

    CONSENTED = "consented"
    """Once he has heard that the call is recorded, unless he objects."""
    NOT_REQUIRED = "not_required"
    """They may, without asking him: whoever declares it answers for that."""


Declared: TypeAlias = Recording | Literal["consented", "not_required"] | None
"""How it is declared; None keeps nothing of a call with a person."""


async def stop_recording(ctx: Context[object]) -> Facts:
    """Stop the recording of this call and drop what was recorded. Call it whenever the caller objects to that."""
    return {"recording": "stopped and dropped", "next": "tell the caller that this call is not recorded, and go on"}


def stop_tool() -> Tool:
    """The tool by which the model tells that the caller objects."""
    tool = declare_tool(stop_recording, after=AfterOutput.REPLY, timeout_ms=DEFAULT_TIMEOUT_MS)
    assert tool.name == STOP_RECORDING
    return tool


def check_notices(what: str, ai_notice: object, recording: object, recording_notice: object) -> None:
    """Raise DeclarationError, which begins with ``what``, for notices that cannot be given."""
    for name, notice in (("ai_notice", ai_notice), ("recording_notice", recording_notice)):
        if notice is not None and not (isinstance(notice, str) and plain(notice)):
            raise DeclarationError(f"{what}: {name} is the words that the caller has to hear; got {notice!r}")
    if recording is not None and recording not in list(Recording):
        raise DeclarationError(f"{what}: recording is {', '.join(map(repr, map(str, Recording)))} or None")
    if recording == Recording.CONSENTED and recording_notice is None:
        raise DeclarationError(
            f"{what}: recording with consent needs a recording_notice, the words by which the caller is told, "
            'for example recording_notice="this call is recorded"'
        )
    if recording is None and recording_notice is not None:
        raise DeclarationError(f"{what}: recording_notice tells of a recording; say recording=... or leave it out")


def with_notices(instructions: str, ai_notice: str | None, recording_notice: str | None, *, asks: bool) -> str:
    """The instructions with what the model has to say first; ``asks`` says whether the caller may object."""
    told: list[str] = []
    if ai_notice:
        told.append(f'In your first reply, before anything else, say these words to the caller: "{ai_notice}".')
    if recording_notice:
        where = "In the same reply, behind that," if ai_notice else "In your first reply, before anything else,"
        told.append(f'{where} say these words to him: "{recording_notice}".')
    if recording_notice and asks:
        told.append(f"Then ask whether that is all right. If he objects, then or later, call {STOP_RECORDING}.")
    if told:
        told.append("If he interrupts you before he has heard them, say them again in your next reply.")
    return "\n".join([instructions.rstrip("\n"), " ".join(told)]) if told else instructions
