"""A heard text as clauses, and what each of them claims: stage, polarity and modality.

The shape is that of NegEx: triggers, pseudo-triggers that look like one, and ends of scope.

```
"Without any problem,"  "32 dollars has been refunded"  "and I will e-mail you"
 pseudo: no negation     DONE affirmed                   another matter

"If the bank agrees,"   "it is refunded"                "You said"  "it is done"
 holds for the sentence  DONE open                       holds for the sentence: open
```

A clause ends at a comma, at "but" and its like, and where "and" begins a new statement. Conditions, questions and other
people's words hold for the rest of their sentence. What is in doubt is open: it neither tells nor contradicts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from callwright.claims import triggers
from callwright.claims.facts import Said, Span
from callwright.claims.lexicon import Lexicon, Patterns, patterns_of
from callwright.claims.numbers import Amount, Group, numbers_of
from callwright.claims.words import STOP, Heard, Token, tokens_of


class Force(Enum):
    """How something is said."""

    AFFIRMED = auto()
    NEGATED = auto()
    NOT_YET = auto()
    """Negated up to now."""
    OPEN = auto()
    """Planned, asked, supposed, quoted."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause: its words, a blank before each, with ``A0`` and ``N0`` for the first amount and group of digits."""

    text: str
    sentence: int
    span: Span
    open: bool
    """Whether a condition, a question or somebody else's words hold here."""
    doubted: bool = False
    """Whether what was said here is doubted behind it, by who said it: a claim, but no telling."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that a clause says about the operation."""

    said: Said
    force: Force
    clause: int
    mended: bool = False
    """Whether it takes back what was said before."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A text, read: its clauses, and its numbers by their place in it."""

    clauses: tuple[Clause, ...]
    amounts: tuple[Amount, ...]
    groups: tuple[Group, ...]
    tokens: tuple[Token, ...]
    cut: bool
    timed: bool
    """Whether the times of its words were known, so that a margin was kept from the cut."""

    def is_torn(self, number: Amount | Group) -> bool:
        """Whether a number touches the cut, so that there may be more of it or less of it was heard.

        A word must stand behind it; where the words have times, the end of its sentence is enough.
        """
        behind = self.tokens[number.end :]
        if not self.cut or any(token.text[0].isalnum() for token in behind):
            return False
        return not (self.timed and any(token.text == STOP for token in behind))


# --- Dividing -----------------------------------------------------------------------------------------------------

_STATEMENT_BEGINS = re.compile(
    r"(?:i|we|it|you|they|he|she|that|this|the|your|our|there|everything|nothing|will|should|would|has|have|had|is|was|were"
    r"|did|does)$"
)
_BREAKS = {"but", "however", "although", "though", "whereas", "except", "instead"}
_GO_ON = {"as", "all", "nothing", "anything", "everything"}
"""Before one of these words it breaks nothing: "as though", "all but"."""
_JOINS = {"and", "so", "because", "since", "then", "plus", "which"}


@lru_cache(maxsize=64)
def read(heard: Heard) -> Reading:
    """Divide what was heard into clauses and find its numbers. Kept for a while: a reply is judged more than once."""
    tokens = tuple(tokens_of(heard.certain))
    numbers = numbers_of(tokens)
    marks: dict[int, tuple[str, int]] = {a.start: (f"A{n}", a.end) for n, a in enumerate(numbers.amounts)}
    marks |= {g.start: (f"N{n}", g.end) for n, g in enumerate(numbers.groups)}
    clauses: list[Clause] = []
    for number, sentence in enumerate(_sentences(tokens, marks)):
        clauses += _weighed(sentence, number)
    return Reading(tuple(clauses), numbers.amounts, numbers.groups, tokens, heard.is_cut, heard.is_timed)


@dataclass(slots=True)
class _Raw:
    """A clause as it is gathered."""

    words: list[str]
    first: int
    last: int
    asked: bool = False
    quoted: bool = False


