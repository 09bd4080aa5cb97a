"""What is known of a finished simulated call: the client's side, the server's side and the truth between.

All instants are whole milliseconds on the call's one clock, which starts when the line opens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Literal

from callwright.ids import ItemId, Ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from callwright.audio.dtmf import KeyHeard
    from callwright.audio.echo import EchoReport
    from callwright.core.hold import HoldSummary
    from callwright.core.transcript import Turn
    from callwright.sim.models import Clip, HistoryItem
    from callwright.sim.speech import Word

FarKind = Literal["ringing", "menu", "announcement", "music", "person", "beep", "recording", "busy"]
"""What the far end of a call that we make does: a menu also while it waits for a key, and it records in silence."""

FIRST_AUDIO_MS: Ms = 15_000
"""How much of what the server read first is kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Streamed:
    """The audio of a reply as it came from a server that tells nothing else of it: int16, mono."""

    rate_hz: int
    samples: NDArray[np.int16]
    is_whole: bool
    """Whether it is all of the reply; one that the server cut has more text than audio."""
    is_restated: bool = False
    """The client told what was heard of it by words, and by no length."""


class Tells(Enum):
    """What a client tells of its side of a call."""

    ALL = "all that there is to it"
    HEARD = "what it holds to have been heard"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class SpokenItem:
    """A reply as the model made it: its whole text by words, with times from the start of its audio."""

    item_id: ItemId
    started_ms: Ms
    """Instant at which its first audio left the server."""
    words: tuple[Word, ...]
    clips: tuple[Clip, ...]
    audio_ms: Ms
    """Length of the whole reply, had it not been cut."""
    streamed_ms: Ms
    """Length that left the server."""
    tool: str | None = None
    """The tool that its response calls."""
    sound: Streamed | None = field(default=None, compare=False)
    """What came of it, where it is not made of recorded lines: the times of its words are estimated then, and its
    length too where it is not whole."""


@dataclass(frozen=True, slots=True)
class EarSpan:
    """Part of an item that reached the caller's ear without a break, from the line's own books."""

    item_id: ItemId
    from_ms: Ms
    """Position in the item's audio."""
    to_ms: Ms
    at_ms: Ms
    """Instant at the ear of ``from_ms``."""


@dataclass(frozen=True, slots=True)
class CallerLine:
    """A scripted line as the caller spoke it."""

    line_id: str
    started_ms: Ms
    ended_ms: Ms
    trigger: str
    is_interruption: bool
    """The script wants it spoken over the agent."""
    overlapped_ms: Ms
    """How much of it lay over audible agent speech at the caller's ear."""


@dataclass(frozen=True, slots=True)
class FarSpan:
    """What the far end of a call that we make did for a while, without the pauses in between."""

    kind: FarKind
    line_id: str | None
    """What sounded; None where it waits for a key, or records."""
    started_ms: Ms
    ended_ms: Ms
    node: str
    """Where in its tree that was; empty while it rings before anything answers."""
    overlapped_ms: Ms = 0
    """How much of it lay over audible agent speech, or keys, at the far end."""


@dataclass(frozen=True, slots=True)
class FarBook:
    """The far end's own book of a call that we made."""

    spans: tuple[FarSpan, ...]
    keys: tuple[KeyHeard, ...]
    """Every key that its detector heard, whatever it led to."""

    @property
    def voicemail_from_ms(self) -> Ms | None:
        """When it began to record a message, after the beep; None where it never did."""
        return next((span.started_ms for span in self.spans if span.kind == "recording"), None)

    @property
    def reached_person(self) -> bool:
        """Whether a person spoke."""
        return any(span.kind == "person" for span in self.spans)


@dataclass(frozen=True, slots=True)
class Truncation:
    """A ``conversation.item.truncate`` as the server received it."""

    item_id: ItemId
    audio_end_ms: Ms
    at_ms: Ms
    is_refused: bool


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The server decided that the caller speaks over a reply."""

    onset_ms: Ms
    """Where the caller's speech began."""
    at_ms: Ms
    """Instant at which it told the client."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a provider's own book holds of one thing that was done on the world, from ``at_ms`` on."""

    effect_id: str
    kind: str
    subject: str
    """What it was done to, for example ``order:4417``."""
    slot: str
    amount_minor: int | None
    """None where it names no amount; it has no currency and no destination then."""
    currency: str
    destination: str
    status: str
    """``pending``, ``succeeded``, ``failed``, ``cancelled`` or ``reversed``."""
    at_ms: Ms

    @property
    def is_live(self) -> bool:
        """Whether the money has gone, or is going."""
        return self.status in ("pending", "succeeded")

    @property
    def text(self) -> str:
        """As scenarios write it."""
        return effect_text(self.kind, self.subject, self.amount_minor, self.currency, self.destination)


def effect_text(kind: str, subject: str, amount_minor: int | None, currency: str, destination: str) -> str:
    """What is done on the world, as scenarios write it; without an amount it has no currency and no destination."""
    if amount_minor is None:
        return f"{kind} {subject}"
    return f"{kind} {subject} {amount_minor // 100}.{amount_minor % 100:02} {currency} {destination}"


