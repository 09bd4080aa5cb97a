"""``callwright serve``: the local realtime server behind a real WebSocket."""

from __future__ import annotations

import asyncio
import itertools
import logging
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import click

from callwright.cli import options
from callwright.cli.local import chat_endpoint, chat_model, chat_url
from callwright.cli.plan import Plan, make_plan
from callwright.cli.server import is_this_machine
from callwright.errors import UsageError
from callwright.runtime.environment import read_environment
from callwright.sim.live import fastest_loop
from callwright.sim.open.sessions import free_speech
from callwright.sim.scenario import Scenario
from callwright.sim.server import Peer
from callwright.sim.server.websocket import RealtimeServer
from callwright.sim.world import Options, make_session
from callwright.wire.profiles import PROFILES

_ENDS = (signal.SIGINT, signal.SIGTERM)


@click.command("serve")
@click.argument("scenario", default="check-in")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="NAME",
    help="Where it listens: beyond this machine only with a key.",
)
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=8765, show_default=True, metavar="N", help="0 takes a free one."
)
@options.dialect
@click.option(
    "--key", envvar="CALLWRIGHT_SERVE_KEY", show_envvar=True, metavar="KEY", help="The key that clients must show."
)
@click.option("--sessions", type=click.IntRange(1), metavar="N", help="How many may be open at once.")
@options.seed
@click.option("--quiet", is_flag=True, help="Print no line for each session that ended.")
@click.option(
    "--listen", is_flag=True, help="Hear what anybody says, and not only recorded lines; needs the extra local."
)
@chat_url
@chat_model
def command(
    scenario: str,
    host: str,
    port: int,
    dialect: str | None,
    key: str | None,
    sessions: int | None,
    seed: int,
    quiet: bool,
    listen: bool,
    chat_url: str | None,
    chat_model: str | None,
) -> None:
    """Run the local realtime server: it hears, answers and calls tools as the model in SCENARIO does.

    SCENARIO is a name, or the path of a YAML file; check-in, if none is given. With --listen it hears free speech,
    and answers it by the rules and lines of SCENARIO, or in words of its own by a chat endpoint.

    Each session has a seed of its own: S, S+1 and so on. One line for each session that ended goes to standard error,
    without content. Ctrl-C lets open replies end, closes all sessions, and exits with 0.
    """
    _check_key(host, key)
    setup = options.Setup(dialect=dialect)
    plan = make_plan(scenario, setup)
    chat = chat_endpoint(chat_url, chat_model, read_environment(Path.cwd()))
    if chat is not None and not listen:
        raise UsageError("--chat-url answers free speech: say --listen, too")
    dialect = setup.dialect_for(plan.scenario)
    made = free_speech(dialect, plan.scenario, chat, seed) if listen else _recorded(plan.scenario, seed, setup.options)
    if not quiet:
        _log_sessions()

    def server(session: Callable[[], Peer]) -> RealtimeServer:
        return RealtimeServer(session, host=host, port=port, key=key, sessions_max=sessions)

    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        runner.run(_serve(made, server, lambda url: _announce(plan, url, key)))


def _check_key(host: str, key: str | None) -> None:
    """Raise UsageError for a server that would let in whoever finds it, or a key that nobody can show."""
    if key is not None and not key.strip():
        raise UsageError("the key is empty: give another --key, or none")
    if key is None and not is_this_machine(host):
        raise UsageError(f"--host {host} lets in whoever finds it: ask for a --key (or CALLWRIGHT_SERVE_KEY), too")


@asynccontextmanager
async def _recorded(scenario: Scenario, seed: int, setup: Options) -> AsyncIterator[Callable[[], Peer]]:
    """Sessions that hear recorded lines alone."""
    make_session(scenario, seed, setup)  # what is wrong or slow comes before the first session
    seeds = itertools.count(seed)
    yield lambda: make_session(scenario, next(seeds), setup)


async def _serve(
    made: AbstractAsyncContextManager[Callable[[], Peer]],
    serving: Callable[[Callable[[], Peer]], RealtimeServer],
    announce: Callable[[str], None],
) -> None:
    """Serve until a signal asks for the end; a second one does not wait."""
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    async with made as session, serving(session) as server:
        for number in _ENDS:
            loop.add_signal_handler(number, asked.set)
        announce(server.url)
        await asked.wait()
        for number in _ENDS:
            loop.remove_signal_handler(number)


def _announce(plan: Plan, url: str, key: str | None) -> None:
    """Where the server is, and how an agent of ours finds it."""
    profile = PROFILES[plan.setup.dialect_for(plan.scenario)]
    click.echo(f"serving {plan.scenario.name}, dialect {profile.name}, at {url}; Ctrl-C ends it")
    click.echo(f"an agent finds it by {profile.url_env}={url} {profile.key_env}={'KEY' if key else 'any'}")


def _log_sessions() -> None:
    log = logging.getLogger("callwright.access")
    log.addHandler(logging.StreamHandler())
    log.setLevel(logging.INFO)
