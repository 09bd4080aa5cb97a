"""What starting up may load. The check is on modules, not on seconds: it reads the same on a busy machine."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "asyncio",
    "callwright.runtime",
    "callwright.sim",
    "callwright.wire",
    "earshot",
    "httpx",
    "msgspec",
    "numpy",
    "openai",
    "pybase64",
    "rich",
    "websockets",
    "yaml",
)

IMPORT = "import callwright"
HELP = """
import contextlib, io
from callwright.cli.main import main
with contextlib.redirect_stdout(io.StringIO()) as out:
    main(["--help"], standalone_mode=False)
assert "Usage" in out.getvalue()
"""


def loaded(code: str) -> list[str]:
    """The heavy modules that a fresh interpreter holds after running the code."""
    script = f"{code}\nimport sys\nprint('loaded:', *[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()[-1].removeprefix("loaded:").split()


def test_import_callwright_loads_nothing_heavy() -> None:
    """Public names are found when they are first used; the command line's start depends on it."""
    assert loaded(f"{IMPORT}\nassert 'click' not in __import__('sys').modules") == []


def test_help_loads_the_command_line_library_only() -> None:
    assert loaded(HELP) == []


def test_the_check_sees_what_is_loaded() -> None:
    assert loaded("import asyncio, numpy") == ["asyncio", "numpy"]
