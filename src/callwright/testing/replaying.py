"""A recorded call as a test: the core of today is to do what was recorded."""

from __future__ import annotations

import os
from pathlib import Path

from callwright.runtime.replay import Outcome, Replayed, replay


def replay_trace(path: str | os.PathLike[str]) -> Replayed:
    """Give the events of a recorded call to the core, which has to ask for the same commands to the end.

    Raises AssertionError with the first difference, or with the place from which on words are missing, and UsageError
    for what is no trace of this version.
    """
    replayed = replay(Path(path).read_bytes(), str(path))
    if replayed.outcome is not Outcome.IDENTICAL:
        raise AssertionError(str(replayed))
    return replayed
