"""The words that turn a sentence: what they are, and for how far they hold. English only.

Patterns are for the text of a clause as `clauses` writes it: lower case, no contractions, ``A0`` for an amount, ``N0``
for a group of digits, ``~`` where a pseudo-trigger stood, and a blank before every word. So a pattern begins with a
blank, and is tried where a word begins and nowhere else. A list gets longer by a kind of phrase, never by a sentence.
"""

from __future__ import annotations

import re

from callwright.claims.facts import Said


def _words(*phrases: str) -> re.Pattern[str]:
    """Any of several phrases, as whole words."""
    return re.compile(rf" (?:{'|'.join(phrases)})\b")


def _first(*phrases: str) -> re.Pattern[str]:
    """Any of several phrases, at the beginning of a clause."""
    return re.compile(rf"^ (?:(?:and|so|okay|ok|well|then|sorry) )*(?:{'|'.join(phrases)})\b")


# --- What only looks like a trigger -------------------------------------------------------------------------------

_TROUBLE = r"(?:problems?|issues?|worry|worries|trouble|delays?|hitch(?:es)?|difficult(?:y|ies))"
PSEUDO = _words(
    r"not (?:only|just)",
    r"(?:do|does|did|will|would) not (?:need|have|want) to(?: \w+)?",
    r"no longer (?:need|have) to",
    r"do not worry(?: about (?:it|that|a thing))?(?: any ?more| any longer)?",
    r"need not|no need|not to worry|no doubt|no sooner",
    rf"(?:(?:was|were|is|are) )?no {_TROUBLE}",
    rf"not (?:an?|any) {_TROUBLE}",
    rf"without (?:any )?(?:\w+ )?(?:{_TROUBLE}|fail|charge|ado)",
    r"no (?:charge|fees?|extra)",
    r"(?:and )?no (?:cents|pence)",
    r"nothing (?:else|more|further|left)(?: (?:you|for you))?(?: (?:need|have))?(?: to do)?",
    r"(?:i|we) can (?:now )?(?:confirm|tell you|see|say|report|assure you)(?: that)?",
    r"before (?:telling|letting) you(?: know)?(?: that)?",
    r"(?:happy|glad|pleased|good|delighted) to (?:say|confirm|tell you|report|let you know|inform you|hear)(?: that)?",
    r"just (?:to let you know|so you know)|heard back",
    r"while (?:we|i|you) (?:were|was|have been) (?:talking|speaking|chatting|waiting|holding|on hold)",
    r"want(?:ed)? (?:you to know|to let you know)(?: that)?",
    r"you will be (?:happy|glad|pleased) to (?:hear|know)(?: that)?",
    r"as (?:you )?(?:can see|asked|requested|wanted|said|wished|expected|promised|agreed|mentioned|discussed)",
    r"(?:as )?(?:i|we) (?:said|told you|mentioned)|(?<=^ )that said",
)
"""Taken out before anything else is looked for."""
MANAGED = _words(r"(?:was|were|been) able to|managed to")
"""Nothing but "did"."""

# --- What holds for more than its clause --------------------------------------------------------------------------

