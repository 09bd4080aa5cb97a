"""A real browser, if there is one, driven over its own WebSocket: it opens a file, and is asked what became of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE_S = 60
"""A browser that does not come to an end by then never will."""


class Page:
    """One open page."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._count = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        """What the browser said of it: errors, and what it was kept from loading."""

    def ask(self, method: str, **params: Any) -> Any:
        """Do something, and wait until it is done."""
        self._count += 1
        call = {"id": self._count, "method": method, "params": params}
        self._socket.send(json.dumps(call | ({"sessionId": self._session} if self._session else {})))
        while (answer := self._next()).get("id") != self._count:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, path: Path, width: int, height: int) -> None:
        """Open a file in a window of this size, and wait until it is loaded."""
        self._session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Page.navigate", url=path.as_uri())
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def value(self, script: str) -> Any:
        """What a script comes to; a promise is waited for. A person has just clicked, as far as the page knows."""
        asked = {"awaitPromise": True, "returnByValue": True, "userGesture": True}
        result = self.ask("Runtime.evaluate", expression=script, **asked)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def _next(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._socket.recv(timeout=30))
        match message.get("method"):
            case "Runtime.exceptionThrown" | "Log.entryAdded" | "Network.loadingFailed":
                self.complaints.append(json.dumps(message["params"]))
            case "Runtime.consoleAPICalled" if message["params"]["type"] in ("error", "warning"):
                self.complaints.append(json.dumps(message["params"]))
        return message


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """A browser without a window; the test is skipped where none is installed."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no browser is installed: one of {', '.join(NAMES)}")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--mute-audio"]
    own = ["--no-first-run", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    command = [found, *options, *own, "about:blank"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        watchdog = Timer(PATIENCE_S, process.kill)
        watchdog.start()
        try:
            assert process.stderr is not None
            told = next((line for line in process.stderr if line.startswith("DevTools listening on ")), None)
            assert told, f"{found} ended before it listened"
            with connect(told.split()[-1], max_size=None) as socket:
                yield Page(socket)
                socket.send(json.dumps({"id": 0, "method": "Browser.close"}))
        finally:
            watchdog.cancel()
            process.terminate()
            process.communicate()
