"""Everything that the core can ask for: of the model, the line, the tool runner and the record.

Commands are plain frozen data; none carries a callable or a sample. The shell runs them in order, without
waiting between them. Every event sent to the model carries an id that is made here by counting, so that an
answer can be tied to what asked for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from callwright.claims.facts import Milestone
from callwright.ids import EventId, ItemId, MarkId, Ms, ResponseId, Samples, ToolCallId

# --- to the model ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Connect:
    """Let go of the session that there is, and open another one ``after_ms``: the caller's audio is held for that.

    The last ``resend_ms`` of what was sent are held, too, as far as they were kept.
    """

    after_ms: Ms
    resend_ms: Ms


@dataclass(frozen=True, slots=True)
class ConfigureSession:
    """Send the agent's declaration: instructions, tools, formats."""

    event_id: EventId
    more: str = ""
    """What the instructions end with, in a session that follows another one."""
    about: tuple[str, ...] = ()
    """The turns and tool calls that it quotes, by their ids."""


@dataclass(frozen=True, slots=True)
class OpenUplink:
    """The model hears the caller from here on: send what was held, in order, then every frame as it comes."""


@dataclass(frozen=True, slots=True)
class TruncateItem:
    """Shorten an item in the model's history to the first ``audio_end_ms`` of its audio."""

    event_id: EventId
    item_id: ItemId
    audio_end_ms: Ms


@dataclass(frozen=True, slots=True)
class RetrieveItem:
    """Ask the model how an item stands in its history."""

    event_id: EventId
    item_id: ItemId


@dataclass(frozen=True, slots=True)
class CancelResponse:
    """Stop a response that is being made."""

    event_id: EventId
    response_id: ResponseId


@dataclass(frozen=True, slots=True)
class EndTurn:
    """End the caller's turn by hand: what the model has heard of it is all of it."""

    event_id: EventId


@dataclass(frozen=True, slots=True)
class RequestReply:
    """Ask the model for a reply to what its history holds."""

    event_id: EventId


@dataclass(frozen=True, slots=True)
class PostToolOutput:
    """Put a tool's output into the model's history; it asks for nothing by itself."""

    event_id: EventId
    tool_call_id: ToolCallId
    output: str
    knowledge: str = ""
    """Topics that come with it, as a JSON object of contents by name; empty where there are none."""


@dataclass(frozen=True, slots=True)
class PostFacts:
    """Put what may be said of an operation into the model's history, as a note; it asks for nothing by itself."""

    event_id: EventId
    text: str


@dataclass(frozen=True, slots=True)
class CarryMessage:
    """Put what was said before, as it was heard, into the history of a new session."""

    event_id: EventId
    item_id: ItemId
    """The turn in the call's own record."""
    speaker: str
    """``caller`` or ``agent``."""
    text: str


@dataclass(frozen=True, slots=True)
class RestateItem:
    """Put the first ``words`` of one of the agent's items into history, right behind that item."""

    event_id: EventId
    item_id: ItemId
    words: int


@dataclass(frozen=True, slots=True)
class DropItem:
    """Take an item out of the model's history."""

    event_id: EventId
    item_id: ItemId


@dataclass(frozen=True, slots=True)
class ReportAudible:
    """Tell that the first audio of a reply, which our own voice says, has been played."""

    event_id: EventId
    response_id: ResponseId


@dataclass(frozen=True, slots=True)
class ReportProgress:
    """Tell how much of such a reply has been played so far, and how many words of each of its items were heard."""

    event_id: EventId
    response_id: ResponseId
    audio_ms: Ms
    heard: tuple[tuple[ItemId, int], ...]


@dataclass(frozen=True, slots=True)
class ReportStopped:
    """Tell that no more of such a reply will be heard: what was, and how much of its audio was dropped."""

    event_id: EventId
    response_id: ResponseId
    audio_ms: Ms
    dropped_ms: Ms
    heard: tuple[tuple[ItemId, int], ...]


@dataclass(frozen=True, slots=True)
class CarryCall:
    """Put a tool call of an earlier session into the history of a new one; it runs nothing."""

    event_id: EventId
    tool_call_id: ToolCallId
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class CloseModel:
    """End the model's connection."""

    reason: str


# --- to the voice of our own ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StopVoice:
    """Say nothing more of a response; ``is_open`` says that its end is still waited for."""

    response_id: ResponseId
    is_open: bool


# --- to the line -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlayAudio:
    """Hand the audio of the event now being handled to the line: ``samples`` at the model's output rate."""

    item_id: ItemId
    generation: int
    samples: Samples


@dataclass(frozen=True, slots=True)
class FinishItem:
    """No more audio comes for this item: hand on what conversion still holds back."""

    item_id: ItemId
    generation: int


@dataclass(frozen=True, slots=True)
class SendMark:
    """Ask the carrier to return this mark when all audio handed to it so far has been played."""

    mark_id: MarkId


