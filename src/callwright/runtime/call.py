"""One call, live: the pump between a line, a model's connection, the tools and the core.

Every message, report and tool end goes to the core with the loop's time, and what the core asks for is carried out
at once, in order, without waiting: what sends and plays here never blocks. One timer is armed at the core's next
deadline. Nothing in this file decides anything about the call.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from callwright.audio.formats import FRAME_MS, AudioFormat, Encoding, parse_format
from callwright.claims.cards import without_cards, without_spoken_cards
from callwright.core import commands as do
from callwright.core import events as on
from callwright.core.hold import HoldSummary
from callwright.core.plan import Keep, Untold
from callwright.core.ports import Connector, Line
from callwright.core.session import CallPlan, Can, Ending, Session
from callwright.core.transcript import Turn
from callwright.declare.agent import Agent
from callwright.declare.notices import Recording
from callwright.declare.tools import Deps
from callwright.errors import LineFailed, UsageError
from callwright.ids import ItemId, MarkId, Ms, ResponseId
from callwright.runtime.actions import Actions, check_actions
from callwright.runtime.clock import Clock
from callwright.runtime.connect import connect_to
from callwright.runtime.dispatcher import Ledger
from callwright.runtime.downlink import Downlink
from callwright.runtime.head import written_plan
from callwright.runtime.kept import Kept, notices_of
from callwright.runtime.keys import Keypad
from callwright.runtime.modelside import ModelSide, configuration, verbs
from callwright.runtime.problems import Whole, kind_and_place
from callwright.runtime.recorder import recorder_of
from callwright.runtime.tools import ToolRunner
from callwright.runtime.trace import Trace
from callwright.runtime.uplink import HOLD_MS, Uplink
from callwright.runtime.voicing import VoiceSide
from callwright.runtime.watch import SILENT_LINE_MS, FrameWatch, Loudness
from callwright.wire.profiles import Profile

_log = logging.getLogger(__name__)

HANG_UP_MS: Final[Ms] = 5_000
"""How long a line may take to end; the model's connection is closed after it."""
SESSION_MS_MIN: Final[Ms] = 60_000
"""For a shorter session nothing can be planned: a long reply takes half a minute."""
_SECOND_FRAMES = 1000 // FRAME_MS


@dataclass(frozen=True, slots=True)
class CallResult:
    """A finished call."""

    turns: tuple[Turn, ...]
    """Who said what: per reply what was heard, beside what was written."""
    ending: Ending
    trace: bytes
    """Everything that happened, as JSON Lines."""
    session_ready_ms: Ms | None
    """From the opening of the line to a session that hears the caller; None if it never came to that."""
    held_sent_ms: Ms
    """Caller audio that was held until then, and sent."""
    lost_ms: Ms
    """Caller audio that was held for too long, and dropped."""
    connected_ms: Ms
    """Length of the model's connection."""
    anomalies: tuple[str, ...]
    """What happened out of order and was survived."""
    unknown: Mapping[str, int]
    """What the server sent and is not known here, passed over and counted: event types, ``item TYPE``, and fields as
    ``EVENT TYPE: path.to.field``."""
    untold: tuple[Untold, ...] = ()
    """The operations whose outcome the caller did not hear; the ledger's outbox has them."""
    ai_notice_heard_ms: Ms | None = None
    """When the caller had heard that he talks to a machine; None if he never did, or no such notice is declared."""
    connection_micro_usd: int | None = None
    """What the connection costs, in millionths of a US dollar, without tokens; None where no price is known."""
    hold: HoldSummary | None = None
    """How it went through menus and queues; None for a call that neither waited nor pressed a key."""
    result: str = ""
    """What the model gave as ``result``, or as ``reason``, to the tool that ended the call; empty if it gave none."""
    dropped_ms: Ms = 0
    """Caller audio that the server dropped, because a turn was longer than it keeps."""
    sessions: int = 1
    """In how many sessions of the model's the caller was heard, one after the other."""
    words_kept: bool = True
    """Whether words of the call were being kept at its end; where not, turns and trace hold none of them."""


