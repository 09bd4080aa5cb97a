"""Plays one call of each scenario on a server, side by side in one process, and writes down what was measured.

    python -m tests.live.player SERVER FILE SCENARIO...

SERVER is the name of a provider, or ``local``: a process of ``callwright serve`` for each scenario, which asks for a
key. FILE gets one JSON object, by scenario. A call that failed is told in it, so that only its own test fails.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from callwright.cli.options import LIVE_CALLS, Setup
from callwright.cli.patience import told_on_stderr
from callwright.cli.plan import Plan, make_plan
from callwright.cli.playing import Played, play_waiting
from callwright.wire.profiles import POLYAI

LOCAL: Final = "local"
SEED: Final = 1
HOLD_S: Final = 2
"""How long the call on hold waits: the waiting itself is tested in virtual time."""
LOOK_S: Final = 0.01
"""How often it is looked how late the process is."""
SCENARIOS: Final = (
    "check-in",
    "booking",
    "pickup",
    "talk-over",
    "mm-hmm",
    "did-it-go-through",
    "missed-confirmation",
    "wrong-card",
    "hold",
)


class Lateness:
    """How late this process came to run at worst, while it played: another one had the machine."""

    def __init__(self) -> None:
        self.ms = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Lateness:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        due_s = time.monotonic() + LOOK_S
        while not self._is_over.wait(LOOK_S):
            now_s = time.monotonic()
            self.ms = max(self.ms, round((now_s - due_s) * 1000))
            due_s = now_s + LOOK_S


def main(server: str, file: Path, names: Sequence[str]) -> None:
    with ExitStack() as ends:
        if server == LOCAL:
            key = os.environ[POLYAI.key_env] = f"sk-{secrets.token_hex(8)}"
            serving = {name: ends.enter_context(_serving(name, key)) for name in names}
            plans = [_plan(name, _address(process)) for name, process in serving.items()]
        else:
            plans = [_plan(name, server) for name in names]
        at_once = len(plans) if server == LOCAL else LIVE_CALLS
        with Lateness() as lateness:
            played = list(play_waiting(plans, SEED, at_once, told_on_stderr(quiet=False)))
    outcomes = {name: {**_outcome(each), "late_ms": lateness.ms} for name, each in zip(names, played, strict=True)}
    file.write_text(json.dumps(outcomes), "utf-8")


def _plan(name: str, server: str) -> Plan:
    return make_plan(name, Setup(server=server, hold_s=HOLD_S if name == "hold" else None))


@contextmanager
def _serving(name: str, key: str) -> Iterator[subprocess.Popen[str]]:
    """A server of this scenario, which lets nobody in without the key."""
    command = [sys.executable, "-m", "callwright", "serve", name, "--port", "0", "--sessions", "1", "--quiet"]
    environment = {**os.environ, "CALLWRIGHT_SERVE_KEY": key}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().partition(" at ")[2].partition(";")[0]


def _outcome(played: Played | BaseException) -> Mapping[str, Any]:
    """What the tests look at of a call."""
    if isinstance(played, BaseException):
        return {"error": "".join(traceback.format_exception(played))}
    run = played.run
    return {
        "held": played.plan.held(run),
        "error": played.record.error,
        "void": run.figures.void,
        "passed": run.verdict.passed,
        "failed": [asdict(failure) for failure in run.verdict.failed],
        "not_judged": dict(run.verdict.not_judged),
        "values": {name: list(values) for name, values in run.figures.values.items()},
        "effects": list(run.figures.effects),
        "ended_by": played.record.ended_by,
        "live": played.plan.live.address if played.plan.live else None,
        "anomalies": list(played.record.anomalies),
    }


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
