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

from callwright.claims.facts import Said, Span
from callwright.claims.lexicon import Lexicon, patterns_of
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
    """One clause: its words with ``A0`` for the first amount and ``N0`` for the first group of digits of the text."""

    text: str
    sentence: int
    span: Span
    open: bool
    """Whether a condition, a question or somebody else's words hold here."""


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

    def is_torn(self, number: Amount | Group) -> bool:
        """Whether a number touches the cut, so that there may be more of it."""
        return self.cut and number.end >= len(self.tokens)


# --- Dividing -----------------------------------------------------------------------------------------------------

_SUBJECT = set(
    "i we it you they he she that this the your our there everything nothing will should would has have had is was"
    " were did does".split()
)
_BREAKS = {"but", "however", "although", "though", "whereas", "except", "instead"}
_JOINS = {"and", "so", "because", "since", "then", "plus", "which"}

_PSEUDO = re.compile(
    r"\bnot only\b|\bnot just\b|\b(?:do|does|did|will|would) not (?:need|have|want) to\b(?: \w+)?|\bneed not\b"
    r"|\bno need\b|\bno (?:problems?|worries|trouble|issues?|doubt|sooner|charge|fees?|extra|delays?|hitch(?:es)?)\b"
    r"|\b(?:was|were|is|are) no (?:problems?|issues?|trouble|delays?)\b"
    r"|\bnot (?:a|an|any) (?:problem|issue|worry|moment)\b|\b(?:do not|not to) worry\b|\bno longer (?:need|have) to\b"
    r"|\bwithout (?:any )?(?:\w+ )?(?:problems?|issues?|trouble|delays?|hitch(?:es)?|difficulty|difficulties|fail|charge|ado)\b"
    r"|\bnothing (?:else|more|further|left)\b(?: (?:you|for you))?(?: (?:need|have))?(?: to do)?"
    r"|\b(?:i|we) can (?:now )?(?:confirm|tell you|see|say|report|assure you)\b(?: that)?"
    r"|\b(?:happy|glad|pleased|good|delighted) to (?:say|confirm|tell you|report|let you know|inform you|hear)\b(?: that)?"
    r"|\bjust (?:to let you know|so you know)\b|\bwant(?:ed)? (?:you to know|to let you know)\b(?: that)?"
    r"|\byou will be (?:happy|glad|pleased) to (?:hear|know)\b(?: that)?|\bas you (?:can see|asked|requested|wanted|said)\b"
    r"|\b(?:and )?no (?:cents|pence)\b"
    r"|\b(?:as )?(?:i|we) (?:said|told you|mentioned)\b"
)
_CONDITION = re.compile(
    r"\b(?:if|unless|once|whenever|when|whether|assuming|provided|suppose|supposing|until|till|as soon as|in case"
    r"|as long as|imagine|before|as if|as though|while (?:i|we)|had (?:it|the|we|i))\b"
)
_TAKES_BACK = re.compile(r"^(?:or|minus|less|except|excluding|apart from|other than|said|not$|as if|as though)\b")
_LET_KNOW = re.compile(r"\b(?:let (?:me|us) know|call us|reach out|contact us|feel free|get in touch)\b")
_OTHERS = re.compile(
    r"\b(?:you|he|she|they|bank|shop|store|web ?site|mail|letter|someone|somebody|colleague|agent|friend|wife|husband)"
    r" (?:\w+ )?(?:said|says|say|saying|told|tell|tells|claim|claims|claimed|mentioned|think|thinks|thought|heard|asked"
    r"|believe|believes|believed|promised|wanted|wrote|expected)\b|\byou (?:were|was|are|have been) (?:told|promised)\b"
    r"|\baccording to\b|\bpeople say\b|\b(?:rumou?r|they say)\b"
)
_NOT_KNOWN = (
    r"\b(?:do|does|did|can|could|would|will) not (?:yet |really |quite |actually )*"
    r"(?:think|believe|know|say|confirm|tell|promise|guarantee|see|verify|be sure|expect)\b"
    r"|\b(?:is|are|am|was) (?:it )?not (?:yet |quite |entirely |really )*(?:sure|certain|clear|the case|convinced)\b"
    r"|\bnot (?:sure|certain|clear)\b|\bunsure\b|\bunclear\b|\bunable to (?:say|tell|confirm)\b"
)
_DOUBT = re.compile(
    _NOT_KNOWN + r"|\b(?:i|we) doubt\b|\bwish\b|\b(?:nonsense|a lie|rumou?r|myth|untrue|false|wrong) (?:that|to say)\b"
)
_UNSURE = re.compile(
    _NOT_KNOWN + r"|\b(?:checking|finding out|find out|waiting to hear|looking into|verifying|check|asking|wondering|ask)"
    r" (?:\w+ ){0,3}?(?:whether|if)\b|\bno (?:confirmation|answer|reply|word|news)\b|\bremains to be seen\b"
    r"|\boutcome is (?:still )?(?:unknown|open)\b|\bwaiting for (?:a |the )?(?:\w+ )?(?:confirmation|answer|reply)\b"
)
_ELSEWHERE = re.compile(
    # another person, another time, or how things are done in general
    r"\b(?:someone|somebody|anyone|everyone) else\b|\b(?:another|other|previous|last) (?:customer|caller|person|order)s?\b"
    r"|\bby mistake\b|\bin error\b|\bwrong (?:card|account|person|customer)\b"
    r"|\blast (?:year|month|week|time|spring|summer|autumn|fall|winter)\b|\b(?:years?|months?|weeks?|a while) ago\b"
    r"|\bpreviously\b|\bin the past\b|\bback (?:in|then)\b(?! (?:your|the))"
    r"|\b(?:usually|normally|generally|typically|always|often|sometimes|as a rule|in general|every time)\b"
    r"|\b(?:refunds|cancellations|bookings|payments|orders|returns|they) (?:are|get|go)\b"
    r"|\b(?:example|demo|sample|pretend\w*|hypothetical\w*|rehears\w*|practi[cs]e)\b"
)
_HEDGE = re.compile(
    r"\b(?:i|we) (?:\w+ )?(?:think|thought|believed?|guess(?:ed)?|hoped?|supposed?|assumed?|imagined?|expect(?:ed)?|wish(?:ed)?)\b|\beither\b|\bas though\b|\bhopefully\b"
    r"|\b(?:it|this|that) (?:\w+ )?(?:looks|seems|appears|sounds)\b|\b(?:probably|maybe|perhaps|apparently|presumably"
    r"|supposedly|possibly|allegedly)\b"
)
_ASKS = re.compile(
    r"^(?:(?:and|so|okay|ok|well|then|sorry) )*(?:did|has|have|had|is|are|am|was|were|do|does|can|could|shall|should|would"
    r"|will|may|might) (?:it|the|you|we|i|they|that|this|your|my|our|there|everything|anything|all|A\d+|N\d+)\b"
    r"|^(?:(?:and|so|okay|ok|well) )*(?:why|how|what|who|where|which)\b"
)
_HOLDERS = (_OTHERS, _DOUBT, _HEDGE, _ELSEWHERE)
"""What holds from where it is said to the end of the sentence."""
_PARTING = re.compile(
    r"^(?:and |so )?(?:anything else|is there anything|what else|how else|can i help|may i help|would you like anything"
    r"|do you (?:need|have) (?:anything|any))\b"
)