async def run(
    agent: Agent,
    line: Line,
    *,
    connector: Connector | None = None,
    ledger: Ledger | None = None,
    deps: Deps | None = None,
    party: str | None = None,
    can: Can | None = None,
    hold_ms: Ms = HOLD_MS,
    tools_wait: bool = False,
    max_hold_ms: Ms | None = None,
    record: Path | None = None,
    longest_session_ms: Ms | None = None,
    watch: Callable[[Call], object] | None = None,
) -> CallResult:
    """Take one call from the opening of the line to its end.

    ``connector`` reaches the model (None: that of ``connect_to`` for the agent's model), ``ledger`` keeps what the
    agent's actions do, and outlives the call; ``deps`` is handed to the tools, ``party`` says who the caller is.
    ``can`` limits what the model's server is asked to do (None: all that its dialect has). At most ``hold_ms`` of what
    the caller says before the session hears him is held for it; what came before that is lost, and counted.
    ``tools_wait`` keeps the output of an action back until its outcome is there, for at most ten seconds. Once the
    agent has waited on hold for ``max_hold_ms`` (None: it waits for as long as it takes), the model is asked to say so
    and end the call, and the line is ended if it does not. ``record`` is a WAV file to be written, far end left and
    agent right as heard, of what the agent's ``recording`` lets be kept. ``watch`` is handed the call when its line is
    open and it is about to connect: ``turns`` is its transcript so far, and ``hang_up`` ends it. A call that breaks off
    has an ``ending`` with ``is_failure``.

    A call may take longer than a session of the model's, which lasts ``longest_session_ms`` (None: as long as its
    provider says): before that is over the call goes on in a new one, and so it does when the connection breaks.

    Raises UsageError if the model does not take the line's format or has no key, if ``hold_ms`` is negative,
    ``max_hold_ms`` not positive or ``longest_session_ms`` below 60,000, if there is a file ``record`` already or no
    directory for it, or if the agent has actions and the ledger is missing or lacks one of their providers; LineFailed
    if the line cannot be opened, and ConnectionFailed if the model cannot be reached; the line is ended then. What a
    line or a connection raises while the call runs ends it, and is raised here.
    """
    connector = connector or connect_to(agent.model)
    recorder = None if record is None else recorder_of(line, record)
    line = recorder or line
    plan = plan_of(agent, line, can=can, max_hold_ms=max_hold_ms, longest_session_ms=longest_session_ms)
    call = Call(
        agent, line, plan, connector, ledger=ledger, deps=deps, party=party, hold_ms=hold_ms, tools_wait=tools_wait
    )
    if recorder:
        recorder.obey(call.trace.kept, call.note)
    async with recorder or nullcontext():
        await line.open(_LineSide(call))
        try:
            if watch:
                watch(call)
            call.opened()
            await call.ended
        finally:
            await call.close()
    return call.result()


