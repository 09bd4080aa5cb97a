"""``--server``: calls to a live server, of which a served one is as good as any; what they cost, and who is let in."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import pytest
from tests.cli.calling import HOTEL, callwright, interrupted, variant, without_keys
from tests.cli.test_check import running
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

from callwright.cli.estimate import Calls, Length, ask, length_of, told
from callwright.cli.live import Door, Live
from callwright.cli.options import LIVE_CALLS, Setup
from callwright.cli.patience import PATIENCE_S, PAUSES_S, Patience
from callwright.cli.plan import Plan, make_plan
from callwright.cli.server import Server
from callwright.core.ports import ModelConnection, ModelSink
from callwright.errors import ConnectionFailed, UsageError
from callwright.sim.server import ServerSession
from callwright.sim.server.websocket import RealtimeServer
from callwright.sim.world import Options, make_session
from callwright.testing.connections import Serve, answers, raw_server

KEY = "sk-marker-live"
NOWHERE = "ws://127.0.0.1:1/v1/realtime"
GONE = """
scenario: gone
about: the caller hangs up before he has said anything
agent: callwright.apps.hotel:desk
line: {kind: phone}
model: {rules: RULES}
expect: {ended: caller, not_heard: [parking]}
caller:
  - {when: pickup + 700 ms, does: hang_up}
"""


REACHING = """
import asyncio
from typing import Annotated

import callwright as cw

desk = cw.Agent("reaching", model=cw.polyai(), instructions="Help.", opens_after_ms=100)

@desk.tool
async def look_up_booking(
    ctx: cw.Context[None], surname: Annotated[str, "whose"], holding: Annotated[cw.Spoken, "what to say"]
) -> cw.Facts:
    "Look up a booking."
    while True:
        await asyncio.sleep(0)