def read(heard: Heard) -> Reading:
    """Divide what was heard into clauses and find its numbers."""
    tokens = tuple(tokens_of(heard.certain))
    numbers = numbers_of(tokens)
    marks: dict[int, tuple[str, int]] = {a.start: (f"A{n}", a.end) for n, a in enumerate(numbers.amounts)}
    marks |= {g.start: (f"N{n}", g.end) for n, g in enumerate(numbers.groups)}
    clauses: list[Clause] = []
    for number, sentence in enumerate(_sentences(tokens, marks)):
        clauses += _weighed(sentence, number)
    return Reading(tuple(clauses), numbers.amounts, numbers.groups, tokens, heard.is_cut)


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
            breaks = text in _BREAKS and tokens[at - 1].text != "as"  # "as though" goes on
            if fresh or breaks or (text in _JOINS and (following in _SUBJECT or end in marks)):
                raws.append(_Raw([], tokens[at].word, 0, quoted=quoted))
            fresh = False
            raws[-1].words.append(text)
            raws[-1].last = tokens[end - 1].word + 1
        at = end
    if raws:
        yield raws


def _weighed(raws: Sequence[_Raw], number: int) -> Iterator[Clause]:
    """The clauses of a sentence, with what holds from one for the others."""
    texts = [_PSEUDO.sub("~", " ".join(raw.words)) for raw in raws]
    conditions = [_CONDITION.search(text) is not None for text in texts]
    backwards = any(
        _TAKES_BACK.match(text) or (_CONDITION.match(text) and not text.startswith(("if you", "when you", "before you")))
        for text in texts[1:]
    )
    asked = raws[0].asked and not (len(raws) > 1 and _PARTING.match(texts[-1]))
    held = False
    for at, (raw, text) in enumerate(zip(raws, texts, strict=True)):
        letting_know = _LET_KNOW.search(text) is not None
        held = held or _ASKS.match(text) is not None or any(holder.search(text) for holder in _HOLDERS)
        led = conditions[at] and _condition_first(text)
        held = held or led
        tail_asks = raws[0].asked and at == len(raws) - 1
        is_open = held or asked or backwards or raw.quoted or letting_know or tail_asks
        yield Clause(text, number, (raw.first, raw.last), is_open)


