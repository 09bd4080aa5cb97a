"""Whether a reply ends in the promise of a look-up: "Let me check that." English only.

Only the last sentence counts: what a reply goes on to say keeps its promise, and a question leaves the floor to the
caller. So does what is promised on a condition, or for another day.

```
"Sure. One moment, please."      a promise        "Let me know."                not to look for something
"Just a second, Bob."            a promise        "The bus comes in a second."  a length of time
"I'll check that for you."       a promise        "I'll check again tomorrow."  not in this call
```
"""

from __future__ import annotations

import re

from callwright.claims.words import STOP, tokens_of

_MANNER = r"(?:(?:just|quickly|first|now|also|then|go and|go ahead and|go|right away) )*"
_AT = r"(?:at|for|in|into|it|that|this|up|through)"
_LOOK = (
    rf"(?:(?:double )?check(?! (?:you|him|her|them|us) (?:in|out)\b)|look(?= {_AT}\b|$|,)|search|verify|fetch"
    r"|(?:take|have) a (?:quick |closer )?look|(?:pull|find) (?:it|that|this|out|up|your|the)"
    r"|see (?:what|if|whether|about)|see$|get (?:that|your|the)(?! straight| right)\b)"
)
_LOOKING = rf"(?:(?:double )?checking(?! (?:in|out)\b)|looking {_AT}|pulling|searching|verifying|fetching)"
_BEGINS = r"(?:^|, )(?:(?:and|so|okay|ok|sure|yes|please|just|for|if you could|could you|i will be) )*"
_TIME = r"(?:quick |brief )?(?:moment|second|sec|minute|min)"
_A_TIME = rf"(?:(?:(?:i|we) (?:will )?need|give me|allow me) )?(?:just )?(?:one|an?) {_TIME}"
_PROMISE = re.compile(
    rf"\b(?:let (?:me|us)|(?:i|we) (?:will|am going to|are going to|need to|have to|must)) {_MANNER}{_LOOK}"
    rf"|(?:^|, |\b(?:i|we) (?:am|are) ){_MANNER}{_LOOKING}\b"
    rf"|{_BEGINS}{_A_TIME}(?=$|,| please| while| to )"
    rf"|{_BEGINS}(?:hold on|hold(?= please|$|,)|hang on|wait|bear with me|stand by|stay on the line)"
    r"(?! (?:to|by|until|me|for (?:the|your))\b)\b"
    rf"|\b(?:right back|be back|back to you)(?: \w+)? in (?:just )?(?:one|an?) {_TIME}\b"
)
_ANOTHER_TIME = re.compile(
    r"^(?:if|when|once|as soon as)\b"
    r"|\b(?:tomorrow|tonight|later|next (?:week|month|day)|write|e ?mail|call you|text you)\b"
)


def promises(text: str) -> bool:
    """Whether whoever heard this waits for something that is being looked up."""
    sentences = " ".join(token.text for token in tokens_of(text)).replace("?", f"? {STOP}").split(STOP)
    last = next((sentence.strip() for sentence in reversed(sentences) if sentence.strip()), "").replace(" ,", ",")
    return "?" not in last and not _ANOTHER_TIME.search(last) and bool(_PROMISE.search(last))
