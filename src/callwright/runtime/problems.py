"""What a log may hold of an exception that was caught: its text may quote whatever was said, asked or answered.

At any level its type and place; at ``DEBUG`` the whole of it, without card numbers.
"""

from __future__ import annotations

import traceback

from callwright.claims.cards import without_cards


def kind_and_place(problem: BaseException) -> str:
    """What may be told at any level: the type, and where it was raised, not the text."""
    *_, (frame, line) = traceback.walk_tb(problem.__traceback__)
    return f"{type(problem).__name__} at {frame.f_code.co_filename}:{line}"


class Whole:
    """An exception with its text and traceback, for ``DEBUG``; put into words only where somebody logs it."""

    def __init__(self, problem: BaseException) -> None:
        self._problem = problem

    def __str__(self) -> str:
        return without_cards("".join(traceback.format_exception(self._problem)).rstrip())