def _condition_first(text: str) -> bool:
    """Whether a clause is led by its condition, and not followed by one ("... when you called")."""
    found = _CONDITION.search(text)
    return found is not None and (found.start() < 25 or not re.search(r"\bN\d|\bA\d", text[: found.start()]))


# --- What a clause says -------------------------------------------------------------------------------------------

_DONE_ANY = re.compile(
    r"\bgone through\b|\bwent (?:all the way )?through\b|\bdone\b(?! (?:with|for the day))"
    r"|\bcomplete(?=$| (?:for|and|to|on|now|with|as|already|at|onto|today|~|A\d|N\d))"
    r"|\bcompleted\b|\bfinished\b|\bfinali[sz]ed\b|\bsuccessful\b|\bsucceeded\b|\bprocessed\b|\btaken care of\b"
    r"|\bbeen made\b|\ball set\b|\bworked\b|\bis through\b"
)
_FAILED_ANY = re.compile(
    r"\bfailed\b|\bfell through\b|\bdeclined\b|\brefused\b|\brejected\b|\bunsuccessful\b|\b(?:went|gone) wrong\b"
    r"|\b(?:may|might|could|will|did|can|would|to|not|never) fail\b|\bhas an error\b|\bfailure\b"
)
_PENDING_ANY = re.compile(
    r"\bbeing \w+|\bprocessing\b|\bin (?:progress|process)\b|\bunder ?way\b|\bon (?:its|the) way\b|\bsubmitted\b"
    r"|\brequested\b|\binitiated\b|\bpending\b|\bsent (?:\S+ ){0,4}?to (?:the|your) (?:bank|provider|card company)\b"
    r"|\bwith (?:the|your) (?:bank|provider)\b|\baccepted\b|\bapproved\b|\bauthori[sz]ed\b|\bworking on\b|\bqueued\b"
    r"|\bhas been (?:started|received|scheduled)\b"
)
_CANCELLED_ANY = re.compile(r"\bcancelled\b|\bwithdrawn\b|\bcalled off\b|\bvoided\b|\bstopped\b")
_REVERSED_ANY = re.compile(r"\breversed\b|\bundone\b|\bbounced back\b|\bcame back\b|\bcharged back\b")
_PLANNED = (
    (Said.PENDING, re.compile(r"\b(?:will|let me|shall|can|could|to|would) (?:submit|request|initiate|start)\b")),
    (Said.CANCELLED, re.compile(r"\b(?:will|let me|shall|can|could|to|would|not) (?:cancel|withdraw|stop)\b")),
)

