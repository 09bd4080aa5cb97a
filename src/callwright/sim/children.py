"""Processes that this one begins by `multiprocessing`: none sees Ctrl-C, and none outlives it, however it ends.

Ctrl-C comes to all processes of a terminal at once. Whoever began the others ends them in good order; who is killed
tells nobody, and a process that waits for work on a pipe whose other end it holds itself would wait for good.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker


@contextlib.contextmanager
def ctrl_c_held_back() -> Iterator[None]:
    """Processes that are begun in here never see Ctrl-C, not even while they load; this one sees it afterwards."""
    resource_tracker.ensure_running()  # which lets Ctrl-C through where it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """Have this process terminated once the one is gone that began it."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="end with parent").start()
