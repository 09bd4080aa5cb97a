"""The end of an error message: what could have been meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

_SHOWN = 8
"""Options that an error names at most."""


def one_of(options: Collection[str], given: str = "") -> str:
    """The options as a phrase for an error; of many, only those nearest to what was given."""
    if len(options) <= _SHOWN:
        return f"one of {', '.join(options)}" if options else "nothing"
    nearest = get_close_matches(given, list(options), n=_SHOWN, cutoff=0.0)
    return f"one of {len(options)} names, nearest {', '.join(nearest)}"


def did_you_mean(given: str, options: Iterable[str]) -> str:
    """The end of an error that names the option nearest to ``given``; empty where none is near."""
    near = get_close_matches(given, list(options), n=1)
    return f'; did you mean "{near[0]}"?' if near else ""