@dataclass(frozen=True, slots=True)
class ClearPlayout:
    """Drop all audio that the line has not played; audio handed on later belongs to ``generation``."""

    generation: int


@dataclass(frozen=True, slots=True)
class HoldReply:
    """Hand no reply audio to the line from here on: keep it, in order, with its marks. A cut drops what is kept."""


@dataclass(frozen=True, slots=True)
class ReleaseReply:
    """Hand on what was kept, and whatever comes from here on."""


@dataclass(frozen=True, slots=True)
class PressKeys:
    """Press keys of the telephone, the line's own way or as tones; the end comes back as one ``KeysPressed``."""

    keys: str


@dataclass(frozen=True, slots=True)
class HangUp:
    """End the line."""

    reason: str


# --- to whoever watches the caller's frames ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WatchCaller:
    """From here on tell when the caller's audio rises above the noise around him, and when it falls back."""


@dataclass(frozen=True, slots=True)
class UnwatchCaller:
    """How loud the caller is makes no difference any more."""


# --- to the tool runner, the ledger and the record ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartTool:
    """Run a tool; its end comes back as one ``ToolFinished``."""

    tool_call_id: ToolCallId
    name: str
    arguments: str


class KeysFate(StrEnum):
    """What became of keys that were asked for."""

    PRESSED = "pressed"
    UNCONFIRMED = "unconfirmed"
    """They were given to the line, which has not told that they are out."""
    FAILED = "failed"
    """The line could not press them."""
    ENDED = "ended"
    """The line ended before that."""


@dataclass(frozen=True, slots=True)
class AnswerKeys:
    """Tell whoever asked for keys first, of those who wait for them, what became of his."""

    fate: KeysFate


class Telling(StrEnum):
    """How far the telling of a fact has come."""

    ASKED = "asked"
    """A reply that is to tell it was asked for."""
    HEARD = "heard"
    MISSED = "missed"
    """A reply was to tell it, and the caller did not hear it."""
    DEFERRED = "deferred"
    """It is not told in this call: somebody has to see to it that it is told otherwise."""
    VOID = "void"
    """It has changed before it was heard."""
    CORRECTION = "correction"
    """The caller heard something that the record does not support, and is owed this fact instead."""


@dataclass(frozen=True, slots=True)
class RecordTold:
    """Keep how far the telling of a fact has come; operation, milestone and version name the fact."""

    op_id: str
    milestone: Milestone
    version: int
    state: Telling


@dataclass(frozen=True, slots=True)
class Authorize:
    """The caller said yes to exactly the terms that ``rev`` and ``params_hash`` name."""

    op_id: str
    rev: int
    params_hash: str


@dataclass(frozen=True, slots=True)
class Withdraw:
    """The caller said no to what was proposed."""

    op_id: str


@dataclass(frozen=True, slots=True)
class KeepWords:
    """The caller knows that the call is recorded: what is said from here on may be kept."""


@dataclass(frozen=True, slots=True)
class DropWords:
    """The caller objects: drop what was kept of the call's words, and keep none from here on."""


@dataclass(frozen=True, slots=True)
class StateRestored:
    """The call goes on in another session of the model's."""

    items: int
    """How many items of its history the session was told."""
    held_ms: Ms
    """How much of the caller was held for it, and sent."""
    lost_ms: Ms
    """How much of the caller was held for too long, and dropped."""
    gap_ms: Ms
    """How long there was no session."""


@dataclass(frozen=True, slots=True)
class NoteAnomaly:
    """Something out of order that the call survives; for the trace and the log."""

    what: str
    quoted: str = ""
    """What the server said of it, which may hold words of the call."""

    @property
    def text(self) -> str:
        """All of it."""
        return f"{self.what}: {self.quoted}" if self.quoted else self.what


Request = (
    ConfigureSession
    | TruncateItem
    | RetrieveItem
    | CancelResponse
    | EndTurn
    | RequestReply
    | PostToolOutput
    | PostFacts
    | CarryMessage
    | CarryCall
    | RestateItem
    | DropItem
    | ReportAudible
    | ReportProgress
    | ReportStopped
)
"""What the server may refuse: each carries the id that a refusal names."""
ModelCommand = Request | Connect | OpenUplink | CloseModel
LineCommand = PlayAudio | FinishItem | SendMark | ClearPlayout | HoldReply | ReleaseReply | PressKeys | HangUp
VoiceCommand = StopVoice
WatchCommand = WatchCaller | UnwatchCaller
ToolCommand = StartTool | AnswerKeys
RecordCommand = KeepWords | DropWords | StateRestored | NoteAnomaly
LedgerCommand = RecordTold | Authorize | Withdraw
Command = ModelCommand | VoiceCommand | LineCommand | WatchCommand | LedgerCommand | ToolCommand | RecordCommand
