"""``callwright talk``: a conversation with an agent, at this machine's microphone and loudspeaker.

The sound card comes first: what is said while the model still connects is held, and heard. The screen follows the call;
it is looked at ten times a second, and nothing in the call waits for it.
"""

from __future__ import annotations

import asyncio
import signal
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from callwright.audio.echo import CANCELS
from callwright.cli.ledger import VERBS, Asked, load_provider
from callwright.cli.local import LOCAL, chat_endpoint, chat_model, chat_url
from callwright.cli.main import INTERRUPTED
from callwright.cli.plan import ROOTS, look_here
from callwright.cli.printing import put, unobeyed, width
from callwright.cli.server import Server
from callwright.core.ports import Connector
from callwright.core.transcript import Source, Speaker, Turn
from callwright.declare.agent import Agent, ModelChoice
from callwright.errors import LineFailed, UsageError
from callwright.ids import ItemId
from callwright.ledger.sqlite import SQLiteStore
from callwright.ledger.store import MemoryStore
from callwright.lines.soundcard import SoundCard, default_devices, devices, sound_card
from callwright.measure.outcome import seconds
from callwright.runtime.call import Call, CallResult, run
from callwright.runtime.connect import connect_to
from callwright.runtime.dispatcher import Ledger
from callwright.runtime.environment import read_environment
from callwright.sim.agents import load_agent, make_deps
from callwright.sim.behind.backend import open_backend
from callwright.sim.live import fastest_loop
from callwright.sim.open.chat import ChatEndpoint
from callwright.sim.open.sessions import free_speech
from callwright.sim.open.workers import check_installed
from callwright.sim.scenario import Scenario, load_scenario, locate_scenario
from callwright.sim.server import MemoryConnector
from callwright.wire.profiles import PROFILES

APPS: Final[Mapping[str, str]] = {"hotel": "check-in", "refunds": "did-it-go-through", "pharmacy": "hold"}
"""The demo agents, each with the scenario that says what is behind it: records, payment provider, who the caller is."""

_LOOK_S: Final = 0.1
_NAME_COLUMNS: Final = 9
_METER_COLUMNS: Final = 30
_METER_DB: Final = 60
"""What the whole of it is."""
_FALLS_DB: Final = 3
"""By so much the meter falls from one look to the next at most, so that a short word is seen."""
_NAMES: Final[Mapping[Speaker, str]] = {Speaker.CALLER: "you", Speaker.AGENT: "agent"}


@dataclass(frozen=True, slots=True)
class Own:
    """What is behind an agent of one's own."""

    party: str | None = None
    deps: str | None = None
    providers: tuple[str, ...] = ()
    db: Path | None = None


@dataclass(frozen=True, slots=True)
class Behind:
    """What is behind the agent in this call."""

    ledger: Ledger | None
    deps: object
    party: str | None
    settle: Callable[[], Awaitable[None]]
    """Waits until the provider has done what was asked of it, as long as it makes sense."""


@click.command("talk")
@click.argument("app", required=False)
@click.option("--speakers", is_flag=True, help="You hear the agent through loudspeakers: cancel its echo.")
@click.option(
    "--device", "named", multiple=True, metavar="N", help="A sound device, by number or name; two if need be."
)
@click.option("--list-devices", is_flag=True, help="List the sound devices, and do nothing else.")
@click.option(
    "--server", metavar="NAME|URL", help=f"Where the model is: {', '.join(PROFILES)}, {LOCAL}, or an address."
)
@chat_url
@chat_model
@click.option("--party", metavar="ID", help="Who the caller is, for the tools of an agent of your own.")
@click.option("--deps", metavar="MODULE:NAME", help="What makes its deps, called with nothing.")
@click.option("--provider", "providers", multiple=True, metavar="MODULE:NAME", help="A provider of its actions.")
@click.option("--db", type=click.Path(dir_okay=False, path_type=Path), help="The file of its ledger; memory, if none.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    app: str | None,
    speakers: bool,
    named: tuple[str, ...],
    list_devices: bool,
    server: str | None,
    chat_url: str | None,
    chat_model: str | None,
    **own: Any,
) -> None:
    """Talk to the agent APP: hotel, refunds, pharmacy, or MODULE:NAME of one of your own.

    It needs the extra mic, and the model's key in the environment or in .env; --server local needs no key, but the
    extra local, and a chat endpoint for what no demo has recorded. Each turn is shown as it becomes known, what you
    heard of a reply beside what the model wrote; the ledger follows at the end. Ctrl-C hangs up.
    """
    if list_devices:
        _list_devices()
        return
    if app is None:
        raise UsageError(f"expected whom to talk to: {', '.join(APPS)}, or MODULE:NAME of an agent")
    look_here()
    scenario = load_scenario(locate_scenario(APPS[app], ROOTS)) if app in APPS else None
    agent = load_agent(scenario.agent if scenario else _own(app))
    chat = chat_endpoint(chat_url, chat_model, read_environment(Path.cwd()))
    if server == LOCAL:
        reach = _local(agent, scenario, chat)
    elif chat is not None:
        raise UsageError(f"--chat-url is for the server that thinks by it: say --server {LOCAL}, too")
    else:
        agent, connects = _reach(agent, server)
        reach = nullcontext(connects)
    line = sound_card(speakers=speakers, device=[int(each) if each.isdecimal() else each for each in named])
    screen = Screen(line)
    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        result = runner.run(_talk(agent, reach, line, screen, _behind(scenario, Own(**own))))
    ctx.exit(INTERRUPTED if screen.is_interrupted else int(result.ending.is_failure))


