"""A refund that is spoken into at any instant, whatever the provider does: it is made once, and the caller is told.

A part of the sweep of ``scripts/sweep_refund.py``.
"""

from __future__ import annotations

import pytest
from scripts.sweep_refund import PROVIDERS, SPOKEN, Point, replay, row

STRIDE = 331


@pytest.mark.parametrize("fault", PROVIDERS)
def test_whenever_the_caller_speaks_into_a_refund_every_invariant_holds(fault: str) -> None:
    number = list(PROVIDERS).index(fault)
    swept = [row(fault, says, number, STRIDE, offset=70 * at + 11 * number) for at, says in enumerate(SPOKEN)]
    assert all(each.calls >= 2 for each in swept)
    assert all(each.counts["fired"] == each.calls for each in swept) or fault == "none"
    broken = [f"{replay(point)}: {'; '.join(what)}" for each in swept for point, what in each.broken]
    assert not broken, "\n".join(broken)


def test_a_point_names_the_command_that_plays_it_again() -> None:
    point = Point("F3 lost-reply", "other-card", 5_420, 7)
    assert replay(point) == 'python scripts/sweep_refund.py --play "F3 lost-reply" other-card 5420 7'