@dataclass(frozen=True, slots=True)
class Recorded:
    """An operation as the client's own ledger has it in the end."""

    what: str
    """Kind, subject and slot."""
    state: str
    attempts: tuple[tuple[str, str], ...]
    """Of each what was sent, as scenarios write it, and what was last known of it, with the reason if there is one."""
    told: tuple[tuple[str, str, Ms], ...]
    """Of each milestone that the caller was owed, how far telling it came, and when that was decided."""


@dataclass(frozen=True, slots=True)
class StereoRecording:
    """The call's sound: int16, one array per side, equal lengths, at ``rate_hz``."""

    rate_hz: int
    caller: NDArray[np.int16]
    """What the caller said."""
    agent: NDArray[np.int16]
    """What reached the caller's ear."""
    microphone: NDArray[np.int16] | None = None
    """What the client was sent of the caller, where his room changes it; None where that is what he said."""

    @property
    def sent(self) -> NDArray[np.int16]:
        """What the client was sent of the caller."""
        return self.caller if self.microphone is None else self.microphone


@dataclass(frozen=True, slots=True)
class CallRecord:
    """Everything that a measurement needs; see the field docstrings for who knew what.

    Of a server that is not ours, history, replies, truncations and confirmations are what the wire showed of them.
    """

    scenario: str
    seed: int
    client: str
    server: str
    settings: Mapping[str, object]
    trace: bytes
    """The client's trace, JSON Lines."""
    turns: tuple[Turn, ...]
    """The client's own transcript."""
    recording: StereoRecording
    history: tuple[HistoryItem, ...]
    """The server's history at the end."""
    spoken: tuple[SpokenItem, ...]
    ear: tuple[EarSpan, ...]
    caller_lines: tuple[CallerLine, ...]
    unspoken: tuple[str, ...]
    """The steps of the script that he did not come to, each by number and trigger."""
    truncations: tuple[Truncation, ...]
    confirmations: tuple[Confirmation, ...]
    first_audio: NDArray[np.int16] | None
    """The beginning of the caller's audio as the server read it, ``FIRST_AUDIO_MS`` at most, at 16 kHz; None where the
    server is not ours, and only the wire tells of its side."""
    session_ready_ms: Ms | None
    held_sent_ms: Ms
    """Caller audio that was held until the session was ready and then sent, as the client tells it."""
    held_lost_ms: Ms
    """Caller audio that was held for too long and dropped, as the client tells it."""
    connected_ms: Ms
    """Length of the model's connection."""
    ended_ms: Ms
    """Instant at which the line ended."""
    ended_by: str
    """``agent``, ``caller``, ``model`` or ``fault``."""
    ended_because: str
    hang_up_tools: tuple[str, ...]
    """The tools that end the call; what is spoken in a response that calls one is a farewell."""
    ai_notice: str | None = None
    """The words by which the agent says that it is a machine, where it declares some."""
    error: str | None = None
    """Why the call broke off, if it did."""
    anomalies: tuple[str, ...] = ()
    """What happened out of order and was survived by the client, a tool that refused its arguments for instance."""
    book: tuple[Effect, ...] = ()
    """All that the provider's book holds once everything has settled, every change by itself, in order."""
    effects_expected: tuple[str, ...] | None = None
    """What the scenario expects of it; None if it does not matter."""
    action_tools: tuple[str, ...] = ()
    """The tools that act on the world."""
    unfired: tuple[str, ...] = ()
    """What was to go wrong behind the agent, and had no occasion to."""
    shown: tuple[str, ...] = ()
    """The behaviors of the model that showed in it."""
    ledger: tuple[Recorded, ...] = ()
    """What the client's own record holds in the end; a baseline has none."""
    outbox: tuple[tuple[str, str, str], ...] = ()
    """What the client's own record still owes outside its calls: kind, subject and slot."""
    violations: tuple[str, ...] = ()
    """Where provider and record do not agree, or a card number was kept, in our own client's calls."""
    far: FarBook | None = None
    """The far end's book, in a call that the agent makes; None in one that it takes."""
    echo: EchoReport | None = None
    """What the client's canceller knew of the echo in the end; None where there is no canceller."""
    hold: HoldSummary | None = None
    """How the client says that it waited; None where it did not, or says nothing of it."""
    result: str = ""
    """What the model gave as the result of the call; empty where it gave none, or the client does not say."""
    unknown: tuple[ItemId, ...] = ()
    """The replies and the caller's turns of which nobody tells what the server's history holds: they are empty."""
    tells: Tells = Tells.ALL
    """What the client tells of its side; of one that is a program the trace is what went over the wire."""
    has_witness: bool = True
    """Whether the client acted at the stand-in provider, if it acted; a program may do it elsewhere, unseen."""
    tool_calls_kept: tuple[bool, ...] | None = None
    """Of each tool call, whether the server's history had it at the end; None if it was not asked, or did not say."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether the server is not ours, so that of its side only the wire tells."""
        return self.first_audio is None