def _sentences(tokens: Sequence[Token], marks: dict[int, tuple[str, int]]) -> Iterator[list[_Raw]]:
    """The clauses of one sentence after the other."""
    raws: list[_Raw] = []
    fresh, quoted, at = True, False, 0
    while at < len(tokens):
        text, end = marks.get(at, (tokens[at].text, at + 1))
        if text in (STOP, "?"):
            for raw in raws:
                raw.asked = text == "?"
            if raws:
                yield raws
            raws, fresh = [], True
        elif text == ",":
            fresh = True
        elif text == '"':
            quoted, fresh = not quoted, True
        else:
            following = tokens[end].text if end < len(tokens) else ""
            breaks = text in _BREAKS and tokens[at - 1].text not in _GO_ON
            if fresh or breaks or (text in _JOINS and (_STATEMENT_BEGINS.match(following) or end in marks)):
                raws.append(_Raw([], tokens[at].word, 0, quoted=quoted))
            fresh = False
            raws[-1].words.append(text)
            raws[-1].last = tokens[end - 1].word + 1
        at = end
    if raws:
        yield raws


def _weighed(raws: Sequence[_Raw], number: int) -> Iterator[Clause]:
    """The clauses of a sentence, with what holds from one for the others."""
    texts = [triggers.MANAGED.sub(" did", triggers.PSEUDO.sub(" ~", " ".join(["", *raw.words]))) for raw in raws]
    asked = raws[0].asked
    parting = len(raws) > 1 and triggers.PARTING.match(texts[-1]) is not None
    doubts = [at for at, text in enumerate(texts) if at and triggers.DOUBTED.match(text)]
    held = any(map(_turns_what_stood_before, texts[1:])) or (asked and not parting)
    for at, (raw, text) in enumerate(zip(raws, texts, strict=True)):
        held = held or triggers.ASKS.match(text) is not None or triggers.ORDERED.match(text) is not None
        held = held or triggers.HOLDS.search(text) is not None
        alone = raw.quoted or triggers.LET_KNOW.search(text) is not None or (asked and at == len(raws) - 1)
        yield Clause(text, number, (raw.first, raw.last), held or alone, any(at < doubt for doubt in doubts))


def _turns_what_stood_before(text: str) -> bool:
    """Whether a later clause takes back or conditions the earlier ones; "if you need anything" does not."""
    if triggers.TAKES_BACK.match(text):
        return True
    return triggers.CONDITION.match(text) is not None and not text.startswith((" if you", " when you", " before you"))


# --- What a clause says -------------------------------------------------------------------------------------------


class _Search(NamedTuple):
    """What claims something."""

    said: Said
    pattern: re.Pattern[str]
    must_be_own: bool
    """Whether it has to be of this operation, and no other thing."""


@lru_cache(maxsize=256)
def _sought(words: Lexicon) -> tuple[Patterns, tuple[_Search, ...]]:
    """The patterns of a lexicon, and what to look for."""
    own = patterns_of(words)
    others = () if own.own.search(" cancelled") else ((Said.CANCELLED, triggers.CANCELLED_ANY, True),)
    found = (
        (Said.DONE, own.own, False),
        (Said.DONE, own.moved, True),
        (Said.DONE, triggers.DONE_ANY, True),
        (Said.FAILED, triggers.FAILED_ANY, True),
        *others,
        (Said.REVERSED, triggers.REVERSED_ANY, True),
        (Said.PENDING, own.doing, False),
        (Said.PENDING, triggers.PENDING_ANY, True),
    )
    return own, tuple(_Search(*each) for each in found)


def statements_of(reading: Reading, words: Lexicon) -> list[Statement]:
    """What the clauses say about the operation, in order."""
    own, searches = _sought(words)
    return [said for number in range(len(reading.clauses)) for said in _said(number, reading, own, searches)]


