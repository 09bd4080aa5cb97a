"""Programs that take calls: the one that the documentation shows, an agent of ours, and others with one habit each."""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "bring-your-own-client.md"
OURS = f"{shlex.quote(sys.executable)} {shlex.quote(str(Path(__file__).with_name('socket_agent.py')))}"
"""An agent of ours; its ``module:name`` is to follow."""

_HEAD = """
import asyncio, json, os, sys, urllib.request
from websockets.asyncio.client import connect

async def main():
    async with connect(os.environ["CALLWRIGHT_AUDIO_URL"]) as line:
"""


def shown(directory: Path) -> str:
    """The command of the client on the documentation's page."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return _command(directory / "client.py", code)


def doing(directory: Path, *lines: str) -> str:
    """The command of a client that picks up, does this, and leaves in good order."""
    body = "".join(f"        {line}\n" for line in lines)
    name = f"{hashlib.sha256(body.encode()).hexdigest()[:8]}.py"
    return _command(directory / name, f"{_HEAD}{body}\nasyncio.run(main())\n")


def _command(path: Path, code: str) -> str:
    path.write_text(code, "utf-8")
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"
