"""Whether a reply ends in the promise of a look-up: "Let me check that." English only.

Only the last sentence counts: what a reply goes on to say keeps its promise, and a question leaves the floor to the
caller.
"""

from __future__ import annotations

import re

from callwright.claims.words import STOP, tokens_of

_LOOK = r"(?:check|look|pull|search|verify|take a look|have a look|find out)"
_PROMISE = re.compile(
    rf"\b(?:let (?:me|us) (?:just |quickly |first |go and )*(?:{_LOOK}|see|find|get|confirm|fetch)"
    rf"|(?:i|we) (?:will|am going to|are going to) (?:just |quickly |now )*{_LOOK}"
    r"|(?<!in )(?:one|just a|give me a) (?:quick )?(?:moment|second|sec|minute)|hold on|hang on|bear with me|stand by"
    r"|(?:i am|we are) (?:just |now )*(?:checking|looking|pulling|searching))\b"
)


def promises(text: str) -> bool:
    """Whether whoever heard this waits for something that is being looked up."""
    sentences = " ".join(token.text for token in tokens_of(text)).split(STOP)
    last = next((sentence for sentence in reversed(sentences) if sentence.strip()), "")
    return "?" not in last and bool(_PROMISE.search(last))
