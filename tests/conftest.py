"""How tests run: the same examples every time, file beside file, and each process on one core.

``--hypothesis-profile=explore`` asks for new examples, ``-n0`` for one process.
"""

import os
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads cost more than they save on matrices this small

settings.register_profile("house", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile("house")


@pytest.hookimpl(optionalhook=True)  # not there under ``-p no:xdist``
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """No worker for a single file, which one process is through with sooner; else one for each core."""
    paths = {argument.partition("::")[0] for argument in config.args}
    return 0 if len(paths) == 1 and Path(*paths).is_file() else None