async def _talk(
    agent: Agent,
    reach: AbstractAsyncContextManager[Connector],
    line: SoundCard,
    screen: Screen,
    behind: AbstractAsyncContextManager[Behind],
) -> CallResult:
    """One call, and what is to be said after it."""
    async with reach as connects, line, behind as world:
        with screen:
            result = await run(
                agent,
                line,
                connector=connects,
                ledger=world.ledger,
                deps=world.deps,
                party=world.party,
                watch=screen.watch,
            )
        put(*_remarks(line, result))
        if world.ledger is not None:
            if not screen.is_interrupted:
                await world.settle()
            await VERBS["list"](world.ledger, Asked((), "", False))
    return result


class Screen:
    """What is seen of a call: its turns as they become known, and below them the microphone's level, on a terminal."""

    def __init__(self, line: SoundCard) -> None:
        self.is_interrupted = False
        self._line = line
        self._call: Call
        self._seen: tuple[Turn, ...] = ()
        self._told: dict[ItemId, Turn] = {}
        self._saying: list[str] = []
        self._is_ready = False
        self._level_db = -_METER_DB
        self._live = Live(
            console=Console(highlight=False, emoji=False, markup=False), transient=True, auto_refresh=False
        )
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        self._live.__enter__()

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
            self._look()
        self._live.update(Text(), refresh=True)
        self._live.__exit__(None, None, None)

    def watch(self, call: Call) -> None:
        """The line is open; what becomes of the call is shown from here on."""
        self._call = call
        self._put(Text(textwrap.fill(f"line open: {_opened(self._line)}", width())))
        self._put(Text("connecting; Ctrl-C hangs up"))
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupt)
        self._beat()

    def _interrupt(self) -> None:
        """Hang up; whoever presses it again does not want to wait."""
        self.is_interrupted = True
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        self._call.hang_up("Ctrl-C")

    def _beat(self) -> None:
        self._look()
        self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._beat)

    def _look(self) -> None:
        ready_ms, held_ms = self._call.uplink.opened_at_ms, self._call.uplink.held_sent_ms
        if ready_ms is not None and not self._is_ready:
            self._is_ready = True
            self._put(
                Text(f"ready after {seconds(ready_ms)}: what you said meanwhile was held, {seconds(held_ms)} of it")
            )
        transcript = self._call.session.transcript()
        if transcript != self._seen:  # what may be told of it costs more to find out
            self._seen = transcript
            self._tell([turn for turn in self._call.turns if turn.heard or turn.written])
        if self._live.console.is_terminal:
            self._level_db = max(self._line.level_dbfs, self._level_db - _FALLS_DB, -_METER_DB)
            self._live.update(_below(self._level_db, self._saying, self._live.console.encoding), refresh=True)

    def _tell(self, turns: Sequence[Turn]) -> None:
        self._saying = [turn.written for turn in turns if turn.source is Source.PENDING]
        for turn in turns:
            if turn.source is not Source.PENDING and self._told.get(turn.item_id) != turn:
                self._told[turn.item_id] = turn
                self._put(told(turn))

    def _put(self, text: Text) -> None:
        self._live.console.print(text, width=width())


def told(turn: Turn) -> Text:
    """A turn as it is shown: what was heard, and what the model wrote where that is something else."""
    lines = [_hanging(_NAMES[turn.speaker], turn.heard or "(no word of it)")]
    if turn.speaker is Speaker.AGENT and turn.heard != turn.written:
        cut = "" if turn.cut_ms is None else f", cut after {seconds(turn.cut_ms)}"
        lines.append(_hanging("", f"written: {turn.written} ({turn.source}{cut})"))
    text = Text(unobeyed("\n".join(lines)))
    text.stylize("bold", end=_NAME_COLUMNS)
    return text


