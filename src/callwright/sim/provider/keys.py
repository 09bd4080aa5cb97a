"""What the stand-in provider does with a key that it has seen: it owns the memory of keys.

```
first request:  begin ---- executed ---- end(status, body)          pruned: a new request for all that is known
                  |<---- in use: 409 --->|<---- remembered: by mode ---->|
```

| mode | a key that was answered with success | with a failure, nothing done | with a failure, although it was done |
|---|---|---|---|
| replay | the first answer | the first answer | the first answer |
| resume | the refund as it is; one that failed is taken up again | executed | the refund as it is |
| current state | the refund as it is | executed | the refund as it is |
| success only | the first answer | executed | **executed again** |
| none | **executed again** | executed | **executed again** |

What is refused before it is executed (400, 404, 409, 422, 429) is never remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from callwright.ids import Ms
from callwright.ledger.provider import Idempotency


class Repeat(Enum):
    """What is done about a request."""

    EXECUTE = "execute"
    """It is new, or as good as new."""
    REFUSE_BUSY = "refuse-busy"
    REFUSE_OTHER = "refuse-other"
    """The key belongs to other parameters."""
    REPLAY = "replay"
    """Answer as at first."""
    SHOW = "show"
    """Answer with the refund as it is."""


@dataclass(slots=True)
class Memory:
    """What is remembered of a key."""

    fingerprint: str
    until_ms: Ms
    """When the key is forgotten."""
    refund_id: str | None = None
    status: int | None = None
    """How it was answered; None while the request is under way."""
    body: bytes = b""


def _replay(memory: Memory) -> Repeat:
    return Repeat.REPLAY


def _show(memory: Memory) -> Repeat:
    return Repeat.EXECUTE if memory.refund_id is None else Repeat.SHOW


def _replay_success(memory: Memory) -> Repeat:
    return Repeat.REPLAY if memory.status is not None and memory.status < 300 else Repeat.EXECUTE


_REPEATS: Final[Mapping[Idempotency, Callable[[Memory], Repeat]]] = {
    Idempotency.REPLAY: _replay,
    Idempotency.RESUME: _show,
    Idempotency.CURRENT_STATE: _show,
    Idempotency.SUCCESS_ONLY: _replay_success,
}


class Keys:
    """The keys of one provider."""

    def __init__(self, mode: Idempotency) -> None:
        self._mode = mode
        self._memories: dict[str, Memory] = {}

    def judge(self, key: str, fingerprint: str, now_ms: Ms) -> Repeat:
        """What to do about a request."""
        memory = self._memories.get(key)
        if memory is None or self._mode is Idempotency.NONE or now_ms >= memory.until_ms:
            return Repeat.EXECUTE
        if memory.fingerprint != fingerprint:
            return Repeat.REFUSE_OTHER
        if memory.status is None:
            return Repeat.REFUSE_BUSY
        return _REPEATS[self._mode](memory)

    def begin(self, key: str, fingerprint: str, now_ms: Ms, until_ms: Ms) -> Memory:
        """Remember a key because its request is executed now; until then, unless it is remembered already."""
        old = self._memories.get(key)
        if old is not None and now_ms < old.until_ms:
            until_ms = old.until_ms
        self._memories[key] = memory = Memory(fingerprint, until_ms)
        return memory

    def recall(self, key: str) -> Memory:
        """What is remembered of a key. Raises KeyError."""
        return self._memories[key]
