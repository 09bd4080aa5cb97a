"""How tests run: the same examples every time, file beside file, and each process on one core.

``--hypothesis-profile=explore`` asks for new examples, ``-n0`` for one process.
"""

import gc
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads cost more than they save on matrices this small

if sys.dont_write_bytecode:  # else each of a run's many processes compiles everything anew: they share it, out of sight
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    bytecode = Path(__file__).parent.parent / ".pytest_cache" / "bytecode"
    sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(bytecode))

settings.register_profile("house", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile("house")


@pytest.hookimpl(optionalhook=True)  # not there under ``-p no:xdist``
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """No worker for a single file, which one process is through with sooner; else one more than there are cores.

    Calls in real time wait for the clock, and leave a core to the one that is too many.
    """
    paths = {argument.partition("::")[0] for argument in config.args}
    if len(paths) == 1 and Path(*paths).is_file():
        return 0
    return 1 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """While tests are collected there is next to no garbage, and more and more to look through for it."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the garbage collector need not look through it again and again."""
    gc.freeze()
    gc.enable()
