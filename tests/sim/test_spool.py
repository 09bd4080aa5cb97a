"""What is kept of a call's sound is what was sent, and costs no memory while the call lasts."""

import tracemalloc

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.sim.caller import silent_frame
from callwright.sim.spool import Spool

RATE_HZ = 8_000
FRAME = len(silent_frame(RATE_HZ))


@settings(max_examples=20)
@given(levels=st.lists(st.sampled_from((0, 7, -30_000)), max_size=12), missing=st.integers(0, 2))
def test_what_is_read_is_what_was_added_and_silence_where_that_ends(levels: list[int], missing: int) -> None:
    spool = Spool(RATE_HZ)
    for level in levels:
        spool.add(np.full(FRAME, level, np.int16) if level else silent_frame(RATE_HZ))
    assert spool.frames == len(levels)
    expected = np.repeat(np.array([*levels, *[0] * missing], np.int16), FRAME)
    for _ in range(2):
        assert np.array_equal(spool.read(len(levels) + missing), expected)


def test_what_was_read_stays_when_the_spool_is_gone() -> None:
    spool = Spool(RATE_HZ)
    spool.add(np.full(FRAME, 5, np.int16))
    read = spool.read(1)
    del spool
    assert read.tolist() == [5] * FRAME


def test_an_hour_costs_no_memory() -> None:
    loud = np.full(4 * FRAME, 5, np.int16)
    spool = Spool(RATE_HZ)
    tracemalloc.start()
    try:
        for at in range(10_000):
            spool.add(loud[at % 4 * FRAME : (at % 4 + 1) * FRAME])
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 50_000