_OTHER_THING = re.compile(
    r"\b(?:payment|order|booking|reservation|charge|purchase|delivery|e ?mail|call|verification|check|complaint|update"
    r"|ticket|account|transfer|form|survey|delivery|package|parcel|shipment|letter|address|password|voucher|receipt|caller"
    r"|item|product|skillet)s?\b"
)
_NEGATION = re.compile(
    r"\b(?:not|never|no|nothing|none|nobody|neither|nor|without|hardly|barely|unable|yet to|far from|rather than"
    r"|instead of|fail(?:ed|s)? to|refused to|declined to|decided against|stopped short of)\b"
)
_MODAL = re.compile(
    r"\b(?:except|apart from|other than|excluding"
    r"|will|shall|would|could|can|may|might|must|should|ought|going to|about to|let (?:me|us)|wants?|wanted"
    r"|tr(?:y|ies|ied|ying)|attempt\w*|plan\w*|hop(?:e|es|ing)|expect\w*|please|ready to|needs?|needed|waiting|soon"
    r"|in the process of|scheduled|supposed|seems?|appears?|looks?|looked|think|believe|guess|suppose|probably|maybe"
    r"|perhaps|likely|apparently|presumably|possibly|almost|nearly|partly|partially|half|being|make sure|making sure|ensure"
    r"|wish|request\w* to|asked to|able to|sure to|like|getting|soon as|tomorrow|not yet fully|to (?:be|get|have)"
    r"|takes? \w+ \w+|wondering|doubt|pretend\w*)\b|\bto (?:\w+ly )?$"
)
_NOT_QUITE = re.compile(r"\b(?:almost|nearly|not|never|half|partly|partially|may|might|could|will|can|would|to fail)\b")
_LATER = re.compile(
    r"\b(?:soon|shortly|tomorrow|tonight|later|momentarily|once|if|unless|as soon as|until|provided|assuming|pending"
    r"|in a (?:moment|minute|second|bit|few)|next (?:week|month|day)|any (?:moment|minute|second)"
    r"|except|apart from|other than|excluding|minus|only (?:after|when|if|once)|or|(?:is|was) (?:what|how|when|where|something)|would be)\b"
)
_WITHIN = re.compile(
    r"\bwithin\b|\bafter\b|\bby (?:the end|\w+day|then)\b|\bin (?:the next|a couple|a few|a day|a week"
    r"|(?:N\d+ to )?N\d+ (?:business |working )?(?:days?|weeks?|hours?|minutes?))\b"
)
_PRESENT = re.compile(r"\b(?:is|are|am|gets?)(?: \w+){0,2} ?$")
_PERFECT = re.compile(r"\b(?:has|have|is|are|not been|had)\b")
_YET = re.compile(r"\b(?:yet|still|so far|until now|at this point)\b")
_UNTRUE = re.compile(r"\b(?:is|was) (?:not (?:true|right|correct|the case|what)|wrong|false|incorrect|untrue)|^ (?:nothing|no one|nobody)\b")
_MENDED = re.compile(
    r"\b(?:scratch|forget|ignore|disregard) (?:that|what)\b|\bmy mistake\b|\b(?:i|we) (?:was|were) (?:wrong|mistaken)\b"
    r"|\bthat (?:is|was) (?:wrong|not (?:right|true|correct)|incorrect|a mistake)\b|\bjust kidding\b|\bmisspoke\b"
    r"|\btake that back\b|\bwait no\b|\bactually no\b|^(?:oh )?wait\b|^correction\b"
)
_MAY_BE_UNKNOWN = re.compile(r"\b(?:whether|if|that|confirmation|answer|reply|word|news|yet|unknown|open|seen)\b")


@lru_cache(maxsize=256)
def _searches(words: Lexicon) -> tuple[tuple[Said, re.Pattern[str], bool], ...]:
    """What to look for, and whether it has to be of this operation and no other thing."""
    own = patterns_of(words)
    others = () if own.own.search("cancelled") else ((Said.CANCELLED, _CANCELLED_ANY, True),)
    return (
        (Said.DONE, own.own, False),
        (Said.DONE, own.moved, True),
        (Said.DONE, _DONE_ANY, True),
        (Said.FAILED, _FAILED_ANY, True),
        *others,
        (Said.REVERSED, _REVERSED_ANY, True),
        (Said.PENDING, own.doing, False),
        (Said.PENDING, _PENDING_ANY, True),
    )