CONDITION = _words(
    r"if|unless|once|when|whenever|whether|until|till|before(?! \w+day)|in case|imagine|suppose|supposing|assuming",
    r"provided",
    r"as soon as|as long as|as if|as though|while (?:i|we)|had (?:it|the|we|i)",
    r"after (?:A\d+|N\d+|it|we|i|you|they|your|my|the (?:refund|money|amount))",
    r"the (?:moment|minute|second|instant|day) (?:that )?(?:i|we|you|it|they|the|your)",
    r"(?:up)?on (?:receipt|return|arrival|approval|delivery)|subject to|depending on|contingent on|conditional on",
    r"in the (?:best|worst) case|at (?:best|the latest)|correct me",
)
ORDERED = _first(
    r"(?:please )?(?:just )?(?:send|return|bring|mail|ship|drop|hand|pack|sign|fill|wait|allow)",
    r"(?:please )?(?:just )?(?:(?:give|tell|show) (?:us|me)|give it)",
)
"""What the caller is to do first: what follows holds once he has."""
_SAY = r"say|says|said|tell me|told me|claims?|claimed|think|reckon|states?|reads|suggests?"
_BUT = r"(?:but|only|though|although|however)"
TAKES_BACK = _first(
    r"or|minus|less|except|excluding|apart from|other than|said|not$|as if|as though",
    rf"(?:you|he|she|they|it|your \w+) (?:{_SAY})$|(?:is|was|has|had|did|does) not (?:it|that)$",
    r"(?:is|was|did|does) (?:that|this)|(?:at least )?(?:that|this|it) (?:is|was) as far as",
    r"(?:at least )?(?:that|this|it) (?:is|was) (?:what|how) (?:you|they|he|she|it|i was|i heard)",
    r"which .*\b(?:not|wrong|mistaken?|untrue|false|incorrect)|fingers crossed|touch wood|knock on wood",
    r"(?:but )?(?:for|to|under|in|on) (?:an? |the )?(?:different|other|another|wrong|somebody|someone)",
    rf"(?:{_BUT} |then )?(?:\w+ ){{0,3}}(?:sent|took|pulled|got) (?:it|that|them) back$",
    rf"(?:{_BUT} |then )?(?:\w+ ){{0,3}}(?:charged|debited|taken)(?: \w+)? again$",
    rf"{_BUT} (?:that|this|it) (?:is|was) (?:for|about|on|from|with|in)",
)
"""A later clause that turns those before it: it takes back, doubts, or says that another thing was meant."""
DOUBTED = _first(
    rf"{_BUT} (?:i|we) (?:may|might|could|must|should|have to|need to|would)",
    rf"{_BUT} (?:i|we) (?:can|could|do|did|am|are) not",
    rf"{_BUT} .*\b(?:not|never) (?:\w+ )?(?:right|true|correct|sure|certain|reliable|left|arrived?|went|go)",
)
"""A later clause that doubts what its speaker has claimed himself."""
LET_KNOW = _words(r"let (?:me|us) know|call us|reach out|contact us|feel free|get in touch")
OTHERS = _words(
    r"says|said(?! yes)|saying|told|tells|claims?|claimed|mentioned|thinks|thought|heard|wrote|writes|reads|promised",
    r"wondered",
    r"report(?:s|ed)|show(?:s|ed|ing)|display(?:s|ed)|states|stated|indicates|suggests|tell(?:s|ing)? (?:me|us)",
    r"has it (?:that|down|as|recorded)|rumou?r has it|status (?:is|says|shows|reads)|marked|flagged|listed",
    r"(?:you|he|she|they) (?:are|were|is|was) (?:\w+ )?(?:telling|saying|claiming|asking)",
    r"(?:you|he|she|they) (?:are|were|is|was) (?:\w+ )?(?:sure|certain|positive|convinced)",
    r"swore|swears|according to",
    r"(?:you|he|she|they) (?:\w+ )?(?:say|tell|claim|think|believe|asked|believed|wanted|want|expected|wish|wished"
    r"|mean|meant)",
)
"""Somebody else's words."""
_NOT_KNOWN = (
    r"(?:do|does|did|can|could|would|will) not (?:yet |really |quite |actually )*"
    r"(?:think|believe|know|say|confirm|tell|promise|guarantee|see|verify|be sure|expect)",
    r"(?:is|are|am|was) (?:it )?not (?:yet |quite |entirely |really )*(?:sure|certain|clear|the case|convinced)",
    r"not (?:sure|certain|clear)|unsure|unclear|unable to (?:say|tell|confirm)",
)
DOUBT = _words(*_NOT_KNOWN, r"(?:i|we) doubt|wish|(?:nonsense|a lie|rumou?r|myth|untrue|false|wrong) (?:that|to say)")
UNSURE = _words(
    *_NOT_KNOWN,
    r"(?:checking|check|finding out|find out|waiting to hear|looking into|verifying|asking|ask|wondering)"
    r" (?:\w+ ){0,3}?(?:whether|if)",
    r"no (?:confirmation|answer|reply|word|news)|remains to be seen|outcome is (?:still )?(?:unknown|open)",
    r"waiting for (?:a |the )?(?:\w+ )?(?:confirmation|answer|reply)",
)
"""That the outcome is not known, which is a milestone of its own."""
MAY_BE_UNKNOWN = _words(r"whether|if|that|confirmation|answer|reply|word|news|yet|unknown|open|seen")
ELSEWHERE = _words(
    r"(?:a|an|some|one) (?:customer|caller|client|guest|person|man|woman|lady|gentleman|friend|colleague)s?",
    r"(?:customer|caller|client|person|man|woman|lady|gentleman) (?:before|after|behind|ahead of) (?:you|me|us)",
    r"(?:someone|somebody|anyone|everyone) else|(?:another|other|previous|earlier|last) "
    r"(?:customer|caller|person|order|refund|booking|cancellation|attempt|try|one)s?",
    r"(?:in|on) (?:the|an?|your|my) (?:story|film|movie|book|dream|song|joke|radio|television|tv|news|papers?|article)",
    r"next door|(?:had|have|has|having|get|getting) A\d+ \w+ed",
    r"different (?:customer|caller|person|name|account|order|card)",
    r"by (?:mistake|accident)|in error|wrong (?:card|account|person|customer)",
    r"last (?:year|month|week|time|spring|summer|autumn|fall|winter)|(?:years?|months?|weeks?|a while) ago|previously",
    r"in the past|back (?:in|then)(?! (?:your|the))",
    r"usually|normally|generally|typically|always|often|sometimes|as a rule|in general|every time",
    r"(?:refunds|cancellations|bookings|payments|orders|returns|they) (?:are|get|go)",
    r"(?:test|training|practice) (?:system|environment|mode|account|call|run)|sandbox|simulation|dry run",
    r"example|demo|sample|pretend\w*|hypothetical\w*|rehears\w*|practi[cs]e",
)
"""Another person, another time, or how things are done in general."""
HEDGE = _words(
    r"(?:i|we) (?:\w+ )?(?:think|thought|believed?|guess(?:ed)?|hoped?|supposed?|assumed?|imagined?|expect(?:ed)?"
    r"|wish(?:ed)?)",
    r"(?:it|this|that) (?:\w+ )?(?:looks|seems|appears|sounds)|as though|either",
    r"hopefully|probably|maybe|perhaps|apparently|presumably|supposedly|possibly|allegedly|technically",
    r"on paper|in theory|in principle|yeah right|with (?:any|some|a bit of|a little) luck",
)
HOLDS = re.compile("|".join(each.pattern for each in (CONDITION, OTHERS, DOUBT, HEDGE, ELSEWHERE)))
"""What holds from where it is said to the end of the sentence."""