@desk.tool(after=cw.AfterOutput.HANG_UP)
async def end_call(
    ctx: cw.Context[None], reason: Annotated[str, "why"], goodbye: Annotated[cw.Spoken, "the goodbye"]
) -> str:
    "End the call."
    return reason
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of its own, and an environment with nothing but one key."""
    monkeypatch.chdir(tmp_path)
    without_keys(monkeypatch)
    monkeypatch.setenv("POLY_API_KEY", KEY)
    return tmp_path


@pytest.fixture
def gone(tmp_path: Path) -> Path:
    path = tmp_path / "gone.yaml"
    path.write_text(GONE.replace("RULES", str(HOTEL / "hotel.model.yaml")), "utf-8")
    return path


class Sessions:
    """The sessions of a server: how many there were, and how many at most at once."""

    def __init__(self, scenario: Path) -> None:
        self._scenario = make_plan(str(scenario), Setup()).scenario
        self.made: list[ServerSession] = []
        self.most = 0

    def __call__(self) -> ServerSession:
        self.made.append(make_session(self._scenario, len(self.made), Options()))
        self.most = max(self.most, sum(session.closing is None for session in self.made))
        return self.made[-1]


class Crowded(RealtimeServer):
    """A server that has room once two came in vain."""

    REFUSES = 2
    refused = 0

    @property
    def sessions(self) -> int:
        if self.refused < self.REFUSES:
            self.refused += 1
            return 50
        return super().sessions


@contextmanager
def serving(sessions: Sessions, sessions_max: int | None = None) -> Iterator[str]:
    with running(RealtimeServer(sessions, key=KEY, sessions_max=sessions_max)) as server:
        yield server.url


def counted(asked: list[int], serve: Serve) -> Serve:
    """The same server, which counts who comes."""

    async def counts(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(1)
        await serve(reader, writer)

    return counts


def plan_of(server: str | None = NOWHERE, name: str = "check-in") -> Plan:
    return make_plan(name, Setup(server=server))


# --- whom calls reach


def test_a_call_reaches_the_server_that_is_named_and_says_so(gone: Path, here: Path) -> None:
    sessions = Sessions(gone)
    with serving(sessions) as url:
        page = here / "page.html"
        result = callwright("call", gone, "--server", url, "--out", here, "--report", page, columns=200)
        as_json = callwright("call", gone, "--server", url, "--json", "--out", here)
    assert (result.exit_code, as_json.exit_code) == (0, 0), result.output
    assert len(sessions.made) == 2
    assert f"gone, seed 1, --server {url}" in result.stdout
    assert result.stderr.startswith(
        f"callwright: 1 live call on polyai at {url}: about 1 s connected, $0.000 at $0.02 a"
    )
    open_end = "what a server that is not ours says is no recorded line"
    told = json.loads(as_json.stdout)
    assert f"\nomitted not_heard: {open_end}\nabout   ai_notice_heard: where words lie in a reply" in result.stdout
    assert f"<b>omitted</b> not_heard: {open_end}</p>" in page.read_text("utf-8")
    assert (told["not_judged"], told["estimated"]) == ({"not_heard": open_end}, ["ai_notice_heard"])
    assert (told["server"], told["settings"]) == ("polyai", {"live": url})
    (directory,) = [path for path in here.iterdir() if path.is_dir()]
    assert directory.name == f"gone-callwright-server-{url.replace('://', '-').replace('/', '-')}-1"
    written = b"".join(path.read_bytes() for path in directory.iterdir())
    assert KEY.encode() not in written + result.output_bytes + as_json.output_bytes


def test_a_provider_is_reached_where_the_environment_says_and_with_the_files_key(
    gone: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POLY_API_KEY")
    sessions = Sessions(gone)
    with serving(sessions) as url:
        (here / ".env").write_text(f"POLY_API_KEY={KEY}\nDIALOG_REALTIME_URL={url}\n", "utf-8")
        result = callwright("call", gone, "--server", "polyai", "--quiet", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["settings"] == {"live": url}
    assert len(sessions.made) == 1


def test_a_missing_key_is_named_before_anything_is_played(gone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POLY_API_KEY")
    result = callwright("measure", gone, "--server", "polyai", "--yes")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no key for polyai: set POLY_API_KEY in the environment, or in .env here" in result.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--server", "mars"], "--server mars: expected polyai, openai, plain, or an address"),
        (["--server", "polyai", "--dialect", "polyai"], "leave it out for polyai"),
        (["--server", f"{NOWHERE}?key=sk-1"], "without user and query"),
        (["--server", "ws://me:sk-1@127.0.0.1:1/"], "without user and query"),
        (["--server", NOWHERE, "--against", "--client naive --server mars"], "--server mars: expected"),
        (["--against", f"--server {NOWHERE}"], "one side is on a live server and the other is not"),
        (["--server", NOWHERE, "--runs", "2"], "nobody can be asked: say --yes"),
        (["--server", NOWHERE, "--against", "--client naive"], "nobody can be asked: say --yes"),
        (["--server", NOWHERE, "--live-calls", "0"], "--live-calls"),
        (
            ["--server", NOWHERE, "--out", "gone.yaml/x"],
            "gone.yaml/x cannot be written, because gone.yaml is in the way",
        ),
        (["--server", NOWHERE, "--report", "gone.yaml/x.html"], "because gone.yaml is in the way: choose another"),
        (["--server", NOWHERE, "--export", "gone.yaml/x/y"], "because gone.yaml is in the way: choose another"),
        (["--server", NOWHERE, "--voice", "own"], "a model that is not ours writes what no line is recorded of"),
    ],
)
def test_wrong_use_is_named_before_anything_is_played(options: list[str], told: str, gone: Path) -> None:
    result = callwright("measure", gone, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in " ".join(result.stderr.split())
    assert "sk-1" not in result.output


def test_the_model_may_be_named_in_the_address(gone: Path, here: Path) -> None:
    with serving(Sessions(gone)) as url:
        result = callwright("call", gone, "--server", f"{url}?model=dialog-rsn-1", "--quiet", "--json", "--out", here)
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout)["settings"] == {"live": url}
    assert [path.name.endswith("-v1-realtime-model=dialog-rsn-1-1") for path in here.iterdir() if path.is_dir()] == [
        True
    ]


def test_on_a_live_server_no_behavior_of_the_local_model_is_waited_for() -> None:
    assert plan_of(None, "wrong-key").behaviors
    assert not plan_of(name="wrong-key").behaviors


def test_however_long_the_address_is_the_files_of_a_call_have_a_name_of_their_own(here: Path) -> None:
    plans = [plan_of(f"{NOWHERE}/{'x' * 400}/{end}") for end in ("a", "b")]
    names = [plan.directory(here, seed).name for plan in plans for seed in (1, 2)]
    assert len(set(names)) == 4
    for name in names:
        assert name.startswith("check-in-callwright-server-ws-127.0.0.1:1-v1-realtime-xxx")
        (here / name).mkdir()


# --- how many at once


def test_no_more_calls_are_open_at_once_than_are_allowed_and_jobs_do_not_multiply_them(gone: Path) -> None:
    """What the account has no room for waits, and nobody says that the key is wrong."""
    sessions = Sessions(gone)
    with running(Crowded(sessions, key=KEY, sessions_max=50)) as server:
        arguments = ("--runs", 3, "--jobs", 4, "--server", server.url, "--yes", "--json")
        no_baseline = callwright("measure", gone, *arguments, "--before")
        result = callwright("measure", gone, *arguments)
    assert (no_baseline.exit_code, result.exit_code) == (2, 0), result.stderr
    assert [each["seed"] for each in json.loads(result.stdout)["by_seed"]] == [1, 2, 3]
    assert sessions.most <= LIVE_CALLS
    assert len(sessions.made) == 3
    waits = [line for line in result.stderr.splitlines() if "waits" in line]
    assert len(waits) == Crowded.REFUSES
    assert all("all sessions of the account are in use (HTTP 429)" in line for line in waits)
    assert "POLY_API_KEY" not in result.stderr


def test_a_key_that_is_refused_stops_the_batch_at_once(gone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    with running(raw_server(counted(asked, answers(401)))) as url:
        result = callwright("measure", gone, "--runs", 40, "--server", url, "--yes", "--live-calls", 1)
    assert (result.exit_code, result.stdout, len(asked)) == (1, "", 1)
    assert "HTTP 401: POLY_API_KEY was refused" in result.stderr
    assert f"POLY_API_KEY is from the environment; callwright check --server {url} looks closer" in result.stderr


def test_ctrl_c_keeps_what_was_finished(gone: Path) -> None:
    gone.write_text(gone.read_text("utf-8").replace("ended: caller", "ended: agent"), "utf-8")
    with serving(Sessions(gone)) as url:
        measure = ("measure", gone, "--server", url, "--yes", "--json", "--runs", 200)
        process = interrupted("FAILED gone seed 1: ", *measure)
    assert process.returncode == 130, process.stderr
    assert " of 200 runs of gone\n" in process.stderr
    assert json.loads(process.stdout)["runs"] >= 1


def test_a_demo_plays_both_clients_on_the_server_at_once(gone: Path, here: Path) -> None:
    sessions = Sessions(gone)
    with serving(sessions, sessions_max=LIVE_CALLS) as url:
        result = callwright("demo", gone, "--server", url, "--yes", "--out", here)
    assert result.exit_code == 0, result.output
    assert (sessions.most, len(sessions.made)) == (2, 2)
    assert "2 live calls on polyai" in result.stderr
    assert result.stdout.count("\nomitted not_heard: ") == 2


def test_a_call_of_a_demo_that_finds_no_room_is_played_once_the_other_is_over(gone: Path, here: Path) -> None:
    sessions = Sessions(gone)
    with serving(sessions, sessions_max=1) as url:
        result = callwright("demo", gone, "--server", url, "--yes", "--out", here)
    assert result.exit_code == 0, result.output
    assert (sessions.most, len(sessions.made)) == (1, 2)
    assert result.stderr.count("gone seed 1 waits 2 s, or until another call is over, and is played again") == 1


class OneOnly(RealtimeServer):
    """A server that breaks down once somebody is there."""

    def _refusal(self, connection: ServerConnection, request: Request) -> Response | None:
        if self.sessions:
            return connection.respond(HTTPStatus.INTERNAL_SERVER_ERROR, "")
        return super()._refusal(connection, request)


def test_of_a_demo_the_call_is_shown_that_was_finished_before_the_other_failed(gone: Path, here: Path) -> None:
    sessions = Sessions(gone)
    with running(OneOnly(sessions, key=KEY)) as server:
        result = callwright("demo", gone, "--server", server.url, "--yes", "--out", here)
    assert (result.exit_code, len(sessions.made)) == (1, 1)
    assert "HTTP 500: the server is in trouble" in result.stderr
    assert result.stdout.count("\nomitted not_heard: ") == 1
    assert len(list(here.glob("gone-*/figures.json"))) == 1


def test_a_demo_tries_no_second_call_with_a_key_that_is_refused(gone: Path) -> None:
    asked: list[int] = []
    with running(raw_server(counted(asked, answers(403)))) as url:
        result = callwright("demo", gone, "--server", url, "--yes", "--live-calls", 1)
    assert (result.exit_code, result.stdout, len(asked)) == (1, "", 1)
    assert "HTTP 403" in result.stderr


def test_a_call_that_is_over_before_the_server_has_answered_is_none() -> None:
    """The caller who hung up meanwhile spoke to nobody, which says nothing of any agent."""

    class Mute:
        async def connect(self, _sink: ModelSink) -> ModelConnection:
            await asyncio.Event().wait()
            raise AssertionError

    class Sink:
        def on_message(self, message: bytes | str) -> None: ...

        def on_closed(self, code: int, reason: str) -> None: ...

    async def leave() -> None:
        connecting = asyncio.create_task(door.connect(Sink()))
        await asyncio.sleep(0)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting

    door = Door(Mute(), NOWHERE)
    asyncio.run(leave())
    assert str(door.refusal) == f"{NOWHERE}: no answer until the call was over; is it reachable?"


# --- who waits


def room(retry_after_s: float | None = None) -> ConnectionFailed:
    return ConnectionFailed("ws://x: HTTP 429: too many", status=429, retry_after_s=retry_after_s)


def test_a_call_that_finds_no_room_waits_longer_each_time_and_not_for_ever() -> None:
    lines: list[str] = []
    patience, plan = Patience(lines.append), plan_of()
    pauses = []
    while (pause_s := patience.pause_s(plan, 4, room())) is not None:
        pauses.append(pause_s)
    assert tuple(pauses[: len(PAUSES_S)]) == PAUSES_S
    assert set(pauses[len(PAUSES_S) :]) == {PAUSES_S[-1]}
    assert PATIENCE_S - PAUSES_S[-1] < sum(pauses) <= PATIENCE_S
    assert lines[0] == (
        "check-in seed 4 waits 2 s and is played again: all sessions of the account are in use (HTTP 429)"
    )
    assert lines[-1] == "check-in seed 4 has waited long enough, and all sessions of the account are still in use"
    assert patience.pause_s(plan, 5, room()) == PAUSES_S[0]
    assert patience.pause_s(plan_of(name="pickup"), 4, room()) == PAUSES_S[0]


def test_while_others_of_ours_go_on_they_are_waited_for() -> None:
    """However long they are: a call on hold takes an hour."""
    lines: list[str] = []
    patience, plan = Patience(lines.append), plan_of()
    for _ in range(200):
        assert patience.pause_s(plan, 4, room(), others=1) is not None
    assert lines[0].startswith("check-in seed 4 waits 2 s, or until another call is over, and is played again: all ")
    assert patience.pause_s(plan, 4, room(PATIENCE_S * 6), others=1) == PATIENCE_S
    assert patience.pause_s(plan, 4, room()) == PAUSES_S[-1]


@pytest.mark.parametrize(("told_s", "pause_s"), [(17.0, 17.0), (0.0, 2.0), (PATIENCE_S + 1, None)])
def test_a_server_that_says_when_to_come_again_is_taken_at_its_word(told_s: float, pause_s: float | None) -> None:
    lines: list[str] = []
    assert Patience(lines.append).pause_s(plan_of(), 1, room(told_s)) == pause_s
    if pause_s is None:
        assert lines == ["check-in seed 1 is not waited for: all sessions of the account are in use for another 601 s"]


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (ConnectionFailed("no answer; is it up?"), "no answer; is it up?"),
        (ConnectionFailed("HTTP 503", status=503), "HTTP 503;"),
        (ConnectionFailed("HTTP 404", status=404, is_final=True), "HTTP 404;"),
    ],
)
def test_nothing_else_is_waited_for_and_it_is_told_what_looks_closer(problem: ConnectionFailed, told: str) -> None:
    patience = Patience(print)
    with pytest.raises(ConnectionFailed) as raised:
        patience.pause_s(plan_of(), 1, problem)
    assert str(raised.value) == f"{told} callwright check --server {NOWHERE} looks closer"
    assert (raised.value.status, raised.value.is_final) == (problem.status, problem.is_final)
    assert patience.refusal is None
    assert patience.pause_s(plan_of(), 1, UsageError("HTTP 429")) is None


def test_a_call_that_cannot_connect_names_the_check_that_tries_the_same() -> None:
    url = "ws://127.0.0.1:9/v1/realtime"
    result = callwright("call", "check-in", "--server", url, "--dialect", "openai", "--quiet")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "cannot connect (" in result.stderr
    assert result.stderr.endswith(f"up there? callwright check --server {url} --dialect openai looks closer\n")


@pytest.mark.parametrize("status", [401, 403])
def test_who_is_refused_learns_whose_key_was_shown(status: int, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def advice(plan: Plan) -> str:
        with pytest.raises(ConnectionFailed) as refused:
            Patience(print).pause_s(plan, 1, ConnectionFailed(f"HTTP {status}", status=status))
        assert KEY not in str(refused.value)
        return str(refused.value)

    look = f"callwright check --server {NOWHERE} looks closer"
    plan = plan_of()
    assert advice(plan) == f"HTTP {status}; POLY_API_KEY is from the environment; {look}"
    (here / ".env").write_text("POLY_API_KEY=sk-marker-other\n", "utf-8")
    assert advice(plan) == f"HTTP {status}; the environment's POLY_API_KEY hides another one in .env; {look}"
    monkeypatch.delenv("POLY_API_KEY")
    assert advice(plan) == f"HTTP {status}; POLY_API_KEY is from .env; {look}"
    (here / ".env").unlink()
    assert advice(plan) == f"HTTP {status}; POLY_API_KEY is not set; {look}"


# --- what it costs


def calls(count: int, whole_s: int, connected_s: int, server: str = NOWHERE, *, is_longest: bool = False) -> Calls:
    length = Length(whole_s * 1000, connected_s * 1000, is_longest=is_longest)
    return Calls(Live.at(Server.parse(server)), count, length)


def test_before_a_batch_it_is_told_how_long_it_takes_and_what_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    one = calls(10, 50, 45, "polyai")
    assert told([one], 2) == [
        "10 live calls on polyai at wss://api.studio.poly.ai/v1/realtime: about 7 min 30 s connected, "
        "$0.150 at $0.02 a minute; tokens come on top",
        "2 at a time: over in about 4 min 10 s",
    ]
    assert (
        told([one, calls(1, 700, 700, "polyai", is_longest=True)], 20)[1] == "11 at a time: over in at most 11 min 40 s"
    )
    assert told([calls(1, 50, 45)], 2) == [
        f"1 live call on polyai at {NOWHERE}: about 45 s connected, "
        "$0.015 at $0.02 a minute, if polyai is who bills; tokens come on top"
    ]
    two = told([one, calls(2, 60, 60, "openai")], 1)
    assert two[1] == (
        "2 live calls on openai at wss://api.openai.com/v1/realtime: about 2 min 0 s connected, "
        "for which openai has no price; tokens are what is billed there"
    )
    assert two[2] == "1 at a time: over in about 10 min 20 s"


def test_the_length_of_a_call_is_that_of_the_same_call_in_virtual_time() -> None:
    length = length_of(plan_of(name="talk-over"), 1)
    assert 10_000 < length.connected_ms <= length.whole_ms < 60_000
    earlier = length_of(plan_of(name="call-back"), 1)
    assert earlier.connected_ms == earlier.whole_ms


def test_a_call_that_reaches_outside_is_as_long_as_it_may_be(tmp_path: Path) -> None:
    """Its tools may do so by the wall clock; in virtual time there is nothing out there."""
    (tmp_path / "reaching_desk.py").write_text(REACHING, "utf-8")
    path = variant(
        tmp_path,
        "reaches",
        ("callwright.apps.hotel:desk", "reaching_desk:desk"),
        ("says: ask-check-in", "says: look-up-okafor"),
    )
    plan = make_plan(str(path), Setup(server=NOWHERE))
    longest_ms = plan.scenario.ends_ms
    assert length_of(plan, 1) == Length(longest_ms, longest_ms, is_longest=True)


@pytest.mark.parametrize(("answer", "is_played"), [("y\n", True), ("n\n", False), ("\n", False), ("\x04", False)])
def test_at_a_terminal_several_calls_are_asked_about(
    answer: str, is_played: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = os.openpty()
    with os.fdopen(theirs, encoding="utf-8") as terminal:
        os.write(ours, answer.encode())
        monkeypatch.setattr(sys, "stdin", terminal)
        if is_played:
            ask([calls(2, 1, 1)], 2, is_agreed=False)
        else:
            with pytest.raises(KeyboardInterrupt, match="before the first call"):
                ask([calls(2, 1, 1)], 2, is_agreed=False)
    os.close(ours)


def test_one_call_and_calls_that_are_agreed_to_are_not_asked_about(capsys: pytest.CaptureFixture[str]) -> None:
    ask([calls(1, 1, 1)], 2, is_agreed=False)
    ask([calls(2, 1, 1)], 2, is_agreed=True)
    assert capsys.readouterr().err.count("callwright: ") == 3