class Call:
    """The pump of one call."""

    def __init__(
        self,
        agent: Agent,
        line: Line,
        plan: CallPlan,
        connector: Connector,
        *,
        ledger: Ledger | None = None,
        deps: object,
        party: str | None,
        hold_ms: Ms = HOLD_MS,
        tools_wait: bool = False,
    ) -> None:
        check_actions(agent.name, agent.tools, ledger)
        profile = agent.model.profile
        self.session = Session(plan)
        head = {"agent": agent.name, "model": profile.name, "plan": written_plan(plan)}
        self.trace = Trace(head, Kept(is_kept=plan.keep is Keep.EVERYTHING, notices=notices_of(plan)))
        self.uplink = Uplink(hold_ms)
        self.clock = Clock()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._down = Downlink(line, _output_format(agent))
        self.keypad = Keypad(line, self._down, handle=self.handle, note=self.note)
        self._voice = None if agent.voice is None else VoiceSide(self, agent.voice, agent.tools)
        configured = configuration(agent, line.input_format)
        self._model = ModelSide(self._voice or self, connector, profile, configured, line.input_format)
        joint = None
        if ledger is not None:
            joint = Actions(agent.tools, ledger, party, handle=self.handle, note=self.note, waits=tools_wait)
        self._tools = ToolRunner(
            agent.tools,
            deps=deps,
            party=party,
            finished=self.handle,
            note=self.note,
            actions=joint,
            keypad=self.keypad,
        )
        self._timer: asyncio.TimerHandle | None = None
        self._frames = FrameWatch(lambda: self.uplink.frames, lambda: self.handle(on.LineSilent(SILENT_LINE_MS)))
        self._played: tuple[ItemId, int, Ms] | None = None
        """The latest report of a pulled line, while it makes no difference."""
        self._inbox: deque[on.Event] = deque()
        """The event being handled, and those that it led to at once."""
        self._carry_out: Mapping[type, Callable[[Any], None]] = {
            **dict.fromkeys(get_args(do.Request), self._request),
            do.StopVoice: self._stop_voice,
            do.Connect: self._connect,
            do.OpenUplink: self._open_uplink,
            do.PlayAudio: lambda command: self._down.play(command.item_id, command.generation, command.samples),
            do.FinishItem: self._finish,
            do.SendMark: lambda command: self._down.mark(command.mark_id),
            do.ClearPlayout: self._clear,
            do.HoldReply: lambda _command: self._down.hold(),
            do.ReleaseReply: lambda _command: self._down.release(),
            **self.keypad.commands,
            do.WatchCaller: self._watch_caller,
            do.UnwatchCaller: self._unwatch_caller,
            do.StartTool: self._tools.start,
            **(joint.commands if joint else {}),
            do.KeepWords: lambda _command: self.trace.kept.begin(),
            do.DropWords: lambda _command: self.trace.drop(),
            do.StateRestored: lambda _command: None,
            do.NoteAnomaly: self._note,
            do.HangUp: self._over,
            do.CloseModel: self._over,
        }

    def opened(self) -> None:
        """The line carries audio both ways."""
        self._frames.start()
        if self._tools.actions:
            self._tools.actions.open()
        self.handle(on.LineOpened())

    def handle(self, event: on.Event) -> None:
        """Tell the core what happened, and carry out what it asks for."""
        is_busy = bool(self._inbox)
        if self._played is not None:
            self._inbox.append(on.LinePlayed(*self._played))
            self._played = None
        self._inbox.append(event)
        if is_busy:
            return  # a command being carried out led to this event: its turn comes after the commands before it
        now_ms = self.clock.now_ms()
        try:
            while self._inbox:
                self._handle(self._inbox[0], now_ms)
                self._inbox.popleft()
            self.uplink.kept_ms = self.session.renewal.kept_ms
            self._arm(now_ms)
        except Exception as problem:  # a mistake of this side, or of a line: the call ends by it, instead of going deaf
            self._inbox.clear()
            self.trace.raised(now_ms, problem)
            self.fail(problem)

    def _handle(self, event: on.Event, now_ms: Ms) -> None:
        self.trace.happened(now_ms, event)
        self.session.handle(event, now_ms)
        for command in self.session.commands():
            self.trace.done(now_ms, command)
            self._carry_out[type(command)](command)

    def played(self, item_id: ItemId, generation: int, played_ms: Ms) -> None:
        """Take a report of a pulled line: the core is told at an item's end, or as soon as anything else happens."""
        if self.keypad.played(item_id, played_ms):
            return
        waiting = self._played
        if self.session.playout.is_end(item_id, generation, played_ms) or (
            waiting is not None and waiting[:2] != (item_id, generation)
        ):
            self.handle(on.LinePlayed(item_id, generation, played_ms))
        else:
            self._played = (item_id, generation, played_ms)

    def audio(self, response_id: ResponseId, item_id: ItemId, audio: bytes) -> None:
        """Take a piece of reply audio: its length goes to the core, its samples wait for the core's word."""
        self.handle(on.AudioReceived(response_id, item_id, self._down.take(item_id, audio)))

    def text(self, response_id: ResponseId, item_id: ItemId, piece: str) -> None:
        """A model that speaks writes, too: nobody says that."""

    def frame(self, frame: bytes) -> None:
        """Take 20 ms of the caller's audio."""
        if self.uplink.frame(frame) and self.uplink.loudness is not None:
            self.handle(on.CallerLoud(self.uplink.loudness.is_loud))
        if self.uplink.frames % _SECOND_FRAMES == 0:
            self.trace.audio(self.clock.now_ms(), sent_ms=self.uplink.sent_ms, held_ms=self.uplink.held_ms)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The transcript so far, as it may be told."""
        return self.trace.kept.turns(_without_cards(self.session.transcript()))

    def hang_up(self, reason: str) -> None:
        """End the call from the agent's side, at once; idempotent."""
        if self.session.ending is None:
            self.handle(on.HangUpRequested(reason))

    async def close(self) -> None:
        """End whatever is still open: line, model, tools, the way to the ledger. Idempotent."""
        self.hang_up("stopped")
        async with AsyncExitStack() as ends:  # the last one first, and each whatever becomes of the others
            if self._tools.actions:
                ends.push_async_callback(self._tools.actions.close)
            ends.push_async_callback(self._tools.close)
            ends.push_async_callback(self.keypad.close)
            if self._voice:
                ends.push_async_callback(self._voice.close)
            ends.push_async_callback(self._model.close)
            ends.push_async_callback(self._hang_up)
        self._frames.stop()
        if self._timer:
            self._timer.cancel()

    async def _hang_up(self) -> None:
        try:
            async with asyncio.timeout(HANG_UP_MS / 1000):
                await self._down.line.hang_up()
        except TimeoutError:
            raise LineFailed(f"the line did not end within {HANG_UP_MS // 1000} s") from None

    def result(self) -> CallResult:
        """What is known of the call once it has ended. Raises ConnectionFailed if no session ever came about."""
        assert self.session.ending is not None
        if self._model.failure is not None and self.session.ending.by == "model" and not self._sessions():
            raise self._model.failure
        return CallResult(
            turns=self.turns,
            ending=self.trace.kept.ending(self.session.ending),
            trace=self.trace.lines(),
            session_ready_ms=self.uplink.opened_at_ms,
            held_sent_ms=self.uplink.held_sent_ms,
            lost_ms=self.uplink.lost_ms,
            connected_ms=self._model.connected_ms(),
            untold=self.session.untold(),
            anomalies=self.trace.anomalies(),
            unknown=self._model.unknown(),
            connection_micro_usd=self._model.micro_usd(),
            hold=self.session.on_hold(),
            result=_result(self.session.leave.end_call) if self.trace.kept.is_kept else "",
            ai_notice_heard_ms=self.session.keeping.ai_notice.heard_ms,
            dropped_ms=self.session.renewal.long_turns.dropped_ms,
            sessions=self._sessions(),
            words_kept=self.trace.kept.is_kept,
        )

    def _sessions(self) -> int:
        return self.session.renewal.handover.sessions

    def _open_uplink(self, _command: do.OpenUplink) -> None:
        lost_ms, held_ms = self.uplink.lost_ms - self.uplink.lost_before_ms, self.uplink.held_ms
        is_first = self.uplink.opened_at_ms is None
        if lost_ms:
            which = "first words" if is_first else "words"
            self.note(f"{lost_ms} ms of the caller's {which} were lost: they were held for too long")
        if lost_ms and is_first:
            self.handle(on.FirstWordsLost(lost_ms))
        self.uplink.open(self._model, self.clock.now_ms())
        if not is_first:
            self.handle(on.UplinkResumed(held_ms, lost_ms))
        if self._tools.actions:
            self._tools.actions.ready()

    def _request(self, command: do.Request) -> None:
        if self._voice is None:
            self._model.request(command)
        elif self._voice.concerns_server(command):
            self._model.request(command, self._voice.words_for(command))

    def _clear(self, _command: do.ClearPlayout) -> None:
        self._down.clear()
        if self._voice:
            self._voice.cut()

    def _stop_voice(self, command: do.StopVoice) -> None:
        if self._voice:
            self._voice.stop(command)

    def _connect(self, command: do.Connect) -> None:
        self.uplink.hold(command.resend_ms)
        self._model.connect(command)

    def _finish(self, command: do.FinishItem) -> None:
        if self._down.finish(command.item_id, command.generation):
            self.note(f"item {command.item_id} ended in half a sample, which was dropped")

    def _note(self, command: do.NoteAnomaly) -> None:
        _log.debug("%s", without_cards(command.text))  # it may quote the server, and the server may quote the caller

    def note(self, what: str, quoted: str = "") -> None:
        """Put something out of order on record that the core does not see, and what the server said of it."""
        command = do.NoteAnomaly(what, quoted)
        self.trace.noted(self.clock.now_ms(), command)
        self._note(command)

    def _watch_caller(self, _command: do.WatchCaller) -> None:
        self.uplink.loudness = Loudness(self._down.line.input_format)

    def _unwatch_caller(self, _command: do.UnwatchCaller) -> None:
        self.uplink.loudness = None

    def _over(self, _command: do.HangUp | do.CloseModel) -> None:
        self.uplink.shut()
        self.keypad.shut()
        if not self.ended.done():
            self.ended.set_result(None)

    def fail(self, problem: BaseException) -> None:
        """End the call by a mistake, or by what a line or a connection raised."""
        if self.ended.done():
            _log.error("after the end of the call: %s", kind_and_place(problem))
            _log.debug("after the end of the call\n%s", Whole(problem))
        else:
            self.ended.set_exception(problem)

    def _arm(self, now_ms: Ms) -> None:
        deadline_ms = self.session.next_deadline_ms()
        if self._timer and not self._timer.cancelled():
            if deadline_ms is not None and self.clock.at(deadline_ms) == self._timer.when():
                return
            self._timer.cancel()
            self._timer = None
        if deadline_ms is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(self.clock.at(max(deadline_ms, now_ms)), self._fired)

    def _fired(self) -> None:
        self._timer = None
        self.handle(on.TimerFired())