_AUXILIARY = "did|has|have|had|is|are|am|was|were|do|does|can|could|shall|should|would|will|may|might"
ASKS = _first(
    rf"(?:{_AUXILIARY}) (?:not )?(?:it|the|you|we|i|they|that|this|your|my|our|there|all|A\d+|N\d+)",
    rf"(?:{_AUXILIARY}) (?:everything|anything)",
    r"why|how|what|who|where|which",
)
"""A question, with or without its mark."""
PARTING = _first(
    r"anything else|is there anything|what else|how else|can i help|may i help|would you like anything",
    r"do you (?:need|have) (?:anything|any)",
)
"""A question about nothing in particular."""

# --- What is said -------------------------------------------------------------------------------------------------

DONE_ANY = _words(
    r"(?:gone|went) (?:all the way )?through|is through|done(?! (?:with|for the day))",
    r"complete(?=$| (?:for|and|to|on|now|with|as|already|at|onto|today|~|A\d|N\d))",
    r"completed|finished|finali[sz]ed|successful|succeeded|processed|taken care of|been made|all set",
    r"worked|cleared(?! (?:for|to|by|up))",
)
FAILED_ANY = _words(
    r"failed|failure|fell through|declined|refused|rejected|unsuccessful|(?:went|gone) wrong|has an error",
    r"(?:may|might|could|will|did|can|would|to|not|never) fail",
)
PENDING_ANY = _words(
    r"being \w+|processing|in (?:progress|process)|under ?way|on (?:its|the) way|submitted|requested|initiated|pending",
    r"sent (?:\S+ ){0,4}?to (?:the|your) (?:bank|provider|card company)|with (?:the|your) (?:bank|provider)",
    r"accepted|approved|authori[sz]ed|working on|queued|has been (?:started|received|scheduled)",
)
CANCELLED_ANY = _words(r"cancelled|withdrawn|called off|voided|stopped")
REVERSED_ANY = _words(
    r"reversed(?! (?:the|that|your) (?:\w+ )?(?:charge|payment|purchase))|undone|bounced back|came back|charged back"
)
PLANNED = (
    (Said.PENDING, _words(r"(?:will|let me|shall|can|could|to|would) (?:submit|request|initiate|start)")),
    (Said.CANCELLED, _words(r"(?:will|let me|shall|can|could|to|would|not) (?:cancel|withdraw|stop)")),
)
OTHER_THING = _words(
    r"(?:payment|order|booking|reservation|charge|purchase|delivery|e ?mail|call|verification|check|complaint|update"
    r"|ticket|account|transfer|form|request|application|policy|process|survey|package|parcel|shipment|letter|address|password|voucher|receipt|caller|item"
    r"|product)s?"
)
"""What can be done, complete or sent back beside the operation."""
SUBJECT = re.compile(
    r"(?<! for)(?<! of) (?:your|the|an?|my|our|this|that|their|his|her) (?:\w+ )?(\w+)"
    r" (?:is|are|was|were|has|have|had|went|did)\b"
)
"""A thing that something is said of."""
OWN_SUBJECT = re.compile(
    r"[AN]\d+|amount|money|funds|sum|total|rest|transaction|thing|bank|system|team|provider|shop|store|department|one|all"
    r"|that|it"
)
"""Things that stand for the operation, and who carries it out."""

