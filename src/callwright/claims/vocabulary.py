"""The words that may stand in a reply that tells: a closed list, by class. English only.

Nobody can list what turns a sentence ("and pigs can fly"), so what leaves it as it is is listed instead. A word that is
neither here nor among the operation's own leaves a reply short of told. Words are as `clauses` writes them: without
contractions, and ``~`` where a pseudo-trigger stood.

```
"I've gone ahead and refunded $32 to your Visa."     every word is in COMMON
"You should see it soon, but it may take a day."     "should", "soon", "but", "may": only in the frame ARRIVAL
"... Visa, and pigs can fly."                        "pigs", "fly": nowhere; "can": only in a frame
```

What can turn a sentence by itself (not, but, will, if, need, a question) is known only in a frame: a kind of clause
that speaks of something harmless, such as when the money arrives, or what else the caller may want. The lists get
longer by a class of words that confirmations are made of. What says who thinks, says, hopes or shows something, who
else was meant, how sure it is and how much of it, has no place here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from callwright.claims.clauses import Clause
from callwright.claims.facts import ClaimFacts, Said
from callwright.claims.fields import BRANDS
from callwright.claims.spelling import spelled
from callwright.claims.words import STOP, Token, plain


def _words(*classes: str) -> frozenset[str]:
    return frozenset(word for words in classes for word in words.split())


_GRAMMAR = """
a an the this that these it its itself there here i we our me my you your yours is are am was were been has have had
did do does to onto on in into inside of for from with at as by back out up over through and so because since which
both all while during everything anything each one ones more very too such even
"""
_MANNER = """
now just already also again finally indeed actually really ahead together along successfully safely correctly properly
fully completely entirely directly immediately instantly promptly right straight quickly automatically personally
officially definitely certainly absolutely exactly smoothly earlier recently today yesterday morning afternoon evening
night ago minute minutes moment moments second seconds hour hours few couple this time monday tuesday wednesday
thursday friday saturday sunday noon lunchtime midday first third fourth fifth sixth seventh eighth ninth tenth
january february march april june july august september october november december
"""
_DOING = """
complete completed finished finalized finalised successful succeeded processed handled sorted resolved settled gone
went go going done made making taken took care set worked sent issued paid put placed managed able happened confirmed
updated carried checked looked found completing finishing confirming emailed mailed texted receipt copy handed pushed
pulled popped dropped landed ran run entered keyed typed filed pressed hit button clicked submitted signed started
closed wrapped squared cleared arranged approved authorised authorized accepted confirmation timing flat credited
deposited transferred received
"""
_MONEY = """
amount total full whole entire exact sum money funds payment method original same refund refunds credit reimbursement
transaction balance cent cents penny pence account accounts bank card cards debit file number numbers ending ends
ended last final digits digit four bucks partial plastic
"""
_THINGS = """
order orders ordered purchase purchased shipping item items product products return returned cancellation booking
reservation appointment subscription thing things placed bought mr mrs ms miss dr called calling damaged broken
defective faulty dented cracked colleague manager supervisor team store shop department company system
"""
_COURTESY = """
thank thanks glad happy pleased delighted good great excellent wonderful perfect fantastic awesome lovely fine okay ok
alright alrighty sure yes yeah yep yup well oh ah hello hi hey goodbye bye welcome news update quick absolutely course
certainly hooray hurray whew phew yay cheers ta bless brilliant super cool grand terrific splendid amazing marvellous
marvelous smashing superb sweet happily thankfully luckily gladly gratefully sir madam ma am dear mate folks ladies
official officially bingo voila ready then voilà dusted sorted nice top job um uh er erm hm mm
"""
_BRANDS = [spoken for brand in BRANDS.values() for spoken in brand]
COMMON = _words(_GRAMMAR, _MANNER, _DOING, _MONEY, _THINGS, _COURTESY, *_BRANDS)
"""What may stand in any clause of a reply that tells."""

OF_OUTCOME = {
    Said.FAILED: _words(
        "something provider issuer failed failure declined refused rejected unsuccessful unfortunately afraid unable"
        " wrong error not no could can sorry but try tried trying attempt attempted accept problem issue never nothing"
        " be"
    ),
    Said.UNKNOWN: _words(
        "know unknown unclear certain whether if tell say yet still not no can could checking being outcome open result"
        " answer clear sorry but find will verify unable confirm confirmation moment"
    ),
    Said.PENDING: _words(
        "submitted requested initiated pending processing progress process under way underway queue queued accepted"
        " approved authorized authorised started received scheduled working still yet being not no nothing result noted"
        " but should be will needs first about day days or soon"
    ),
    Said.CANCELLED: _words("cancelled withdrawn off voided stopped requested asked wanted"),
    Said.REVERSED: _words("reversed undone bounced came but however unfortunately sorry afraid"),
}
"""What beside that may stand in one that tells an outcome other than "done"."""

_TIME = """
day days week weeks weekend business working calendar next following soon shortly later tomorrow tonight within after
before until around about between up least most latest longer usually typically normally generally sometimes long time
times early late end period any
"""
_ARRIVING = """
will should can may might could be not but if depending depends bank banks see show shows showing appear appears
reflect reflected post posts posted arrive arrives land lands reach reaches hit clear clears available visible there
expect receive received get take takes allow need needs processing process processes statement online balance or them
way please keep eye give ever always watch look for
"""
_SENDING = """
will should can you get send email emailed e mail text message receive received receipt copy letter confirmation
details inbox reference shortly soon us with be few
"""
_OFFERING = """
please anything something else can may could would will help assist if like want need have any other questions
question concerns not do hesitate feel free let know us call contact reach give back anytime further does what how
when see within days day business ever again get in touch way ask happy today needs still be mind
"""
_PARTING = """
have enjoy rest your day week weekend evening nice take care safe hope helps you be much again calling us choosing
shopping with being customer patience time waiting holding
"""
_REGRET = """
sorry apologize apologise apologies apology appreciate appreciated patience patient waiting wait hold holding bearing
bear understanding inconvenience trouble troubles hassle problem problems issue issues difficulty delay delays
frustration frustrating confusion mix mixup about experience know understand how must can be any again once long took
calling being loyal valued hanging cheers there kind so nice good lovely great customer contacting reaching bringing
attention business us while much really having caused
"""

_AFTERWARDS = """
can could not be move moved change changed stop stopped undo undone redirect redirected any longer anymore more other
another different person somebody someone will call ring contact you back get in touch about
"""


def _frame(pattern: str, *classes: str) -> tuple[re.Pattern[str], frozenset[str]]:
    return re.compile(pattern), _words(*classes)


ARRIVAL = re.compile(
    r" (?:you|it|that|this|they|which|refund|money|amount|funds|credit|banks?|statement|account|card|visa|A\d+)"
    r" (?:(?:also|usually|typically|now|normally|generally|just|then) )*"
    r"(?:will|should|can|may|might|could|take|takes|post|posts) (?:take )?"
    r"(?:\w+ly |also |then |now |be able to |start to |not (?=.* (?:before|until|for|right away|immediately)\b)){0,2}"
    r"(?:see|expect|find|receive|get|have (?:it|your|the)|show|appear|reflect|arrive|land|reach|post|posts|clear|hit"
    r"|a few|A\d+|N\d+|up to|about|between|several|a day|a week|time|until|longer"
    r"|be (?:on|in|back|there|available|visible))\b"
    r"| going back\b| on (?:its|the|their) way\b"
)
"""What is to come after all is done; its future is no plan."""
_SO = r"^ (?:(?:and|so|but|okay|well|please|now|or|also|then|again|just) )*"
FRAMES = (
    (ARRIVAL, _words(_ARRIVING, _TIME)),
    _frame(
        rf"{_SO}(?:allow|give (?:it|the bank|your bank|them)|(?:it )?depend(?:s|ing) on"
        r"|(?:once|when|until|after) (?:your|the) bank)\b",
        _ARRIVING,
        _TIME,
    ),
    _frame(
        r" (?:i|we|you|there|it) (?:will|should|have|may) (?:\w+ )??(?:send|sent|e ?mail(?:ed)?|get|receive|receipt)\b",
        _SENDING,
        _TIME,
    ),
    _frame(
        rf"{_SO}(?:(?:is there|did you|do you|can i|may i|how|what|anything|would you)"
        r" (?=.*\b(?:else|help|assist|questions?)\b)"
        r"|anything else|if there is anything else"
        r"|if you (?:have|need|want|would like|ever|still) (?:any|help|to|more|need|have)"
        r"|if (?:you|it) (?:do|does|have|has) not (?:see|seen|show|shown|appear|appeared|receive|received|get|arrive"
        r"|arrived)"
        r"|let (?:me|us) know(?! (?:if|when|whether|that|how|what) (?!you\b|there is anything|i can\b|we can\b))"
        r"|(?:call|contact|reach out|reach|give (?:us|me) a (?:call|ring))|feel free|do not hesitate"
        r"|(?:i|we) (?:am|are) (?:\w+ )?(?:here|happy) to|you can (?:always )?(?:call|reach|contact))\b",
        _OFFERING,
        _TIME,
    ),
    _frame(
        rf"{_SO}(?:have|enjoy|take care|thank you|thanks|(?:i |we )?hope (?:that|this|you) (?:helps?|have|enjoy))\b",
        _PARTING,
    ),
    _frame(
        r" (?:sorry (?:\w+ )?(?:about|for|it|that)|apolog\w+ (?:\w+ )?(?:for|about)|thanks|thank you|cheers|appreciate"
        r"|understand (?:how|your|the|that)|know (?:how|this|that))\b",
        _REGRET,
    ),
    _frame(
        rf"{_SO}(?:i|we|it|that|this) (?:can|could) not (?:now |be )?(?:move|change|stop|und[oi]|redirect)"
        r"|^ (?:a |my |our )?(?:person|somebody|someone|colleague|manager|supervisor|team) will"
        r" (?:call|ring|contact|get back|get in touch)\b",
        _AFTERWARDS,
        _TIME,
    ),
)
"""Kinds of clauses that speak of something harmless, each with further words that it may be made of."""

_IDIOMS = re.compile(
    r" (?:(?:happy|glad|pleased|delighted|thrilled|able|just|like) to"
    r" (?:say|tell you|report|share|confirm|let you know|be clear)|to confirm|let you know|just so you know"
    r"|we are clear|what (?:i|we) have|would like"
    r"|you will be (?:happy|glad|pleased|delighted) to (?:hear|know)|rest assured|i (?:can )?assure you|consider it"
    r"|as (?:you )?(?:asked|requested|promised|discussed|mentioned|agreed)|as ever|as always"
    r"|you asked for|(?:called|calling|asked|contacted us) about|right to call|heard back|said yes|approved (?:it|that)"
    r"|(?:on|were) (?:its|their|the) way(?: back)?|by the way|by way of|in the end|in respect of"
    r"|on (?:my|our) (?:end|side)|(?:finished|done|completed) processing|where it belongs|came to(?= A)"
    r"|nothing will be (?:shipped|charged|sent)"
    r"|(?:let me )?not (?:going to )?(?:keep|make) you wait(?:ing)?(?: any longer)?|will not keep you"
    r"|no (?:further )?action (?:is )?(?:needed|required)|on file|free of charge|please(?= ~)|an? email is"
    r")(?![a-z])"
)
"""Phrases that change nothing, although a word of them alone might; courtesy, most of them."""
_BEFORE_NAME = _words("mr mrs ms miss dr thanks hi hello hey calling choosing")
_TURNING = frozenset(word for _, words in FRAMES for word in words)


def is_known(
    clauses: Iterable[tuple[int, Clause]],
    claiming: Collection[int],
    names: frozenset[str],
    facts: ClaimFacts,
    said: Said,
) -> bool:
    """Whether every word of these clauses is known to leave a claim of that outcome as it is.

    Clauses come with their numbers; ``claiming`` are the numbers of those that carry the claim.

    Numbers, the words of the operation's kind and those of its own terms are known too. A clause that asks, or stands
    under a condition, is one only where it is of a harmless kind.
    """
    own = names | _own_words(facts) | OF_OUTCOME.get(said, frozenset())
    harmless = None
    for number, clause in clauses:
        words = _unknown(clause.text) - own
        if number in claiming and (not words or (words == {"but"} and clause.text.startswith(" but "))):
            continue
        if not words and (not clause.open or said is Said.UNKNOWN or clause.sentence == harmless):
            continue
        if not any(words <= further and frame.search(clause.text) for frame, further in FRAMES):
            return False
        harmless = clause.sentence
    return True


def _unknown(text: str) -> set[str]:
    """The words of a clause that may not stand in every clause."""
    alone = {word for word in text.split() if word.isalpha()} - COMMON
    return alone and {word for word in _IDIOMS.sub(" ~", text).split() if word.isalpha()} - COMMON


def names_in(tokens: Sequence[Token], words: Sequence[str]) -> frozenset[str]:
    """Who is spoken to: "Thanks, Maria.", "Thanks for calling Copperline." A capital letter and the place show it.

    ``words`` are those of the text as they were written.
    """
    ends = [STOP, *(token.text for token in tokens), STOP]
    found = [
        token.text
        for before, token, behind in zip(ends, tokens, ends[2:], strict=False)
        if words[token.word].istitle() and (before in _BEFORE_NAME or (before == "," and behind in (",", STOP)))
    ]
    return frozenset(found) - _TURNING


@lru_cache(maxsize=256)
def _own_words(facts: ClaimFacts) -> frozenset[str]:
    """The words that an operation brings."""
    words = facts.lexicon
    phrases = [*words.nouns, *words.done, *words.base, *words.moved, *words.doing, facts.kind.replace("_", " ")]
    phrases += [facts.noun.replace("_", " "), facts.number.replace("_", " "), facts.brand]
    phrases += [part for name, value in facts.texts for part in (name.replace("_", " "), value, spelled(value))]
    return frozenset(word for phrase in phrases for word in plain(phrase))