class _LineSide:
    """The line's end of a call."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.on_frame = call.frame
        self.on_played = call.played

    def on_mark(self, mark_id: MarkId) -> None:
        if not self._call.keypad.returned(mark_id):
            self._call.handle(on.MarkReturned(mark_id))

    def on_closed(self, by: str, reason: str) -> None:
        self._call.handle(on.LineClosed(by, reason))


def _session_limit(profile: Profile, longest_ms: Ms | None) -> Ms | None:
    if longest_ms is not None and longest_ms < SESSION_MS_MIN:
        raise UsageError(f"longest_session_ms is {longest_ms}; it is at least {SESSION_MS_MIN} ms")
    return profile.longest_session_ms if longest_ms is None else longest_ms


def _without_cards(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """The transcript without card numbers, also those that go on from turn to turn."""
    heard = without_spoken_cards([turn.heard for turn in turns])
    written = without_spoken_cards([turn.written for turn in turns])
    return tuple(
        replace(turn, heard=said, written=wrote) for turn, said, wrote in zip(turns, heard, written, strict=True)
    )


def plan_of(
    agent: Agent,
    line: Line,
    *,
    can: Can | None = None,
    max_hold_ms: Ms | None = None,
    longest_session_ms: Ms | None = None,
) -> CallPlan:
    """What is fixed of a call of this agent over this line; ``can`` limits what the server is asked to do.

    Raises UsageError if ``max_hold_ms`` is not positive, or ``longest_session_ms`` too short.
    """
    if max_hold_ms is not None and max_hold_ms <= 0:
        raise UsageError(f"max_hold_ms is {max_hold_ms}; give how long to wait on hold at most, or None for no limit")
    profile = agent.model.profile
    possible = verbs(profile, own_voice=agent.voice is not None)
    return CallPlan(
        output_rate_hz=_output_format(agent).rate_hz,
        ai_notice=agent.ai_notice or "",
        recording_notice=agent.recording_notice or "",
        keep=_keep(agent, line),
        reports=line.reports,
        can=possible if can is None else can & possible,
        tools={name: tool.after for name, tool in agent.tools.items()},
        latency_ms=line.latency_ms,
        actions=frozenset(name for name, tool in agent.tools.items() if tool.action),
        max_hold_ms=max_hold_ms,
        opens_after_ms=agent.opens_after_ms,
        longest_session_ms=_session_limit(profile, longest_session_ms),
        longest_turn_ms=profile.longest_turn_ms,
        own_voice=agent.voice is not None,
    )


def _output_format(agent: Agent) -> AudioFormat:
    """What replies come in."""
    if agent.voice is not None:
        return AudioFormat(Encoding.PCM16, agent.voice.rate_hz)
    return parse_format(msgspec.to_builtins(agent.model.profile.output_format))


def _result(end_call: on.ToolCalled | None) -> str:
    """What the model gave as the result of the call."""
    try:
        given = msgspec.json.decode(end_call.arguments, type=_Result) if end_call else _Result()
    except msgspec.MsgspecError:
        return ""
    return without_cards(given.result or given.reason)


class _Result(msgspec.Struct):
    result: str = ""
    reason: str = ""


def _keep(agent: Agent, line: Line) -> Keep:
    """What of a call over this line may be kept. Nobody is asked where no person is at its far end."""
    if not getattr(line, "reaches_person", True) or agent.recording == Recording.NOT_REQUIRED:
        return Keep.EVERYTHING
    return Keep.AFTER_NOTICE if agent.recording == Recording.CONSENTED else Keep.NOTHING
