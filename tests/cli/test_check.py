"""``callwright check``: what stands in the way of a live call is said in words, and no key ever is."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import platform
import shutil
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager, suppress
from email.utils import formatdate
from pathlib import Path
from typing import ClassVar, TypeVar

import pytest
from click.testing import Result
from tests.cli.calling import callwright, without_keys
from tests.cli.test_serve import serving

from callwright.cli.check import CLOCK_MAX_S
from callwright.errors import ConnectionFailed
from callwright.ledger.sqlite import SQLiteStore
from callwright.runtime.endpoint import Endpoint, _tls
from callwright.runtime.probe import Probe, Step
from callwright.sim.server.websocket import RealtimeServer
from callwright.testing.connections import EchoPeer, Serve, accept, answers, frame, raw_server, says

KEY = "sk-marker-9b2c"
TEXT, CLOSE = 0x1, 0x8
TURNS_TO_CLOSE = 10
"""So many turns of its loop a socket of a server needs at most to see that its client has gone, and to close."""
GREETING = b'{"type":"session.created","event_id":"event_1","session":{"type":"realtime"}}'

Value = TypeVar("Value")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of its own, and an environment without keys."""
    monkeypatch.chdir(tmp_path)
    without_keys(monkeypatch)
    return tmp_path


@contextmanager
def running(server: AbstractAsyncContextManager[Value]) -> Iterator[Value]:
    """A server on a loop of its own, beside a command that is run here."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(ended(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def ended(server: AbstractAsyncContextManager[object]) -> None:
    """End a server, and wait until nothing of its connections is left: one that was just accepted begins later."""
    await server.__aexit__(None, None, None)
    idle = 0
    while idle < TURNS_TO_CLOSE:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        await asyncio.gather(*tasks, asyncio.sleep(0), return_exceptions=True)
        idle = 0 if tasks else idle + 1


def opens(*then: bytes) -> Serve:
    """A server that takes the connection, says this, and goes when the client says its first."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accept(reader, writer, b"".join(then))
        await reader.read(1)

    return serve


def refuses(code: str) -> Serve:
    error = {"type": "invalid_request_error", "code": code, "message": f"Incorrect API key provided: {KEY[:9]}"}
    return opens(frame(TEXT, json.dumps({"type": "error", "event_id": "event_1", "error": error}).encode()))


def items(result: Result) -> dict[str, dict[str, object]]:
    """What was printed with ``--json``, by item."""
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert all(list(line) == ["item", "verdict", "told", "needed"] for line in lines)
    return {line["item"]: line for line in lines}


def verdicts(result: Result) -> dict[str, object]:
    """The verdict on each item that has to do with the server."""
    of_server = ("address", "key", "hidden", "host", "TLS", "session", "clock")
    return {name: item["verdict"] for name, item in items(result).items() if name in of_server}