def _said(number: int, reading: Reading, own: Patterns, searches: Sequence[_Search]) -> Iterator[Statement]:
    clause = reading.clauses[number]
    text = clause.text
    if triggers.MENDED.search(text):
        yield Statement(Said.DONE, Force.NEGATED, number, mended=True)
    if _says_that_it_is_unknown(clause, reading, own):
        yield Statement(Said.UNKNOWN, Force.OPEN if triggers.INTENDS.search(text) else Force.AFFIRMED, number)
        return
    found = list(_found(text, own, searches))
    is_done = any(said is Said.DONE for said, _ in found)
    for said, match in found:
        if said is Said.PENDING and is_done:
            continue  # "being refunded" is told by "refunded"
        force = _force(clause, match)
        if said is Said.DONE and force is Force.OPEN and triggers.UNDER_WAY.search(text[: match.start()]):
            yield Statement(Said.PENDING, Force.OPEN if clause.open else Force.AFFIRMED, number)
        yield Statement(said, force, number)
    if not is_done and (verb := own.base.search(text)):
        yield Statement(Said.DONE, _force_of_verb(clause, verb), number)
    if not found and own.nouns.search(text):
        for said, planned in triggers.PLANNED:
            if planned.search(text):
                yield Statement(said, Force.OPEN, number)


def _found(text: str, own: Patterns, searches: Sequence[_Search]) -> Iterator[tuple[Said, re.Match[str]]]:
    """What is spoken of in a clause, and by which words; what is said of another thing is left out."""
    for said, pattern, must_be_own in searches:
        match = pattern.search(text)
        if match is None:
            continue
        nouns = own.named if said is Said.PENDING else own.nouns
        if not (must_be_own and _is_of_another(text, match, nouns)):
            yield said, match


def _says_that_it_is_unknown(clause: Clause, reading: Reading, own: Patterns) -> bool:
    """Whether a clause is in doubt, and its sentence is about the operation."""
    if not triggers.UNSURE.search(clause.text) or triggers.LET_KNOW.search(clause.text):
        return False
    text = "".join(other.text for other in reading.clauses if other.sentence == clause.sentence)
    hit = own.nouns.search(text) or own.own.search(text) or triggers.DONE_ANY.search(text) or own.moved.search(text)
    return hit is not None and triggers.MAY_BE_UNKNOWN.search(text) is not None


def _is_of_another(text: str, match: re.Match[str], nouns: re.Pattern[str]) -> bool:
    """Whether a word that can be said of anything is said of another thing: the order is complete, not the refund."""
    if nouns.search(text):
        return False
    subjects = triggers.SUBJECT.findall(text[: match.end()])
    if subjects and not triggers.OWN_SUBJECT.fullmatch(subjects[-1]):
        return True
    return triggers.OTHER_THING.search(text[: match.end()]) is not None


def _force(clause: Clause, match: re.Match[str]) -> Force:
    """How a participle is said: "has been refunded", "has not been", "will be"."""
    before, behind = clause.text[: match.start()], clause.text[match.end() :]
    is_future = triggers.PRESENT.search(before) and triggers.WITHIN.search(behind)
    is_thought = triggers.JUDGES.search(behind) and not triggers.ACTS.search(before)
    if clause.open or is_future or is_thought or triggers.LATER.search(behind) or triggers.HABIT.search(clause.text):
        return Force.OPEN
    if triggers.UNTRUE.search(behind) or triggers.CANNOT.search(before):
        return Force.NEGATED
    modal = triggers.MODAL.search(before.replace("yet to be", "yet"))
    if triggers.NEGATION.search(before):
        if modal is not None:
            return Force.OPEN
        return Force.NOT_YET if triggers.PERFECT.search(before) and triggers.YET.search(clause.text) else Force.NEGATED
    return Force.OPEN if modal or triggers.NOT_QUITE.search(match[0]) else Force.AFFIRMED


def _force_of_verb(clause: Clause, verb: re.Match[str]) -> Force:
    """How a bare verb is said: "did refund", "could not refund", "will refund"."""
    before = clause.text[: verb.end("before")]
    if clause.open:
        return Force.OPEN
    if triggers.NEGATION.search(before):
        return Force.OPEN if triggers.NOT_GOING_TO.search(before) else Force.NEGATED
    return Force.AFFIRMED if verb["before"].startswith("did") and not triggers.LATER.search(clause.text) else Force.OPEN
