"""Everything that can happen to a call, as seen by the core: from the model, the line, the tools and the app.

Frozen, and stored in the trace as they are. Audio is told as a length; no event carries a sample. Vendor
spellings end in ``wire/``: these names hold for every provider.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from callwright.claims.facts import ClaimFacts
from callwright.ids import EventId, ItemId, MarkId, Ms, ResponseId, Samples, ToolCallId

# --- from the model ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelConnected:
    """The connection stands and the server told its defaults; the session is not configured yet."""


@dataclass(frozen=True, slots=True)
class SessionReady:
    """The server took the configuration: from here on it hears the caller in the declared format."""


@dataclass(frozen=True, slots=True)
class SessionMismatched:
    """The server took the configuration, and has another one: ``field`` says of what."""

    field: str
    wanted: str
    got: str


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """The server confirmed that the caller speaks; the turn's item will be ``item_id``."""

    item_id: ItemId
    audio_start_ms: Ms


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """The server decided that the caller's turn is over; ``audio_end_ms`` is on its audio clock."""

    item_id: ItemId
    audio_end_ms: Ms


@dataclass(frozen=True, slots=True)
class ItemPlaced:
    """The server told where an item stands in the conversation; ``after`` is None for the first one."""

    item_id: ItemId
    after: ItemId | None


@dataclass(frozen=True, slots=True)
class CallerTranscribed:
    """What the caller said in a turn, as the model understood it; may come long after the reply."""

    item_id: ItemId
    text: str


@dataclass(frozen=True, slots=True)
class ResponseStarted:
    """The model opened a response."""

    response_id: ResponseId


@dataclass(frozen=True, slots=True)
class AudioReceived:
    """A piece of a reply's audio arrived; ``samples`` counts one channel at the model's output rate."""

    response_id: ResponseId
    item_id: ItemId
    samples: Samples


@dataclass(frozen=True, slots=True)
class ReplyWritten:
    """The whole text of a reply as the model wrote it: never proof that it was heard."""

    response_id: ResponseId
    item_id: ItemId
    text: str


@dataclass(frozen=True, slots=True)
class WordsVoiced:
    """Our own voice told how many words of an item's text its audio holds by ``audio_ms`` from its start."""

    item_id: ItemId
    words: int
    audio_ms: Ms


@dataclass(frozen=True, slots=True)
class VoiceFailed:
    """Our own voice ended before it had said all of an item."""

    response_id: ResponseId
    item_id: ItemId
    what: str


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The model asked for a tool; ``arguments`` is the JSON text as received, possibly empty."""

    response_id: ResponseId
    item_id: ItemId
    tool_call_id: ToolCallId
    name: str
    arguments: str


class ResponseStatus(StrEnum):
    """How a response ended."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ResponseEnded:
    """The model closed a response. ``reason`` is the provider's code, or empty."""

    response_id: ResponseId
    status: ResponseStatus
    reason: str = ""
    cited: str = ""
    """The names of the topics of our own that its reply rests on, as a JSON list; empty where that is not told."""
    out_of_domain: bool | None = None
    """Whether none of those topics covers it; None where that is not told."""


@dataclass(frozen=True, slots=True)
class ItemRetrieved:
    """An item as the server's history holds it now; ``text`` is None where the server has none.

    ``is_cut`` is true where the text carries the server's mark of a cut (removed from ``text``).
    """

    item_id: ItemId
    text: str | None
    is_cut: bool


@dataclass(frozen=True, slots=True)
class ItemTruncated:
    """The server shortened an item to ``audio_end_ms``."""

    item_id: ItemId
    audio_end_ms: Ms


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """The server answered one of our events with an error; ``event_id`` names it, where known."""

    code: str
    message: str
    event_id: EventId | None
    field: str | None = None


@dataclass(frozen=True, slots=True)
class ConnectFailed:
    """No connection to the model came about; ``is_final`` says that another try would fare no better."""

    reason: str
    is_final: bool


@dataclass(frozen=True, slots=True)
class ModelClosed:
    """The model's connection ended; ``code`` is the WebSocket close code, 1006 for a broken one."""

    code: int
    reason: str


# --- from the line -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LineOpened:
    """The line carries audio both ways."""


@dataclass(frozen=True, slots=True)
class FirstWordsLost:
    """Of what came from the caller before the session was ready, ``ms`` were held for too long, and dropped."""

    ms: Ms