def _hanging(name: str, text: str) -> str:
    indent = " " * _NAME_COLUMNS
    return textwrap.fill(text, width(), initial_indent=f"{name:{_NAME_COLUMNS}}", subsequent_indent=indent)


def _below(level_db: int, saying: list[str], encoding: str) -> Table:
    """What changes: the reply that is being played, and the level of the microphone."""
    full = "█" if encoding.startswith("utf") else "#"
    loud = _METER_COLUMNS * (level_db + _METER_DB) // _METER_DB
    table = Table.grid(padding=(0, 2, 0, 0))
    for text in saying:
        table.add_row(Text("agent", "dim"), Text(unobeyed(text), "dim"))
    table.add_row(Text("mic", "dim"), Text(f"{full * loud:{_METER_COLUMNS}} {level_db:4} dBFS", "green"))
    return table


def _opened(line: SoundCard) -> str:
    """Which devices carry the call, and what is assumed of them."""
    names = f"{line.microphone.name} (microphone), {line.loudspeaker.name}, {line.latency_ms} ms to the ear"
    if CANCELS[line.output]:
        return f"{names}; its echo is cancelled"
    return f"{names}; on headphones: with loudspeakers say --speakers"


def _remarks(line: SoundCard, result: CallResult) -> list[RenderableType]:
    """How the call ended, and what was not as it should be."""
    ending = result.ending
    remarks = [f"ended by {ending.by}: {ending.reason}"]
    if result.lost_ms:
        remarks.append(f"{seconds(result.lost_ms)} of what you said were lost before the session stood")
    if str(line.glitches):
        remarks.append(f"the sound card was not served in time: {line.glitches}")
    if line.canceller.report.delay_ms is not None:
        remarks.append(f"echo: {line.canceller.report.delay_ms} ms late, {line.canceller.report.erle_db} dB softer")
    remarks += [f"you were not told: {untold.sentence}" for untold in result.untold]
    return [Text(unobeyed(remark)) for remark in remarks]


def _list_devices() -> None:
    defaults = []
    try:
        defaults = list(default_devices())
    except LineFailed as problem:
        click.echo(f"callwright: {problem}", err=True)
    table = Table(box=None, pad_edge=False)
    for head in ("device", "name", "is a", ""):
        table.add_column(head)
    for device in devices():
        table.add_row(str(device.number), device.name, device.directions, "default" if device in defaults else "")
    put(table)


def _own(app: str) -> str:
    """The module and name of an agent of one's own."""
    if ":" not in app:
        raise UsageError(f"there is no app {app!r}: expected {', '.join(APPS)}, or MODULE:NAME of an agent of your own")
    return app


def _reach(agent: Agent, server: str | None) -> tuple[Agent, Connector]:
    """The agent with the model that was asked for, and how it is reached. To an address a key goes if there is one."""
    environment = read_environment(Path.cwd())
    if server is None:
        return agent, connect_to(agent.model, environment=environment)
    named = Server.parse(server, otherwise=agent.model.profile)
    if named.profile.name != agent.model.provider:
        agent = replace(agent, model=ModelChoice(named.profile.name))
    return agent, named.connector(environment)


def _local(
    agent: Agent, scenario: Scenario | None, chat: ChatEndpoint | None
) -> AbstractAsyncContextManager[Connector]:
    """The server for free speech, in this process. Raises UsageError where it would have nothing to answer with."""
    check_installed()
    if chat is None and scenario is None:
        raise UsageError(
            f"--server {LOCAL} has recorded answers for {', '.join(APPS)} alone: "
            "give --chat-url and --chat-model, the chat endpoint that answers for your agent"
        )
    return _in_process(agent.model.provider, scenario, chat)


@asynccontextmanager
async def _in_process(dialect: str, scenario: Scenario | None, chat: ChatEndpoint | None) -> AsyncIterator[Connector]:
    put(Text("loading the recogniser and the voice"))
    async with free_speech(dialect, scenario, chat) as session:
        yield MemoryConnector(session)


@asynccontextmanager
async def _behind(scenario: Scenario | None, own: Own) -> AsyncIterator[Behind]:
    """What is behind the agent: the stand-in world of a demo's scenario, or what the options name."""
    if scenario:
        world = replace(scenario.behind, earlier=None)
        async with open_backend(world, seed=1) as backend:
            yield Behind(backend.ledger, backend.deps, world.party, backend.settle)
        return
    deps = make_deps(own.deps) if own.deps else None
    if not own.providers:
        yield Behind(None, deps, own.party, _nothing)
        return
    store = SQLiteStore(own.db) if own.db else MemoryStore()
    async with Ledger(store, [load_provider(each) for each in own.providers]) as ledger:
        yield Behind(ledger, deps, own.party, _nothing)


async def _nothing() -> None:
    """There is nothing to wait for: what is under way is in the ledger."""