def statements_of(reading: Reading, words: Lexicon) -> list[Statement]:
    """What the clauses say about the operation, in order."""
    return [said for number, clause in enumerate(reading.clauses) for said in _said(clause, number, reading, words)]


def _said(clause: Clause, number: int, reading: Reading, words: Lexicon) -> Iterator[Statement]:
    text = clause.text
    own = patterns_of(words)
    if _MENDED.search(text):
        yield Statement(Said.DONE, Force.NEGATED, number, mended=True)
    if _UNSURE.search(text) and not _LET_KNOW.search(text) and _whole_sentence_is_about(clause, reading, words):
        planned = re.search(r"\b(?:let me|will|going to|would|have to|need to|want to)\b", text)
        yield Statement(Said.UNKNOWN, Force.OPEN if planned else Force.AFFIRMED, number)
        return
    found: list[tuple[Said, re.Match[str]]] = []
    for said, pattern, must_be_own in _searches(words):
        match = pattern.search(text)
        if match is not None and not (must_be_own and _is_of_another(text, match, own.nouns)):
            found.append((said, match))
    for said, match in found:
        force = _force(clause, match)
        if said is Said.PENDING and any(other is Said.DONE for other, _ in found):
            continue  # "being refunded" is told by "refunded"
        if said is Said.DONE and re.search(r"\b(?:being|getting)\b", text[: match.start()]) and force is Force.OPEN:
            yield Statement(Said.PENDING, Force.OPEN if clause.open else Force.AFFIRMED, number)
        yield Statement(said, force, number)
    if not any(said is Said.DONE for said, _ in found) and (verb := own.base.search(text)):
        yield Statement(Said.DONE, _force_of_verb(clause, verb), number)
    for said, planned in _PLANNED:
        if not found and planned.search(text) and own.nouns.search(text):
            yield Statement(said, Force.OPEN, number)


def _whole_sentence_is_about(clause: Clause, reading: Reading, words: Lexicon) -> bool:
    """Whether the rest of a doubtful sentence is about the operation."""
    text = " ".join(other.text for other in reading.clauses if other.sentence == clause.sentence)
    own = patterns_of(words)
    hit = own.nouns.search(text) or own.own.search(text) or _DONE_ANY.search(text) or own.moved.search(text)
    return hit is not None and _MAY_BE_UNKNOWN.search(text) is not None


def _is_of_another(text: str, match: re.Match[str], nouns: re.Pattern[str]) -> bool:
    """Whether a word that can be said of anything is said of another thing: the order is complete, not the refund."""
    if nouns.search(text):
        return False
    return _OTHER_THING.search(text[: match.end()]) is not None


def _force(clause: Clause, match: re.Match[str]) -> Force:
    before, behind = clause.text[: match.start()], clause.text[match.end() :]
    if clause.open or _LATER.search(behind) or (_PRESENT.search(before) and _WITHIN.search(behind)):
        return Force.OPEN
    if _UNTRUE.search(behind):
        return Force.NEGATED
    negated = _NEGATION.search(before)
    if negated is None:
        within = clause.text[match.start() : match.end()]
        return Force.OPEN if _MODAL.search(before) or _NOT_QUITE.search(within) else Force.AFFIRMED
    if re.search(r"\bunable\b|\b(?:can|could) not\b", before):
        return Force.NEGATED
    modal = _MODAL.search(before.replace("yet to be", "yet").replace("be able to", ""))
    if modal is not None and modal[0] not in ("can", "could"):
        return Force.OPEN
    return Force.NOT_YET if _PERFECT.search(before) and _YET.search(clause.text) else Force.NEGATED


def _force_of_verb(clause: Clause, verb: re.Match[str]) -> Force:
    """How a bare verb is said: "did refund", "could not refund", "will refund"."""
    before = clause.text[: verb.end("before")]
    if clause.open:
        return Force.OPEN
    if _NEGATION.search(before):
        return Force.OPEN if re.search(r"\b(?:will|would|should|might|may|must|shall) not\b", before) else Force.NEGATED
    return Force.AFFIRMED if verb["before"].startswith("did") and not _LATER.search(clause.text) else Force.OPEN
