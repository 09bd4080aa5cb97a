"""How a call ended: its farewells, what of the last one was heard, and who was hung up on.

```
agent   ~~~ answer ~~~          ~~~~~~~~~ farewell ~~~~~~~~~
line    ────────────────────────────────────────────────────────┤ ended, by whom
caller                 == bye ==           == a turn here, and then the end: talked over and hung up on
```

A farewell is what is spoken in a response that calls a tool which ends the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from callwright.measure.texts import words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from callwright.ids import Ms
    from callwright.measure.hearing import CallerTurn, HeardCall, Reply

WHOLE_MS: Ms = 20
"""A farewell of which less than this is missing was heard whole."""
AGENT = "agent"


def farewells(call: HeardCall) -> list[Reply]:
    """All farewells of a call, heard or not."""
    return [reply for reply in call.replies if reply.item.tool in call.record.hang_up_tools]


def heard_farewells(call: HeardCall) -> list[Reply]:
    """Those of which anything was audible."""
    return [reply for reply in farewells(call) if reply.played.first_audible_ms is not None]


def farewell_lengths_ms(call: HeardCall, reply: Reply, from_ms: Ms = 0) -> tuple[float, float]:
    """How long a farewell is from its first to its last audible sample, and how much of that was heard.

    What comes before ``from_ms`` or after the call was not.
    """
    played, per_ms = reply.played, reply.played.rate_hz / 1000
    first, end = played.audible
    arrived = 0.0
    for part in played.stretches:
        last = min(part.end, end, part.first + call.record.ended_ms * per_ms - part.at)
        arrived += max(0.0, last - max(part.first, first, part.first + from_ms * per_ms - part.at))
    whole = end - first
    return whole / per_ms, (whole if whole - arrived < WHOLE_MS * per_ms else arrived) / per_ms


def hung_up_on(call: HeardCall) -> list[CallerTurn]:
    """Turns of the caller that began in a farewell, and after which the agent hung up without another reply."""
    if call.record.ended_by != AGENT:
        return []
    last_ms = max((reply.played.first_audible_ms or 0 for reply in call.replies), default=0)
    return [turn for turn in _over_farewells(call) if turn.onset_ms >= last_ms]


def repeated(call: HeardCall) -> int:
    """Replies that say a line of an earlier farewell again, and do not end the call."""
    said: set[str] = set()
    count = 0
    for reply in call.replies:
        lines = {line_id for line_id, _ in reply.lines}
        if reply.item.tool in call.record.hang_up_tools:
            said |= lines
        else:
            count += bool(lines & said) and reply.played.first_audible_ms is not None
    return count


def open_after_ms(call: HeardCall) -> Ms | None:
    """From the last audible sample of the last farewell to the end of the line, where the agent ended it."""
    heard = heard_farewells(call)
    last_ms = heard[-1].played.last_audible_ms if heard else None
    if last_ms is None or call.record.ended_by != AGENT:
        return None
    return max(0, call.record.ended_ms - last_ms)


def notice_heard(call: HeardCall) -> bool | None:
    """Whether the words by which the agent says that it is a machine were heard whole; None where it has none."""
    return any(True for _ in notices_ms(call)) if words_of(call.record.ai_notice or "") else None


def notices_ms(call: HeardCall) -> Iterator[Ms]:
    """When each hearing of these words began, one after the other and without a break."""
    wanted = words_of(call.record.ai_notice or "")
    for run in heard_runs(call) if wanted else ():
        words = [word for word, _ in run]
        for at in range(len(words)):
            if words[at : at + len(wanted)] == wanted:
                yield run[at][1]


def _over_farewells(call: HeardCall) -> Iterator[CallerTurn]:
    for turn in call.turns:
        for reply in heard_farewells(call):
            first_ms, last_ms = reply.played.first_audible_ms, reply.played.last_audible_ms
            if first_ms is not None and last_ms is not None and first_ms <= turn.onset_ms < last_ms:
                yield turn
                break


def heard_runs(call: HeardCall) -> Iterator[Sequence[tuple[str, Ms]]]:
    """The words that were heard of each reply without a break, each with the instant at which it began."""
    for reply in call.replies:
        run: list[tuple[str, Ms]] = []
        for (text, is_whole), word in zip(reply.whole_words, reply.item.words, strict=True):
            if is_whole:
                began_ms = reply.played.instant_ms(word.start_ms)
                run += [(each, began_ms) for each in words_of(text)]
            else:
                yield run
                run = []
        yield run