@dataclass(frozen=True, slots=True)
class UplinkResumed:
    """A session that follows another one was sent the ``held_ms`` kept for it; ``lost_ms`` before it were dropped."""

    held_ms: Ms
    lost_ms: Ms


@dataclass(frozen=True, slots=True)
class LinePlayed:
    """A pulled line took ``played_ms`` of an item in all, in this generation; what it took will be heard."""

    item_id: ItemId
    generation: int
    played_ms: Ms


@dataclass(frozen=True, slots=True)
class MarkReturned:
    """A carrier returned a mark: reached, or dropped because its generation was cleared."""

    mark_id: MarkId


@dataclass(frozen=True, slots=True)
class CallerLoud:
    """While the caller is watched: his audio rose above the noise around him, or fell back into it."""

    is_loud: bool


@dataclass(frozen=True, slots=True)
class LineSilent:
    """No frame has come from the line for ``ms``: not the caller's silence, which comes in frames too."""

    ms: Ms


@dataclass(frozen=True, slots=True)
class LineClosed:
    """The line ended; ``by`` says who did it (``caller``, ``agent`` or ``fault``)."""

    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class KeysPressed:
    """The keys that the line was given last are out or, where ``has_failed``, it could not press them."""

    has_failed: bool = False


# --- from the tools and the app ----------------------------------------------------------------------------


class ToolOutcome(StrEnum):
    """What became of a started tool."""

    RETURNED = "returned"
    RAISED = "raised"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A started tool ended; ``output`` is the text for the model, whatever the outcome.

    ``speaks`` says whether this output is to be spoken about; None leaves it to what the tool was declared with.
    ``raised`` is the type of the exception, without its text.
    """

    tool_call_id: ToolCallId
    outcome: ToolOutcome
    output: str
    speaks: bool | None = None
    raised: str = ""
    knowledge: str = ""
    """Topics that the model may answer from, as a JSON object of contents by name; empty where there are none."""


@dataclass(frozen=True, slots=True)
class KeysRequested:
    """A tool asks for keys of the telephone to be pressed; its answer is one ``AnswerKeys``."""

    tool_call_id: ToolCallId
    keys: str


@dataclass(frozen=True, slots=True)
class Consent:
    """What a caller's yes would authorise: one revision of an operation's terms, by number and hash."""

    rev: int
    params_hash: str

    @property
    def is_anew(self) -> bool:
        """Whether something was proposed before and not agreed to, so that names are read back letter by letter."""
        return self.rev > 1


@dataclass(frozen=True, slots=True)
class FactChanged:
    """What may be said of an operation has changed; it may come at any time, also before the session is ready."""

    op_id: str
    version: int
    """Grows with every change; a fact that comes again, or late, changes nothing."""
    facts: ClaimFacts
    sentence: str
    """The record's own sentence: whoever heard it whole was told."""
    is_settled: bool
    """Whether nothing further is under way."""
    is_ours: bool
    """Whether this call has to tell the outcome: it was asked for in it, or an earlier one left it untold."""
    consent: Consent | None = None
    """What the caller's yes is wanted for, while nothing else authorises it."""


@dataclass(frozen=True, slots=True)
class InterruptRequested:
    """The app wants the agent to stop talking now."""


@dataclass(frozen=True, slots=True)
class HangUpRequested:
    """The app wants the call to end."""

    reason: str


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The deadline that the session asked for has come."""


ModelEvent = (
    ModelConnected
    | SessionReady
    | SessionMismatched
    | SpeechStarted
    | SpeechStopped
    | ItemPlaced
    | CallerTranscribed
    | ResponseStarted
    | AudioReceived
    | ReplyWritten
    | ToolCalled
    | ResponseEnded
    | ItemRetrieved
    | ItemTruncated
    | RequestRefused
    | ConnectFailed
    | ModelClosed
)
VoiceEvent = WordsVoiced | VoiceFailed
LineEvent = (
    LineOpened
    | FirstWordsLost
    | UplinkResumed
    | LinePlayed
    | MarkReturned
    | KeysPressed
    | CallerLoud
    | LineSilent
    | LineClosed
)
AppEvent = ToolFinished | KeysRequested | FactChanged | InterruptRequested | HangUpRequested | TimerFired
Event = ModelEvent | VoiceEvent | LineEvent | AppEvent
