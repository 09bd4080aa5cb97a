"""All chance of a simulated call comes from one seed, split by name.

A stream depends on the seed and its own name only, so that a new consumer of chance moves nobody else's.
"""

from __future__ import annotations

import hashlib
import random


def stream(seed: int, name: str) -> random.Random:
    """The random numbers of one consumer."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))
