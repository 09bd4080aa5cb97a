"""What the caller heard of every reply, and the transcript that follows from it.

Owns the record of the conversation: per reply what was written and what was heard, side by side, with the source
of the heard text; per caller turn what the model understood; and their order. Does not own positions (``playout``).

```
written   "Check in is from three. Please bring a photo ID and the card you booked with."
playout   played out ───────────────> heard = all of it                      WHOLE
          cut ──> ask the server ───> heard = the server's shortened item    RETRIEVED
                     no answer ─────> heard = the words sure to be in it     ESTIMATED
                     no text ───────> heard unknown, the cut time is kept    NONE
```

A reply enters the record of the heard only here, and only when its end is known. The written text of a cut reply
is what the model wrote, never what was heard. Order is the conversation's own where the server tells it, and the
order of first sight otherwise; a text that comes late fills its place and moves nothing. Audio that comes after a
reply was played out opens its end again: it can be played out or cut once more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from callwright.core.estimate import aligned, estimate, is_too_short
from callwright.core.grounding import Grounds
from callwright.core.playout import Cut
from callwright.core.table import Table
from callwright.core.transcript import Source, Speaker, Turn
from callwright.ids import ItemId, Ms

RETRIEVE_PATIENCE_MS: Ms = 3_000
"""How long the server may take to answer before the heard text is estimated."""

WORDLESS_MS_MAX: Ms = 1_000
"""How much of a reply can be played before its first word is there; so short a beginning is retrieved as no text."""


class Hearing(Enum):
    """What is known of the hearing of a reply."""

    OPEN = auto()
    """It is being made or played."""
    ASKING = auto()
    """It was cut, and the server was asked what its history holds."""
    SETTLED = auto()
    """It is known, as well as it can be."""


class Cue(Enum):
    """What happens to the hearing of a reply."""

    PLAYED_OUT = auto()
    CUT_OFF = auto()
    RETRIEVED = auto()
    WAITED = auto()
    LOST = auto()


HEARING: Table[Hearing, Cue] = Table(
    "heard",
    Hearing.OPEN,
    {
        (Hearing.OPEN, Cue.PLAYED_OUT): Hearing.SETTLED,
        (Hearing.OPEN, Cue.CUT_OFF): Hearing.ASKING,
        (Hearing.ASKING, Cue.RETRIEVED): Hearing.SETTLED,
        (Hearing.ASKING, Cue.WAITED): Hearing.SETTLED,
        (Hearing.SETTLED, Cue.PLAYED_OUT): Hearing.SETTLED,
        (Hearing.SETTLED, Cue.CUT_OFF): Hearing.ASKING,
        (Hearing.OPEN, Cue.LOST): Hearing.SETTLED,
        (Hearing.ASKING, Cue.LOST): Hearing.SETTLED,
        (Hearing.SETTLED, Cue.LOST): Hearing.SETTLED,
    },
)


class Truncate(Enum):
    """What became of the request to shorten a cut reply to what was played."""

    SENT = auto()
    CONFIRMED = auto()
    REFUSED = auto()
    """Or it was never sent: the history holds more than was heard."""


@dataclass(slots=True)
class _Reply:
    state: Hearing = HEARING.start
    written: str = ""
    retrieved: str | None = None
    voiced: list[tuple[int, Ms]] = field(default_factory=list)
    """How many words our own voice has told of, piece by piece, each with where it ends in the audio."""
    has_unsaid_rest: bool = False
    """Not all of the text was said, however whole the audio was played."""
    cut: Cut | None = None
    audio_ms: Ms | None = None
    """Length of the audio that played out."""
    truncate: Truncate = Truncate.SENT
    source: Source = Source.PENDING


class HeardRecord:
    """The transcript of one call."""

    def __init__(self) -> None:
        self._replies: dict[ItemId, _Reply] = {}
        self._caller: dict[ItemId, str] = {}
        self._order: list[ItemId] = []
        self._asking: dict[ItemId, Ms] = {}
        """Replies that the server was asked about, with the instant at which that is given up."""
        self._settled: dict[ItemId, None] = {}
        """Replies whose hearing was settled, or whose text came behind it, since that was asked for last."""
        self.grounds = Grounds()
        self.changes = 0
        """How often a text, or what was heard of one, may have changed."""

    def placed(self, item_id: ItemId, after: ItemId | None) -> None:
        """Take the conversation's own order: ``item_id`` stands right behind ``after`` (None: first).

        An ``after`` that was never seen, or is the item itself, changes nothing: the order of first sight stays.
        """
        if after == item_id or (after is not None and after not in self._order):
            self._seen(item_id)
            return
        if item_id in self._order:
            self._order.remove(item_id)
        self._order.insert(0 if after is None else self._order.index(after) + 1, item_id)

    def stands(self, item_id: ItemId) -> None:
        """Something else than a turn stands at the end of the conversation now."""
        if item_id in self._order:
            self._order.remove(item_id)
        self._order.append(item_id)

    def order(self) -> tuple[ItemId, ...]:
        """All that stands in the conversation, first to last; not all of it is a turn."""
        return tuple(self._order)

    def unsaid(self, item_id: ItemId) -> None:
        """A turn of the caller's, whose words are not known, is heard anew as another item."""
        if item_id in self._caller:
            del self._caller[item_id]
            self._order.remove(item_id)

    def caller_turn(self, item_id: ItemId, text: str | None = None) -> None:
        """A caller's turn exists, or its text has come."""
        self._seen(item_id)
        self.changes += 1
        if text is not None or item_id not in self._caller:
            self._caller[item_id] = text or ""

    def reply(self, item_id: ItemId, written: str | None = None) -> None:
        """A reply exists, or its written text has come."""
        reply = self._replies.get(item_id)
        if reply is None:
            self._seen(item_id)
            reply = self._replies[item_id] = _Reply()
        if written is not None:
            reply.written = written
            self._settled[item_id] = None
            self.changes += 1

    def played_out(self, item_id: ItemId, audio_ms: Ms | None = None) -> None:
        """The line has played all audio of a reply, ``audio_ms`` of it.

        Whether that is all of its text too is seen when both are known: audio can be lost on its way to us. Raises
        IllegalTransition while the server is asked about a cut of it.
        """
        reply = self._replies[item_id]
        reply.audio_ms = audio_ms
        reply.state = HEARING.after(reply.state, Cue.PLAYED_OUT)
        self.changes += 1
        reply.source = Source.WHOLE
        self._settled[item_id] = None

    def cut(self, cut: Cut, now_ms: Ms) -> None:
        """A reply was cut. Raises IllegalTransition while the server is asked about an earlier cut of it."""
        reply = self._replies[cut.item_id]
        reply.state = HEARING.after(reply.state, Cue.CUT_OFF)
        self.changes += 1
        reply.cut, reply.source, reply.truncate, reply.retrieved = cut, Source.PENDING, Truncate.SENT, None
        self._asking[cut.item_id] = now_ms + RETRIEVE_PATIENCE_MS

    def voiced(self, item_id: ItemId, words: int, audio_ms: Ms) -> None:
        """Our own voice told how many words a reply's audio holds up to this point."""
        self.reply(item_id)
        self._replies[item_id].voiced.append((words, audio_ms))

    def unsaid_rest(self, item_id: ItemId) -> None:
        """Our own voice has not said all of a reply."""
        self.reply(item_id)
        self._replies[item_id].has_unsaid_rest = True
        self.changes += 1

    def unheard(self, item_id: ItemId, now_ms: Ms) -> None:
        """Nothing of a reply will ever be heard; no effect on one of which that is known."""
        reply = self._replies.get(item_id)
        if reply is not None and reply.state is Hearing.OPEN:
            self.cut(Cut(item_id, 0, 0, is_complete=False), now_ms)
            self.give_up(item_id)

    def unheard_rest(self, now_ms: Ms) -> None:
        """The line has ended: of replies that are open still nothing will be heard."""
        for item_id in self._replies:
            self.unheard(item_id, now_ms)

    def words_by(self, item_id: ItemId, cut: Cut) -> int:
        """How many words of a reply were heard if it were cut like this."""
        return _words_by(self._replies[item_id], cut)

    def words_of(self, item_id: ItemId) -> int:
        """How many words of a reply were heard, as far as is known; its text may still be to come."""
        reply = self._replies[item_id]
        if reply.source in (Source.ALIGNED, Source.ESTIMATED) and reply.cut:
            return _words_by(reply, reply.cut)
        turn = self._turn(item_id)
        told = reply.voiced[-1][0] if reply.voiced and turn.source is Source.WHOLE else 0
        return max(told, len(turn.heard.split()))

    def written_of(self, item_id: ItemId) -> str:
        """The text of a reply."""
        return self._replies[item_id].written

    def lost(self, cut: Cut) -> None:
        """The line ended before all that it had played of a reply reached the ear: only ``cut.heard_ms`` did."""
        reply = self._replies[cut.item_id]
        reply.state = HEARING.after(reply.state, Cue.LOST)
        self.changes += 1
        self._asking.pop(cut.item_id, None)
        reply.cut, reply.source = cut, _by_our_own_account(reply)
        self._settled[cut.item_id] = None

    def truncated(self, item_id: ItemId, became: Truncate) -> None:
        """It is known what became of the request to shorten a reply."""
        reply = self._replies.get(item_id)
        if reply is not None:
            reply.truncate = became

    def retrieved(self, item_id: ItemId, text: str | None, *, is_cut: bool) -> None:
        """The server told what its history holds of a cut reply. Not asked for: no effect.

        It is what was heard, unless the truncate was refused: then the server cut at what it had sent, or not at all,
        and its text is a bound for the estimate. A text without the mark of a cut (``is_cut`` false) is the written
        one, unless the truncate was confirmed: then the cut took no word away. No text for seconds of speech says
        nothing about them.
        """
        reply = self._replies.get(item_id)
        if reply is None or reply.state is not Hearing.ASKING:
            return
        reply.state = HEARING.after(reply.state, Cue.RETRIEVED)
        self.changes += 1
        del self._asking[item_id]
        self._settled[item_id] = None
        heard_ms = reply.cut.heard_ms if reply.cut else 0
        if text is None or (not text and heard_ms > WORDLESS_MS_MAX):
            reply.source = Source.NONE
            return
        is_plausible = not reply.written or len(text.split()) <= len(reply.written.split())
        is_ours = reply.truncate is Truncate.CONFIRMED or (is_cut and reply.truncate is Truncate.SENT)
        if is_plausible and (is_ours or not text):
            reply.retrieved, reply.source = text, Source.RETRIEVED
        else:
            reply.retrieved, reply.source = text if is_cut and is_plausible else None, Source.ESTIMATED

    def is_through(self, item_id: ItemId) -> bool:
        """Whether nothing more will be heard of a reply.

        One of which all that came was played, and that lacks words, may still be gone on with by our own voice.
        """
        reply = self._replies[item_id]
        if reply.state is not Hearing.SETTLED:
            return False
        is_whole = reply.source is Source.WHOLE and reply.audio_ms is not None and not reply.has_unsaid_rest
        return not (is_whole and _lacks_words(reply, reply.audio_ms or 0))

    def next_deadline_ms(self) -> Ms | None:
        """When a heard text that the server was asked for is estimated instead."""
        return min(self._asking.values()) if self._asking else None

    def timer(self, now_ms: Ms) -> list[ItemId]:
        """Handle the deadline. Returns the replies that were given up on."""
        late = [item_id for item_id, deadline_ms in self._asking.items() if now_ms >= deadline_ms]
        for item_id in late:
            self.give_up(item_id)
        return late

    def give_up(self, item_id: ItemId) -> None:
        """No answer will tell what history holds of a cut reply: estimate. Raises IllegalTransition if not asked."""
        reply = self._replies[item_id]
        reply.state = HEARING.after(reply.state, Cue.WAITED)
        self.changes += 1
        del self._asking[item_id]
        reply.source = _by_our_own_account(reply)
        self._settled[item_id] = None

    def give_up_all(self) -> None:
        """Nobody is left to ask: estimate whatever was asked for."""
        for item_id in list(self._asking):
            self.give_up(item_id)

    def take_settled(self) -> list[Turn]:
        """The replies of which it has become known what was heard, or has changed: each once for every change.

        One that was played out before its text came is among them then, without text, and again with it.
        """
        settled, self._settled = self._settled, {}
        return [self._turn(item_id) for item_id in settled if self._replies[item_id].state is Hearing.SETTLED]

    def will_be_heard(self, item_id: ItemId, received_ms: Ms) -> str:
        """The text of a reply of which the line still plays what came, ``received_ms``, once it is through with it."""
        reply = self._replies[item_id]
        is_said_on = bool(reply.voiced) and not reply.has_unsaid_rest  # our own voice needs no server
        if is_said_on or not is_too_short(received_ms, reply.written):
            return reply.written
        return _said_by(reply, Cut(item_id, received_ms, received_ms, is_complete=False))

    def turns(self) -> tuple[Turn, ...]:
        """The transcript so far, in the conversation's order."""
        return tuple(
            self.grounds.beside(self._turn(item_id))
            for item_id in self._order
            if item_id in self._caller or item_id in self._replies
        )

    def _seen(self, item_id: ItemId) -> None:
        if item_id not in self._order:
            self._order.append(item_id)

    def _turn(self, item_id: ItemId) -> Turn:
        reply = self._replies.get(item_id)
        if reply is None:
            text = self._caller[item_id]
            return Turn(Speaker.CALLER, item_id, text, text, Source.TRANSCRIBED)
        if reply.source is Source.WHOLE and reply.audio_ms and not reply.written:
            return Turn(Speaker.AGENT, item_id, "", "", Source.NONE)
        if reply.source is Source.WHOLE and reply.audio_ms is not None and _lacks_words(reply, reply.audio_ms):
            heard = _said_by(reply, Cut(item_id, reply.audio_ms, reply.audio_ms, is_complete=False))
            return Turn(Speaker.AGENT, item_id, heard, reply.written, _by_our_own_account(reply))
        cut_ms = reply.cut.heard_ms if reply.cut else None
        return Turn(Speaker.AGENT, item_id, _heard_text(reply), reply.written, reply.source, cut_ms)


def _heard_text(reply: _Reply) -> str:
    match reply.source:
        case Source.WHOLE:
            return reply.written
        case Source.RETRIEVED:
            return reply.retrieved or ""
        case Source.ESTIMATED | Source.ALIGNED if reply.cut:
            return _shorter(_said_by(reply, reply.cut), reply.retrieved)
        case _:
            return ""


def _shorter(text: str, bound: str | None) -> str:
    return text if bound is None or len(text.split()) <= len(bound.split()) else bound


def _said_by(reply: _Reply, cut: Cut) -> str:
    return " ".join(reply.written.split()[: _words_by(reply, cut)])


def _words_by(reply: _Reply, cut: Cut) -> int:
    if reply.voiced:
        return aligned(reply.written, reply.voiced, cut)
    return len(estimate(reply.written, cut).split())


def _by_our_own_account(reply: _Reply) -> Source:
    return Source.ALIGNED if reply.voiced else Source.ESTIMATED


def _lacks_words(reply: _Reply, audio_ms: Ms) -> bool:
    """Whether the audio does not hold all of the text."""
    told = reply.voiced[-1][0] if reply.voiced else 0
    return reply.has_unsaid_rest or (told < len(reply.written.split()) and is_too_short(audio_ms, reply.written))