# --- How it is said, before the words that say it and behind them -------------------------------------------------

_EXCEPTIONS = r"except|apart from|other than|excluding"
NEGATION = _words(
    r"not|never|no|nothing|none|nobody|neither|nor|without|hardly|barely|unable|yet to|far from|rather than|instead of",
    r"fail(?:ed|s)? to|refused to|declined to|decided against|stopped short of",
)
MODAL = re.compile(
    r" (?:will|shall|would|could|can|may|might|must|should|ought|going to|about to|let (?:me|us)|wants?|wanted|please"
    r"|tr(?:y|ies|ied|ying)|attempt\w*|plan\w*|hop(?:e|es|ing)|expect\w*|needs?|needed|waiting|wish|like|pretend\w*"
    r"|ready to|able to|sure to|asked to|request\w* to|to (?:be|get|have)|in the process of|mak(?:e|ing) sure|ensure"
    r"|scheduled|supposed|seems?|appears?|looks?|looked|think|believe|guess|suppose|doubt|wondering|takes? \w+ \w+"
    r"|probably|maybe|perhaps|likely|apparently|presumably|possibly|soon|tomorrow|not yet fully"
    r"|just about|about (?:done|complete|finished)|as good as|practically|virtually|basically"
    rf"|almost|nearly|partly|partially|half|being|getting|{_EXCEPTIONS})\b| to(?: \w+ly)?$"
)
NOT_QUITE = _words(r"almost|nearly|not|never|half|partly|partially|may|might|could|will|can|would|to fail")
LATER = re.compile(
    r" (?:soon|shortly|tomorrow|tonight|later|momentarily|once|if|unless|as soon as|until|provided|assuming|pending"
    r"|in a (?:moment|minute|second|bit|few)|next (?:week|month|day)|any (?:moment|minute|second)|or|minus|would be"
    rf"|only (?:after|when|if|once)|(?:is|was) (?:what|how|when|where|something)|{_EXCEPTIONS})\b"
)
JUDGES = re.compile(
    r"^(?!.*\b(?:that|which|who|and) )"
    r".* (?:(?:is|was) (?!A\d|N\d)|sounds?|seems?|looks?|means?|makes?|would|might|could|may|can) "
)
ACTS = _words(r"has|have|had|is|are|am|was|were|been|did|got|went|i|we|you|they|bank|team|provider|shop|store")
"""Without one of these before it a participle names a thing, and what judges it claims nothing: "refunded is fair"."""
UNDER_WAY = _words(r"being|getting")
PRESENT = re.compile(r" (?:is|are|am|gets?)(?: \w+){0,2}$")
WITHIN = _words(
    r"within|after|by (?:the end|\w+day|then)|in (?:the next|a couple|a few|a day|a week)",
    r"in (?:N\d+ to )?N\d+ (?:business |working )?(?:days?|weeks?|hours?|minutes?)",
)
"""With the present tense it is the future: "is refunded within five days"."""
HABIT = _words(r"(?:is|are) (?:\w+ )?(?:done|processed|made|handled|completed|issued) (?:in (?!full)|by|via|every|per)")
PERFECT = _words(r"has|have|is|are|not been|had")
YET = _words(r"yet|still|so far|until now|at this point")
CANNOT = _words(r"unable|(?:can|could) not")
NOT_GOING_TO = _words(r"(?:will|would|should|might|may|must|shall) not")
INTENDS = _words(r"let me|will|going to|would|have to|need to|want to")
UNTRUE = re.compile(
    r" (?:is|was) (?:not (?:true|right|correct|the case|what)|wrong|false|incorrect|untrue)\b"
    r"|^ (?:nothing|no one|nobody)\b"
)
MENDED = re.compile(
    r" (?:(?:scratch|forget|ignore|disregard) (?:that|what)|my mistake|(?:i|we) (?:was|were) (?:wrong|mistaken)"
    r"|that (?:is|was) (?:wrong|not (?:right|true|correct)|incorrect|a mistake)|just kidding|misspoke|take that back"
    r"|(?:that|this|it) (?:is|was) (?:just |only |at least )?(?:the|my|our|an?) (?:plan|idea|hope|goal|intention|theory"
    r"|aim|wish|dream|joke|guess|story|lie|rumou?r|test)|wait no|actually no)\b|^ (?:oh )?wait\b|^ correction\b"
)
"""What takes back all that was said before."""