@pytest.mark.parametrize(
    ("key", "code", "session"),
    [
        (KEY, 0, {"session": "ok", "clock": "ok"}),
        ("sk-other", 1, {"session": "wrong", "clock": "ok"}),
        (None, 1, {}),
    ],
)
def test_a_server_with_a_key_lets_the_right_one_in(
    key: str | None, code: int, session: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if key:
        monkeypatch.setenv("POLY_API_KEY", key)
    with running(RealtimeServer(EchoPeerThatGreets, key=KEY)) as server:
        result = callwright("check", "--server", server.url, "--json")
    assert result.exit_code == code
    key_is = {"key": "ok" if key else "missing"}
    assert verdicts(result) == {"address": "ok", **key_is, "host": "ok", **session}


class EchoPeerThatGreets(EchoPeer):
    """A server that greets as every realtime server does."""

    made: ClassVar[list[EchoPeerThatGreets]] = []

    def __init__(self) -> None:
        super().__init__()
        self.made.append(self)

    def connect(self, now_ms: int) -> None:
        self._says.append(GREETING)


def test_serve_is_reached_with_the_key_that_it_asks_for(here: Path) -> None:
    """The address is in the file, too, under the name that ``serve`` prints."""
    with serving("booking", "--dialect", "polyai", CALLWRIGHT_SERVE_KEY=KEY) as (_, url, _hint):
        (here / ".env").write_text(f"POLY_API_KEY={KEY}\nDIALOG_REALTIME_URL={url}\n", "utf-8")
        result = callwright("check")
    assert result.exit_code == 0
    assert f"ok       address       {url}, DIALOG_REALTIME_URL from .env\n" in result.stdout
    assert "ok       key           POLY_API_KEY from .env\n" in result.stdout
    assert result.stdout.endswith("ready: a call can be made\n")
    assert "marker" not in result.output


def test_a_session_is_closed_at_once_and_its_cost_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connected time is billed, and one of two places is taken while it lasts."""
    monkeypatch.setenv("POLY_API_KEY", KEY)
    EchoPeerThatGreets.made.clear()
    with running(RealtimeServer(EchoPeerThatGreets, key=KEY, sessions_max=1)) as server:
        results = [callwright("check", "--server", server.url, "--json") for _ in range(2)]
    for result in results:
        told = str(items(result)["session"]["told"])
        assert told.startswith("opened, and closed after ")
        assert int(told.split()[4]) < 1000
    assert [(peer.heard, peer.disconnected) for peer in EchoPeerThatGreets.made] == [([], 1)] * 2


REFUSALS: list[tuple[Serve, str]] = [
    (answers(401), "HTTP 401: POLY_API_KEY was refused"),
    (answers(403), "HTTP 403: the request was refused: POLY_API_KEY is of another host, or something on the way took"),
    (answers(404), "HTTP 404: there is no realtime endpoint at this path"),
    (answers(429), "HTTP 429: too many sessions are open"),
    (answers(500), "HTTP 500: the server is in trouble; try again later"),
    (answers(302, f"Location: ws://127.0.0.1:1/?key={KEY}"), "HTTP 302: the server sends us elsewhere"),
    (answers(200), "HTTP 200: the server did not open a WebSocket"),
    (says(b"SSH-2.0-OpenSSH_9.6\r\n\r\n\r\n"), "what is there speaks no WebSocket"),
    (says(b""), "what is there speaks no WebSocket"),
    (refuses("invalid_api_key"), "refuses a session: the key is wrong (invalid_api_key)"),
    (refuses("insufficient_quota"), "refuses a session: the account has no credit left"),
    (refuses("region_not_served"), "refuses a session: region_not_served"),
    (refuses(KEY), "refuses a session: its reason is not known here"),
    (opens(frame(TEXT, f"hello {KEY}".encode())), "does not greet with session.created"),
    (opens(frame(TEXT, b'{"type":"session.updated","event_id":"e","session":{"type":"realtime"}}')), "does not greet"),
    (opens(frame(CLOSE, (1013).to_bytes(2, "big") + KEY.encode())), "closed the session at once, with code 1013"),
]


@pytest.mark.parametrize(("serve", "told"), REFUSALS, ids=[told for _, told in REFUSALS])
def test_c156_what_a_server_says_is_put_into_words_and_no_key_is_told(
    serve: Serve, told: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither ours nor what a server writes of it, in no output and in no log."""
    monkeypatch.setenv("POLY_API_KEY", KEY)
    caplog.set_level(1)
    logging.getLogger("asyncio").setLevel(1)
    with running(raw_server(serve)) as url:
        as_json = callwright("check", "--server", f"{url}?api_key={KEY}", "--json")
        as_text = callwright("check", "--server", f"{url}?api_key={KEY}")
    assert (as_json.exit_code, as_text.exit_code) == (1, 1)
    assert told in str(items(as_json)["session"]["told"])
    assert told in as_text.stdout
    assert as_text.stdout.endswith("not ready: session\n")
    assert "marker" not in as_json.output + as_text.output + caplog.text


def test_c134_429_does_not_blame_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLY_API_KEY", KEY)
    with running(raw_server(answers(429))) as url:
        result = callwright("check", "--server", url, "--json")
    assert verdicts(result)["key"] == "ok"
    assert "KEY" not in str(items(result)["session"]["told"])


def test_nobody_at_the_port_is_told() -> None:
    result = callwright("check", "--server", "ws://127.0.0.1:1/v1/realtime")
    assert result.exit_code == 1
    assert "wrong    host          ws://127.0.0.1:1/v1/realtime: cannot connect" in result.stdout
    assert result.stdout.endswith("not ready: key, host\n")


def test_a_name_that_nobody_knows_is_told() -> None:
    with pytest.raises(ConnectionFailed, match="no address is known for nowhere"):
        asyncio.run(Probe(Endpoint("wss://nowhere.invalid/v1/realtime")).take(Step.HOST))


@pytest.mark.parametrize(("step", "asked"), [(Step.TLS, "TLS spoken at this port"), (Step.SESSION, "this the address")])
def test_a_server_that_says_nothing_is_not_waited_for_without_end(step: Step, asked: str) -> None:
    async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()
        await reader.read()

    with running(raw_server(silent)) as url:
        address = url if step is Step.SESSION else url.replace("ws://", "wss://")
        with pytest.raises(ConnectionFailed, match=f"no answer within 100 ms; is {asked}"):
            asyncio.run(Probe(Endpoint(address, open_timeout_ms=100)).take(step))


def test_a_server_that_opens_and_never_greets_is_told() -> None:
    with running(raw_server(opens())) as url, pytest.raises(ConnectionFailed, match="no answer within 100 ms"):
        asyncio.run(Probe(Endpoint(url, open_timeout_ms=100, close_timeout_ms=20)).take(Step.SESSION))


def test_a_port_without_tls_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLY_API_KEY", KEY)
    with running(RealtimeServer(EchoPeerThatGreets)) as server:
        result = callwright("check", "--server", server.url.replace("ws://", "wss://"), "--json")
    assert verdicts(result) == {"address": "ok", "key": "ok", "host": "ok", "TLS": "wrong"}
    assert "is TLS spoken there" in str(items(result)["TLS"]["told"])


@pytest.mark.skipif(shutil.which("openssl") is None, reason="a certificate is made by openssl")
def test_a_certificate_counts_if_it_is_known_here(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    files = ["-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(["openssl", *wanted.split(), *files], cwd=here, check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(here / "cert.pem", here / "key.pem")

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(ConnectionError, asyncio.IncompleteReadError):
            await answers(401)(reader, writer)

    @asynccontextmanager
    async def server() -> AsyncIterator[str]:
        async with await asyncio.start_server(refuse, "localhost", 0, ssl=context) as listening:
            yield f"wss://localhost:{listening.sockets[0].getsockname()[1]}/v1/realtime"

    monkeypatch.setenv("POLY_API_KEY", KEY)
    with running(server()) as url:
        stranger = callwright("check", "--server", url, "--json")
        monkeypatch.setenv("SSL_CERT_FILE", "cert.pem")
        _tls.cache_clear()  # what is trusted is read once in a process
        known = callwright("check", "--server", url, "--json")
    _tls.cache_clear()
    assert verdicts(stranger)["TLS"] == "wrong"
    assert "its certificate known here, and this clock right?" in str(items(stranger)["TLS"]["told"])
    assert items(known)["TLS"]["told"] == "localhost has a certificate that is known here"
    assert verdicts(known)["session"] == "wrong"


def test_an_address_on_another_machine_should_have_tls() -> None:
    """``ws://`` to this machine is as good; elsewhere the key could be read on the way."""
    with running(raw_server(answers(401))) as url:
        assert "TLS" not in verdicts(callwright("check", "--server", url, "--json"))
        elsewhere = callwright("check", "--server", url.replace("127.0.0.1", "0.0.0.0"), "--json")
    assert items(elsewhere)["TLS"] == {
        "item": "TLS",
        "verdict": "missing",
        "told": "the address is ws://: key and words can be read on the way; use wss:// where the server has it",
        "needed": False,
    }


@pytest.mark.parametrize(
    ("off_s", "verdict", "told"),
    [
        (0, "ok", " s "),
        (CLOCK_MAX_S - 10, "ok", "ahead of"),
        (CLOCK_MAX_S + 10, "wrong", "ahead of the server's: set it"),
        (-CLOCK_MAX_S - 10, "wrong", "behind the server's: set it"),
        (86_400, "wrong", " s ahead of"),
    ],
)
def test_the_clock_is_compared_with_the_servers(
    off_s: int, verdict: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLY_API_KEY", KEY)
    date = formatdate(time.time() - off_s, usegmt=True)
    with running(raw_server(answers(401, f"Date: {date}"))) as url:
        clock = items(callwright("check", "--server", url, "--json"))["clock"]
    assert clock["verdict"] == verdict
    assert told in str(clock["told"])


@pytest.mark.parametrize("date", [(), ("Date: yesterday",), ("Date: ",), ("Date: Mon, 01 Jan 99999 00:00:00 GMT",)])
def test_a_server_that_tells_no_time_says_nothing_of_the_clock(
    date: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLY_API_KEY", KEY)
    with running(raw_server(answers(401, *date))) as url:
        assert "clock" not in verdicts(callwright("check", "--server", url, "--json"))


def test_a_server_that_lets_us_in_tells_its_time_as_well() -> None:
    async def play() -> float | None:
        async with RealtimeServer(EchoPeerThatGreets) as server:
            probe = Probe(Endpoint(server.url), now_s=lambda: time.time() - 3600)
            await probe.take(Step.SESSION)
            return probe.ahead_s

    assert asyncio.run(play()) == pytest.approx(-3600, abs=10)


# --- keys


def test_a_shells_key_that_hides_the_files_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of two keys is wrong is hard to see, since neither may be shown. By itself that keeps no call away."""
    monkeypatch.setenv("POLY_API_KEY", KEY)
    (here / ".env").write_text(f"POLY_API_KEY={KEY}-2\n", "utf-8")
    with running(RealtimeServer(EchoPeerThatGreets, key=KEY)) as server:
        result = callwright("check", "--server", server.url, "--json")
    assert result.exit_code == 0
    assert items(result)["hidden"] == {
        "item": "hidden",
        "verdict": "wrong",
        "told": "the environment's POLY_API_KEY counts, and hides another one in .env: unset POLY_API_KEY to use that",
        "needed": False,
    }
    assert "marker" not in result.output


def test_an_address_that_hides_the_files_is_named_where_it_counts(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALOG_REALTIME_URL", "ws://127.0.0.1:1/")
    (here / ".env").write_text("DIALOG_REALTIME_URL=ws://127.0.0.1:2/", "utf-8")
    told = str(items(callwright("check", "--json"))["hidden"]["told"])
    assert told.startswith("the environment's DIALOG_REALTIME_URL counts")
    assert "hidden" not in verdicts(callwright("check", "--server", "ws://127.0.0.1:3/", "--json"))


@pytest.mark.parametrize(
    ("environment", "verdict", "told"),
    [
        ({}, "missing", "POLY_API_KEY is not set: set it in the environment, or in .env here"),
        ({"POLY_API_KEY": " "}, "missing", "POLY_API_KEY is not set"),
        ({"DIALOGUE_API_KEY": KEY}, "missing", "; DIALOGUE_API_KEY is its name in older samples, and is not read"),
        ({"POLY_API_KEY": f"{KEY}\r\nX: 1"}, "wrong", "POLY_API_KEY holds characters that no key has"),
        ({"POLY_API_KEY": f" {KEY}\n"}, "ok", "POLY_API_KEY from the environment"),
    ],
)
def test_c156_a_key_that_cannot_be_one_is_named_and_not_told(
    environment: dict[str, str], verdict: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    result = callwright("check", "--server", "ws://127.0.0.1:1/", "--json")
    assert items(result)["key"]["verdict"] == verdict
    assert told in str(items(result)["key"]["told"])
    assert result.exit_code == 1
    assert "marker" not in result.output


def test_without_a_key_no_session_is_asked_for() -> None:
    EchoPeerThatGreets.made.clear()
    with running(RealtimeServer(EchoPeerThatGreets)) as server:
        assert callwright("check", "--server", server.url).exit_code == 1
    assert not EchoPeerThatGreets.made


def test_a_server_of_ones_own_may_need_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(RealtimeServer(EchoPeerThatGreets)) as server:
        monkeypatch.setenv("REALTIME_URL", server.url)
        named = callwright("check", "--server", "plain", "--json")
        addressed = callwright("check", "--server", server.url, "--dialect", "plain", "--json")
    assert (named.exit_code, addressed.exit_code) == (0, 0)
    assert "none is sent" in str(items(named)["key"]["told"])


def test_an_address_in_the_environment_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_REALTIME_URL", "https://api.openai.com/v1")
    result = callwright("check", "--server", "openai", "--json")
    assert verdicts(result) == {"address": "wrong"}
    assert "OPENAI_REALTIME_URL from the environment" in str(items(result)["address"]["told"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--server", "poly"], "--server poly: expected polyai, openai, plain, or an address with ws:// or wss://"),
        (["--server", "https://api.openai.com"], "the address of a model is ws:// or wss:// and a host"),
        (["--server", "openai", "--dialect", "plain"], "leave it out for openai"),
        (["--dialect", "latin"], "latin"),
    ],
)
def test_wrong_use_is_named(options: list[str], told: str) -> None:
    result = callwright("check", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr


def test_c156_a_broken_file_is_named_with_its_line(here: Path) -> None:
    (here / ".env").write_text(f"# keys\nPOLY_API_KEY {KEY}\n", "utf-8")
    result = callwright("check")
    assert result.exit_code == 2
    assert "callwright: .env:2: expected NAME=value" in result.stderr
    assert "marker" not in result.output


# --- the machine

SOUND_CARDS = [
    (
        "raise ModuleNotFoundError('sounddevice')",
        "missing",
        "pip install 'callwright[mic]', or in a clone: make setup EXTRAS=mic (only callwright talk needs it)",
    ),
    (
        "raise OSError('PortAudio library not found')",
        "missing",
        "PortAudio library not found): apt install libportaudio2",
    ),
    ("no = 'input'", "missing", "there is no microphone here (Error querying device -1)"),
    ("no = 'output'", "missing", "there is no loudspeaker here (Error querying device -1)"),
    ("no = ''", "ok", "Built-in (microphone), Built-in (loudspeaker)"),
]
SOUNDDEVICE = """
class PortAudioError(Exception):
    pass

def query_devices(device=None, kind=None):
    if kind == no:
        raise PortAudioError("Error querying device -1")
    channels = {f"max_{way}_channels": int(way == kind) for way in ("input", "output")}
    return {"index": 0, "name": "Built-in", **channels}
"""


@pytest.mark.parametrize(("first", "verdict", "told"), SOUND_CARDS)
def test_the_sound_card_is_looked_for(first: str, verdict: str, told: str, here: Path) -> None:
    """A module in the place of ``sounddevice`` does what that does on such a machine. None of it keeps a call away."""
    (here / "sounddevice.py").write_text(f"{first}\n{SOUNDDEVICE}", "utf-8")
    with pytest.MonkeyPatch.context() as paths:
        paths.syspath_prepend(here)
        paths.delitem(sys.modules, "sounddevice", raising=False)
        found = items(callwright("check", "--server", "ws://127.0.0.1:1/", "--json"))["sound card"]
    sys.modules.pop("sounddevice", None)
    assert (found["verdict"], found["needed"]) == (verdict, verdict == "ok")
    assert told in str(found["told"])


def test_python_sqlite_and_extras_are_told() -> None:
    found = items(callwright("check", "--server", "ws://127.0.0.1:1/", "--json"))
    assert str(found["Python"]["told"]).startswith(platform.python_version())
    assert f"{sqlite3.sqlite_version}; a ledger's journal_mode is " in str(found["SQLite"]["told"])
    assert "picows" in str(found["extra fast"]["told"])
    absent = importlib.util.find_spec("livekit") is None
    assert (found["extra aec"]["verdict"], found["extra aec"]["needed"]) == (
        ("missing", False) if absent else ("ok", True)
    )


def test_the_journal_that_is_told_is_the_one_that_a_ledger_has(here: Path) -> None:
    told = str(items(callwright("check", "--server", "ws://127.0.0.1:1/", "--json"))["SQLite"]["told"])
    with closing(SQLiteStore(here / "ledger.db")) as store:
        mode = store._connection.execute("PRAGMA journal_mode").fetchone()[0]
    assert f"journal_mode is {mode.upper()} " in told
