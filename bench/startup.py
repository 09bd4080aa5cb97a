"""CPU seconds of starting up: the median of ten fresh interpreters each, beside an empty one."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from pathlib import Path

RUNS = 10
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import callwright": [sys.executable, "-c", "import callwright"],
    "callwright --help": [str(Path(sys.executable).parent / "callwright"), "--help"],
}


def cpu_seconds(command: list[str]) -> float:
    """User and system time of one child process, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print one line per command."""
    for name, command in COMMANDS.items():
        median = statistics.median(cpu_seconds(command) for _ in range(RUNS))
        print(f"{name:20} {median:.3f} s CPU")


if __name__ == "__main__":
    main()
