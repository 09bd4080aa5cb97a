"""Processes that end with the one that began them, however that ends: killed, it tells nobody.

One that waits for work on a pipe whose other end it holds itself, as an executor's do, would wait for good.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading


def end_with_parent() -> None:
    """Have this process terminated once the one is gone that began it by `multiprocessing`."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="end with parent").start()
