"""Cost of the virtual loop's callbacks, beside asyncio's own loop in the same run.

A tick is a timer that asks for the next one; a hop is a ``call_soon`` that asks for the next. Figures are the best of
five, in microseconds. asyncio's timers are due at once, so that it never sleeps.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from callwright.sim.vloop import VirtualLoop

COUNT = 36_000  # ticks of 20 ms in 12 minutes


def seconds(loop: asyncio.AbstractEventLoop, again: Callable[[Callable[[], None]], object]) -> float:
    """Run ``COUNT`` callbacks that each call ``again`` for the next; return the CPU seconds."""
    left = COUNT

    def callback() -> None:
        nonlocal left
        left -= 1
        if left:
            again(callback)
        else:
            loop.stop()

    again(callback)
    start = time.process_time()
    loop.run_forever()
    return time.process_time() - start


async def sleeps() -> None:
    """Sleep ``COUNT`` times for 20 ms."""
    for _ in range(COUNT):
        await asyncio.sleep(0.02)


def awaited(loop: asyncio.AbstractEventLoop) -> float:
    """CPU seconds of :func:`sleeps`."""
    start = time.process_time()
    loop.run_until_complete(sleeps())
    return time.process_time() - start


def best(make: Callable[[], asyncio.AbstractEventLoop], measure: Callable[[asyncio.AbstractEventLoop], float]) -> str:
    """Format the best of five, in microseconds for each callback."""
    figures = []
    for _ in range(5):
        loop = make()
        figures.append(measure(loop))
        loop.close()
    return f"{min(figures) / COUNT * 1e6:7.2f}"


def main() -> None:
    """Print the table."""
    real, virtual = asyncio.new_event_loop, VirtualLoop
    print("µs each              virtual  asyncio")
    rows = [
        ("timer tick (20 ms)", lambda loop: seconds(loop, lambda f: loop.call_later(0.02, f)), False),
        ("timer due at once", lambda loop: seconds(loop, lambda f: loop.call_later(0, f)), True),
        ("call_soon hop", lambda loop: seconds(loop, loop.call_soon), True),
        ("await sleep(0.02)", awaited, False),
    ]
    for name, measure, on_both in rows:
        print(f"{name:20} {best(virtual, measure)}  {best(real, measure) if on_both else '      -'}")


if __name__ == "__main__":
    main()
