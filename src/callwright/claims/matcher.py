"""Whether a heard reply tells a milestone of an operation, and what it claims about it.

```
heard words ──> clauses ──> statements: agree | against | open ──> the last one that is not open decides
                   └──────> fields of the clauses that carry the claim ──> told | partial | mismatch
```

Told is the milestone and every field that must be heard, affirmed together: in one sentence, or in up to two behind it
that say nothing else. All errors are meant to fall on the side of one more reminder. Without rules for a language
nothing is told; `sentences.is_rendered` is the way for those.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from callwright.claims.clauses import Clause, Force, Reading, Statement, read, statements_of
from callwright.claims.facts import Claim, ClaimFacts, Match, Milestone, Said, Span, Verdict
from callwright.claims.fields import Fields, Found
from callwright.claims.vocabulary import ARRIVAL, is_known, names_in
from callwright.claims.words import Heard

LOCALES = ("en",)
"""The languages that there are rules for."""
SENTENCES_BEHIND = 2
"""So many sentences behind a claim may still name its fields."""

_TELLS = {
    Milestone.PROPOSED: Said.PENDING,
    Milestone.REQUESTED: Said.PENDING,
    Milestone.RUNNING: Said.PENDING,
    Milestone.ACCEPTED: Said.PENDING,
    Milestone.CONFIRMED: Said.DONE,
    Milestone.FAILED: Said.FAILED,
    Milestone.UNKNOWN: Said.UNKNOWN,
    Milestone.CANCELLED: Said.CANCELLED,
    Milestone.REVERSED: Said.REVERSED,
}
_OUTCOMES = (Said.DONE, Said.FAILED, Said.CANCELLED, Said.REVERSED)
_NOT_DONE = {
    # what "not done" and "not done yet" are, by what would tell the milestone; the rest leaves it open
    (Said.DONE, Force.NEGATED): "against",
    (Said.DONE, Force.NOT_YET): "against",
    (Said.UNKNOWN, Force.NEGATED): "against",
    (Said.UNKNOWN, Force.NOT_YET): "against",
    (Said.FAILED, Force.NEGATED): "agrees",
    (Said.PENDING, Force.NEGATED): "against",
    (Said.PENDING, Force.NOT_YET): "agrees",
}

_OTHER_BUSINESS = re.compile(
    r" (?:charged?|debited|billed?|pay|payments?(?! method)|purchased?|bought|costs?|owe[sd]?|due|fees?|used"
    r"|on file|saved|registered|(?:i|we|you) have (?:your|an?|the)|i see|instead of|rather than|voucher|store credit"
    r"|paid(?! (?:\S+ ){0,3}back\b| to\b| with\b)"
    r"|gift cards?|credit note|points|cash|cheque|discount|deposit|shipping|taken|took|deducted|withheld|withdrew"
    r"|reserved|held|phone|telephone|mobile|cell|called|calling|call from"
    r"|reference|confirmation|tracking|code|zip|postcode)\b"
)
"""What an amount or a card may be named for beside the operation: such a clause carries no field."""
_NOT_PLAIN = re.compile(
    r"^ (?:but|however|although|though|whereas)\b"
    r"| (?:still|yet|not|never|no|nothing|without|except|apart|aside|excluding|other than|will|shall|would|could|can"
    r"|may|might|must|should|want|wants|wanted|hope|let|next|follows?|comes?|remains?|remaining|waits?|pending|open|left|due)\b"
)


def judge(heard: Heard, facts: ClaimFacts, locale: str = "en") -> Match:
    """What a heard reply is worth for the milestone that the facts name.

    Any text has a verdict; a language without rules (see `LOCALES`) has ``NONE``.
    """
    if locale.split("-", maxsplit=1)[0].lower() not in LOCALES:
        return Match(Verdict.NONE)
    reading = read(heard)
    return _Judgement(reading, facts, heard.certain.split()).match() if reading.clauses else Match(Verdict.NONE)


def claimed(heard: Heard, facts: ClaimFacts, locale: str = "en") -> Claim:
    """What a heard reply claims about the operation, with or without its fields; the last claim counts.

    "It has gone through" claims that it is done, whatever the record says. A sentence about another subject, a plan and
    a question claim nothing.
    """
    if locale.split("-", maxsplit=1)[0].lower() not in LOCALES:
        return Claim(Said.NOTHING)
    reading = read(heard)
    fields = Fields(reading, facts)
    for statement in reversed(statements_of(reading, facts.lexicon)):
        clause = reading.clauses[statement.clause]
        said = _claim_of(statement)
        if said is not Said.NOTHING and not fields.is_elsewhere(clause):
            return Claim(said, clause.span)
    return Claim(Said.NOTHING)


def _claim_of(statement: Statement) -> Said:
    if statement.force is Force.AFFIRMED:
        return statement.said
    if statement.said is not Said.DONE or statement.force is Force.OPEN or statement.mended:
        return Said.NOTHING
    return Said.PENDING if statement.force is Force.NOT_YET else Said.FAILED


def relation(statement: Statement, needed: Said) -> str:
    """``agrees``, ``against`` or ``open``: how a statement stands to what would tell the milestone."""
    said, force = statement.said, statement.force
    if force is Force.OPEN:
        return "open"
    if said is Said.DONE and force is not Force.AFFIRMED:
        return "against" if statement.mended else _NOT_DONE.get((needed, force), "open")
    if said is needed:
        return "agrees" if force is Force.AFFIRMED else "against" if needed is not Said.PENDING else "open"
    return "against" if force is Force.AFFIRMED and said in _OUTCOMES else "open"


class _Judgement:
    """One reply, weighed against one operation."""

    def __init__(self, reading: Reading, facts: ClaimFacts, words: Sequence[str]) -> None:
        self._reading = reading
        self._words = words
        self._facts = facts
        self._needed = _TELLS[facts.milestone]
        self._fields = Fields(reading, facts)
        self._statements = statements_of(reading, facts.lexicon)

    def match(self) -> Match:
        ours = [said for said in self._statements if not self._of_another(said)]
        aside = [said for said in self._statements if self._of_another(said)]
        if not ours and any(self._relation(said) == "agrees" for said in aside):
            return Match(Verdict.MISMATCH, spans={"claim": self._clause(aside[0]).span})
        related = [(said, self._relation(said)) for said in ours]
        decided = [(said, how) for said, how in related if how != "open"]
        if not decided:
            verdict = Verdict.INTENT if related else Verdict.NONE
            return Match(verdict, spans={"claim": self._clause(related[0][0]).span} if related else {})
        last, how = decided[-1]
        if how == "against":
            return Match(Verdict.CONTRADICTED, spans={"claim": self._clause(last).span})
        return self._told(related)

    def _relation(self, statement: Statement) -> str:
        return "open" if self._clause(statement).doubted else relation(statement, self._needed)

    def _of_another(self, statement: Statement) -> bool:
        return self._fields.is_elsewhere(self._clause(statement))

    def _clause(self, statement: Statement) -> Clause:
        return self._reading.clauses[statement.clause]

    def _told(self, related: Sequence[tuple[Statement, str]]) -> Match:
        """The milestone is affirmed, and nothing behind it says otherwise: what of its fields?"""
        agreeing: list[int] = []
        for said, how in related:
            if how == "against":
                agreeing.clear()
            elif how == "agrees":
                agreeing.append(said.clause)
        carriers = list(self._carriers(agreeing, related))
        found = self._fields.look(carriers)
        spans: dict[str, Span] = {"claim": self._reading.clauses[agreeing[-1]].span}
        spans |= {name: span for name, (state, span) in found.items() if state is Found.AFFIRMED}
        affirmed = frozenset(name for name, (state, _) in found.items() if state is Found.AFFIRMED)
        if any(state is Found.WRONG for state, _ in found.values()):
            return Match(Verdict.MISMATCH, affirmed, spans)
        complete = all(name in affirmed for name in self._facts.must_hear)
        if not complete or not self._is_plain(agreeing, carriers):
            return Match(Verdict.PARTIAL, affirmed, spans)
        return Match(Verdict.TOLD, affirmed, spans)

    def _is_plain(self, agreeing: Sequence[int], carriers: Sequence[Clause]) -> bool:
        """Whether all words are known that could turn the claim: those of its sentences, and of the next one behind.

        Of the sentence before, only what is open has to be: a question, a condition, somebody else's words.
        """
        first = self._reading.clauses[agreeing[0]].sentence
        last = max(clause.sentence for clause in (self._reading.clauses[agreeing[-1]], *carriers))
        near = [
            (number, clause)
            for number, clause in enumerate(self._reading.clauses)
            if first <= clause.sentence <= last + 1 or (clause.open and clause.sentence == first - 1)
        ]
        names = names_in(self._reading.tokens, self._words)
        return is_known(near, agreeing, names, self._facts, self._needed)

    def _carriers(self, agreeing: Sequence[int], related: Sequence[tuple[Statement, str]]) -> Iterator[Clause]:
        """The clauses whose fields count: plain ones of the claim's sentences, and of the two behind the last."""
        speaks = {said.clause: how for said, how in related}
        sentences = {self._reading.clauses[number].sentence for number in agreeing}
        latest = max(sentences)
        for number, clause in enumerate(self._reading.clauses):
            if number in agreeing:
                if not _OTHER_BUSINESS.search(clause.text):
                    yield clause
            elif clause.sentence in sentences or latest < clause.sentence <= latest + SENTENCES_BEHIND:
                is_new = _blocks(clause, speaks.get(number)) or self._fields.is_elsewhere(clause)
                if clause.sentence > latest and is_new:
                    return
                if self._carries(clause, speaks.get(number)):
                    yield clause

    def _carries(self, clause: Clause, speaks: str | None) -> bool:
        if clause.open or _OTHER_BUSINESS.search(clause.text):
            return False
        if ARRIVAL.search(clause.text):
            return True
        return speaks is None and not _NOT_PLAIN.search(clause.text)


def _blocks(clause: Clause, speaks: str | None) -> bool:
    """Whether a sentence behind the claim is about something new, so that nothing further belongs to it."""
    return clause.open or (speaks is not None and not ARRIVAL.search(clause.text))
