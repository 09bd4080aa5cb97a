"""A caller's yes to what was proposed: which terms were read back to him, and which turn of his answers that.

Owns, per proposed revision, whether it was read back, and whether the next turn was a plain yes or a no. Does not own
whether a reply was a read-back or a text is a yes (``claims.readback``), nor what the ledger does with it.

```
agent    ▒▒ "That's 32 dollars, to your Visa ending in 4242. Shall I go ahead?" ▒▒│ heard whole
caller                                                                        │    "Yes, please."
consent  WANTED ──────────────────────────────────────────────────────────────│READ │ANSWERED │GIVEN
```

A yes counts only in the next turn, begun when the question was at the ear, within ``ANSWER_MS``, in few words that are
not the agent's own. A no withdraws. Whatever else is said, or the agent says next, makes a new read-back necessary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from callwright.claims.readback import Answer, answered
from callwright.claims.words import plain
from callwright.core.commands import Authorize, Withdraw
from callwright.core.events import Consent
from callwright.core.table import Table
from callwright.ids import ItemId, Ms

ANSWER_MS: Ms = 10_000
"""How long after the question an answer may begin."""
OVERLAP_MS: Ms = 300
"""So much before its end a turn may begin: servers put a little of what was before a turn into it."""
CONFIRM_MS: Ms = 1_000
"""How long a server may take to tell that the caller has begun to speak; it takes 0.8 s."""
WORDS_MAX = 8
"""A plain yes is short; a longer text is somebody who tells something, or a television."""


class State(Enum):
    """How far the caller's consent to one revision has come."""

    WANTED = auto()
    """It has to be read back."""
    READ = auto()
    """He has heard all of it, and has not answered."""
    ANSWERED = auto()
    """His next turn has begun; its words are not known yet."""
    GIVEN = auto()
    REFUSED = auto()
    VOID = auto()
    """Something else is proposed, or it is decided otherwise."""


class Cue(Enum):
    """What happens to it."""

    READ = auto()
    TURN = auto()
    """The caller begins to speak."""
    MOVED_ON = auto()
    """The agent speaks again, or the turn is no answer to this question."""
    YES = auto()
    NO = auto()
    OTHER = auto()
    CHANGED = auto()


CONSENT: Table[State, Cue] = Table(
    "consent",
    State.WANTED,
    {
        (State.WANTED, Cue.READ): State.READ,
        (State.READ, Cue.READ): State.READ,
        (State.READ, Cue.TURN): State.ANSWERED,
        (State.READ, Cue.MOVED_ON): State.WANTED,
        (State.ANSWERED, Cue.YES): State.GIVEN,
        (State.ANSWERED, Cue.NO): State.REFUSED,
        (State.ANSWERED, Cue.OTHER): State.WANTED,
        **{(state, Cue.CHANGED): State.VOID for state in State if state is not State.VOID},
    },
)

_CUES: Mapping[Answer, Cue] = {Answer.YES: Cue.YES, Answer.NO: Cue.NO}


@dataclass(slots=True)
class _Wanted:
    consent: Consent
    state: State = CONSENT.start
    question: str = ""
    """What was read back."""
    asked_ms: Ms = 0
    """When the last of it was at the ear."""
    item_id: ItemId | None = None
    """The turn that answers it."""


class Consents:
    """What the caller is to agree to in one call."""

    def __init__(self) -> None:
        self._wanted: dict[str, _Wanted] = {}
        self._turn_ms: Ms = -1
        """When the caller was last known to begin a turn."""

    def changed(self, op_id: str, consent: Consent | None) -> None:
        """An operation has changed: consent to this revision is wanted, or to none."""
        before = self._wanted.get(op_id)
        if before is not None and before.consent == consent:
            return
        if before is not None:
            before.state = CONSENT.after(before.state, Cue.CHANGED)
            del self._wanted[op_id]
        if consent is not None:
            self._wanted[op_id] = _Wanted(consent)

    def wanted(self) -> list[str]:
        """The operations that have to be read back, or were and are not decided."""
        return [op_id for op_id, each in self._wanted.items() if each.state in (State.WANTED, State.READ)]

    def read_back(self, op_id: str, question: str, asked_ms: Ms) -> None:
        """The caller has heard all of a question that names the terms; ``asked_ms`` is when its end was at the ear.

        It counts only if he has not begun a turn since: that turn came before it was known what he was asked.
        """
        each = self._wanted[op_id]
        if self._turn_ms < asked_ms:
            each.state = CONSENT.after(each.state, Cue.READ)
            each.question, each.asked_ms = question, asked_ms

    def reply_began(self) -> None:
        """The agent speaks again: what was asked before is not what the caller answers next."""
        for each in self._wanted.values():
            if each.state is State.READ:
                each.state = CONSENT.after(each.state, Cue.MOVED_ON)

    def turn_began(self, item_id: ItemId, told_ms: Ms, now_ms: Ms) -> None:
        """The caller speaks since ``told_ms``, as the server counts his audio; it is known since ``now_ms``.

        Audio that was lost before the session heard it makes that count too small: no server takes ``CONFIRM_MS``.
        """
        began_ms = max(told_ms, now_ms - CONFIRM_MS)
        self._turn_ms = now_ms
        for each in self._wanted.values():
            if each.state is not State.READ:
                continue
            is_answer = now_ms >= each.asked_ms and -OVERLAP_MS <= began_ms - each.asked_ms <= ANSWER_MS
            each.state = CONSENT.after(each.state, Cue.TURN if is_answer else Cue.MOVED_ON)
            each.item_id = item_id

    def is_asked(self) -> bool:
        """Whether the caller has been asked, and his answer is not known."""
        return any(each.state in (State.READ, State.ANSWERED) for each in self._wanted.values())

    def session_lost(self) -> None:
        """What he answers now may come late to the ear of another session: he has to be asked again."""
        for each in self._wanted.values():
            if each.state is State.READ:
                each.state = CONSENT.after(each.state, Cue.MOVED_ON)
            elif each.state is State.ANSWERED:
                each.state = CONSENT.after(each.state, Cue.OTHER)

    def turn_said(self, item_id: ItemId, text: str) -> list[Authorize | Withdraw]:
        """The words of a turn are known. Returns what follows for the ledger."""
        commands: list[Authorize | Withdraw] = []
        for op_id, each in self._wanted.items():
            if each.state is not State.ANSWERED or each.item_id != item_id:
                continue
            cue = _answer(text, each.question)
            each.state = CONSENT.after(each.state, cue)
            if cue is Cue.YES:
                commands.append(Authorize(op_id, each.consent.rev, each.consent.params_hash))
            elif cue is Cue.NO:
                commands.append(Withdraw(op_id))
        return commands


def _answer(text: str, question: str) -> Cue:
    words, asked = plain(text), plain(question)
    is_echo = any(asked[at : at + len(words)] == words for at in range(len(asked)))
    if is_echo or len(words) > WORDS_MAX:
        return Cue.OTHER
    return _CUES.get(answered(text), Cue.OTHER)
