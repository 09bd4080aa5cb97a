"""Whole calls on a server that is taken for another's, judged by the wire and by the server's own book."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from callwright.cli.show import believed_words, heard_words
from callwright.errors import ConnectionFailed, UsageError
from callwright.ids import ItemId
from callwright.measure.batch import RunResult, summarise, unshown_reason, went_as_expected
from callwright.measure.course import WordFate, course_of
from callwright.measure.export import export_call
from callwright.measure.figures import METRICS, CallFigures, figures_of, measure_call
from callwright.measure.hearing import hear_call
from callwright.measure.metric import Elsewhere as Rests
from callwright.measure.metric import Lack
from callwright.measure.report.page import Assets, Shown, call_page
from callwright.measure.verdict import judge
from callwright.runtime.connect import connector
from callwright.runtime.endpoint import Endpoint
from callwright.sim.agents import tools_of
from callwright.sim.elsewhere.book import Elsewhere
from callwright.sim.live import take_elsewhere
from callwright.sim.models import AgentSaid, HistoryItem, SystemNote, ToolAnswered
from callwright.sim.record import CallRecord
from callwright.sim.scenario import Scenario, load_scenario
from callwright.sim.server import MemoryConnector, ServerSession
from callwright.sim.server.websocket import RealtimeServer
from callwright.sim.sessions import Sessions
from callwright.sim.vloop import run_virtual
from callwright.sim.world import CLIENTS, OURS, Options, make_session, take_call, take_call_at
from callwright.wire.profiles import POLYAI, PROFILES

APPS = Path(str(resources.files("callwright.apps")))
SHORT = """
scenario: short
about: the caller says that that is all, and hangs up over the goodbye
agent: callwright.apps.hotel:desk
line: {{kind: phone}}
model: {{rules: {rules}}}
expect: {{max: {{starts_over: 0, pickup_lost_ms: 0}}, heard: [goodbye]}}
caller:
  - {{when: pickup + 100 ms, says: thats-all}}
  - {{when: end_call.holding + 500 ms, does: hang_up}}
"""


@dataclass(frozen=True)
class Both:
    """One call, by the wire and by the server's own book."""

    wire: CallRecord
    book: CallRecord
    scenario: Scenario

    @property
    def figures(self) -> tuple[CallFigures, CallFigures]:
        return measure_call(self.wire, self.scenario.lines), measure_call(self.book, self.scenario.lines)


def scenario(name: str) -> Scenario:
    (path,) = APPS.glob(f"*/scenarios/{name}.yaml")
    return load_scenario(path, tools_of, METRICS, CLIENTS)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    path = tmp_path_factory.mktemp("calls") / "short.yaml"
    path.write_text(SHORT.format(rules=APPS / "hotel/hotel.model.yaml"), "utf-8")
    return load_scenario(path, tools_of, METRICS, CLIENTS)


@cache
def played(
    name: str,
    dialect: str = "polyai",
    client: str = OURS,
    *,
    drops_at_ms: int | None = None,
    audit: bool = False,
    voice: str | None = None,
    **server: int,
) -> Both:
    """A call in virtual time: whatever it is judged by went over the wire."""
    call, options = scenario(name), Options(dialect=dialect, audit=audit, voice=voice)
    if drops_at_ms is not None:
        call = replace(call, connection=replace(call.connection, drops_at_ms=(drops_at_ms,)))
    sessions: list[Sessions] = []

    def serve(_place: object) -> Elsewhere:
        settings = replace(options, server=server)
        sessions.append(Sessions(lambda rng: make_session(call, 3, settings, rng=rng), 3))
        return Elsewhere(MemoryConnector(sessions[-1].next), PROFILES[dialect], tools_of(call.agent))

    wire = run_virtual(take_call_at(call, 3, client, options, serve))
    book = sessions[-1]
    return Both(
        wire,
        replace(
            wire,
            history=book.history,
            spoken=book.spoken,
            truncations=book.truncations,
            confirmations=book.confirmations,
            first_audio=book.first_audio,
            unknown=(),
        ),
        call,
    )


def named(item: HistoryItem) -> HistoryItem:
    """An item without the name that the server gave to one of the client's, which may come too late to be read."""
    return replace(item, item_id=ItemId("")) if isinstance(item, (ToolAnswered, SystemNote)) else item


SEVERAL = [
    ("check-in", "polyai", OURS),
    ("check-in", "openai", OURS),
    ("talk-over", "polyai", "naive"),
    ("talk-over", "plain", OURS),
    ("wrong-card", "polyai", OURS),
    ("wrong-card", "polyai", "by-call-id"),
    ("hold", "polyai", OURS),
]


@pytest.mark.parametrize("call", SEVERAL, ids=" ".join)
def test_the_wire_shows_the_history_that_the_server_has(call: tuple[str, str, str]) -> None:
    both = played(*call)
    both_sides = (both.wire.history, both.book.history)
    mine, its = ([named(item) for item in side if item.item_id not in both.wire.unknown] for side in both_sides)
    assert mine == its
    cut = [item.item_id for item in both.book.history if isinstance(item, AgentSaid) and item.is_cut]
    assert set(both.wire.unknown) <= set(cut)
    assert [item.item_id for item in both.wire.spoken] == [item.item_id for item in both.book.spoken]
    assert [item.tool for item in both.wire.spoken] == [item.tool for item in both.book.spoken]
    mine_cut, its_cut = (
        [(cut.item_id, cut.audio_end_ms, cut.is_refused) for cut in each.truncations] for each in (both.wire, both.book)
    )
    assert mine_cut == its_cut


@pytest.mark.parametrize("call", SEVERAL, ids=" ".join)
def test_what_rests_on_no_estimate_is_the_same_by_the_wire_and_by_the_server_s_book(call: tuple[str, str, str]) -> None:
    wire, book = played(*call).figures
    exact = [name for name, metric in METRICS.items() if metric.elsewhere in (Rests.SAME, Rests.WIRE)]
    near = ("goodbye_played_ms", "heard_ms", "heard_error_ms", "yield_after_confirmation_ms")
    for name in exact:
        mine, its = wire.values.get(name, ()), book.values.get(name, ())
        assert mine == pytest.approx(its, abs=5 if name in near else 0), name
    assert (wire.void, wire.effects, wire.ended_by) == (book.void, book.effects, book.ended_by)


def test_the_call_is_the_same_on_a_server_that_is_only_listened_to() -> None:
    both = played("check-in")
    call = both.scenario
    sessions = Sessions(lambda rng: make_session(call, 3, Options(), rng=rng), 3)

    @asynccontextmanager
    async def reach(*_: object) -> AsyncIterator[MemoryConnector]:
        yield MemoryConnector(sessions.next)

    assert run_virtual(take_call(call, 3, OURS, Options(dialect="polyai"), reach)).trace == both.wire.trace


def test_where_words_lie_is_estimated_and_those_near_a_cut_are_held_against_nobody() -> None:
    """The naive client takes all that was written for heard, and ours has one word less than was."""
    for client, claimed, beyond in ((OURS, 0, 0), ("naive", 50, 40)):
        wire, book = played("check-in", client=client).figures
        truth = sum(book.values["unheard_words_in_transcript"])
        assert claimed <= truth
        assert beyond <= sum(wire.values["unheard_words_in_transcript"]) <= truth
    assert "unheard_words_in_transcript" in wire.estimated
    assert "heard_error_ms" not in wire.estimated
    assert book.estimated == ()


def test_words_in_doubt_are_shown_as_such_and_nobody_is_blamed_for_them() -> None:
    """What the figures hold against nobody the words beside each other must not, either."""
    both = played("check-in")
    wire, book = both.figures
    (cut,) = (reply for reply in wire.replies if reply.was_cut)
    (truth,) = (reply for reply in book.replies if reply.was_cut)
    assert cut.partial is None
    assert truth.in_doubt == ""
    assert f"{cut.heard} {cut.in_doubt}".startswith(f"{truth.heard} {truth.partial}")
    assert heard_words(cut).plain == f"{cut.heard} ({cut.in_doubt}?) //"
    assert sum(wire.values["unheard_words_in_transcript"]) == 0
    assert "[" not in believed_words(cut).plain
    spoken = course_of(hear_call(both.wire, both.scenario.lines)).spoken
    doubted = [word.text for reply in spoken for word in reply.words if word.fate is WordFate.DOUBTED]
    assert doubted == cut.in_doubt.split()
    assert WordFate.BELIEVED not in {word.fate for reply in spoken for word in reply.words}


def test_a_reply_that_was_heard_to_its_end_was_heard_whole() -> None:
    wire, book = played("wrong-card").figures
    whole = [reply for reply in book.replies if not reply.was_cut]
    assert len(whole) == 3
    mine = {reply.item_id: reply.heard for reply in wire.replies}
    assert [mine[reply.item_id] for reply in whole] == [reply.written for reply in whole]
    assert wire.values["untold_at_hangup"] == book.values["untold_at_hangup"]
    assert wire.values["false_claims_heard"] == book.values["false_claims_heard"]


def test_what_only_the_server_knows_is_not_judged_and_the_reason_is_told() -> None:
    wire, book = played("pickup").figures
    assert "pickup_lost_words" in book.values
    assert "pickup_lost_words" not in wire.values
    verdict = judge(wire, scenario("pickup").expect)
    assert verdict.failed == ()
    assert dict(verdict.not_judged) == {
        "pickup_lost_words": "what a server that is not ours read of the caller is not known",
        "pickup_lost_ms": "what a server that is not ours read of the caller is not known",
        "farewells_repeated": "what a server that is not ours says is no recorded line",
        "heard": "what a server that is not ours says is no recorded line",
    }
    assert not {name for name, _ in verdict.not_judged} & set(verdict.passed)


def test_whether_a_sentence_was_heard_that_ends_near_a_cut_is_not_judged() -> None:
    """Its own echo cuts the naive client off in the middle of the notice, so near its end that either could be."""
    wire, book = played("speakers", "openai", "naive").figures
    assert "ai_notice_heard" in book.values
    assert "ai_notice_heard" not in wire.values
    assert wire.unjudged["ai_notice_heard"] == Lack.ENDS.value


def test_a_server_that_gives_cut_replies_no_text_is_not_held_to_its_history() -> None:
    wire, book = played("check-in", "openai").figures
    assert "unheard_words_in_history" in book.values
    reason = "this server does not tell what it holds of a reply that was cut"
    assert wire.unjudged["unheard_words_in_history"] == reason


def test_a_hand_over_to_a_new_session_is_one_conversation() -> None:
    both = played("check-in", longest_session_ms=20_000)
    openings = [row for row in both.wire.trace.splitlines() if b'"Connect"' in row]
    assert len(openings) > 1
    mine, its = both.wire.history, both.book.history
    assert [type(item) for item in mine] == [type(item) for item in its]
    assert len(mine) == len({item.item_id for item in mine})


def test_a_connection_that_breaks_for_the_client_is_followed_by_another_session_of_the_same_call() -> None:
    both = played("check-in", drops_at_ms=8_000)
    first, *others = both.wire.spoken
    assert first.streamed_ms < first.audio_ms
    assert others
    assert [item.item_id for item in both.wire.spoken] == [item.item_id for item in both.book.spoken]
    assert [named(item) for item in both.wire.history] == [named(item) for item in both.book.history]


def test_a_server_that_ends_the_call_in_the_middle_leaves_a_record_of_what_was() -> None:
    both = played("check-in", client="naive", longest_session_ms=8_000)
    assert both.wire.ended_by == "model"
    assert "4410" in both.wire.ended_because
    (spoken,) = both.wire.spoken
    assert 0 < spoken.streamed_ms < spoken.audio_ms
    assert both.wire.unknown[0] == spoken.item_id
    wire, book = both.figures
    assert (wire.void, wire.values["heard_ms"]) == (book.void, book.values["heard_ms"])


def test_an_audit_asks_on_such_a_server_too() -> None:
    both = played("booking", audit=True)
    assert both.wire.tool_calls_kept
    assert all(both.wire.tool_calls_kept)


def test_such_a_call_is_shown_and_handed_on_like_any_other() -> None:
    both = played("check-in")
    heard = hear_call(both.wire, both.scenario.lines)
    figures = figures_of(heard)
    run = RunResult(3, "0" * 64, figures, judge(figures, both.scenario.expect))
    page = call_page([Shown(heard, run, "", (), "", None, is_as_wanted=True)], Assets("", ""))
    assert "heard: what a server that is not ours says is no recorded line" in page
    assert "unheard_words_in_history, unheard_words_in_transcript, heard_words_missing" in page
    words = json.loads(export_call(heard, "")["output.json"])["chunks"]
    times = [chunk["timestamp"] for chunk in words]
    assert times == sorted(times)
    told = summarise("check-in", OURS, "polyai", {}, {}, 3, [run], ("heard", "starts_over"), ("recaps",))
    assert list(told["not_judged"]) == [name for name, _ in run.verdict.not_judged]
    assert "heard_words_missing" in told["estimated"]
    assert went_as_expected([run], ("heard",))
    assert unshown_reason("check-in", [run, run], ("recaps",)) is None


@pytest.mark.parametrize("call", [("wrong-card", "polyai"), ("talk-over", "openai")], ids=" ".join)
def test_what_a_client_says_by_its_own_voice_is_judged_like_what_a_server_says(call: tuple[str, str]) -> None:
    both = played(*call, voice="own")
    assert [(item.item_id, item.tool) for item in both.wire.spoken] == [
        (item.item_id, item.tool) for item in both.book.spoken
    ]
    wire, book = both.figures
    for name in ("heard_ms", "unheard_words_in_transcript", "unheard_words_in_history", "yield_latency_ms", "goodbyes"):
        assert wire.values[name] == pytest.approx(book.values[name], abs=5), name
    if call[1] == "polyai":
        assert wire.values["heard_error_ms"] == pytest.approx(book.values["heard_error_ms"], abs=5)
    else:
        assert wire.unjudged["heard_error_ms"] == Lack.LENGTHS.value
    assert wire.void is None


# --- over a socket


async def on_a_socket(
    call: Scenario, client: str = OURS, *, key: str = "k", sessions_max: int | None = None, **server: int
) -> CallRecord:
    options, chances = Options(server=server), random.Random(5)

    def session() -> ServerSession:
        return make_session(call, 1, options, rng=chances)

    async with RealtimeServer(session, key="k", sessions_max=sessions_max, drain_ms=0) as served:
        return await take_elsewhere(call, 1, connector(Endpoint(served.url, key)), POLYAI, client=client)


def test_a_call_by_the_wall_clock_on_an_address_is_played_and_measured(short: Scenario) -> None:
    record = asyncio.run(on_a_socket(short))
    assert (record.error, record.ended_by, record.is_elsewhere) == (None, "caller", True)
    assert [spoken.tool for spoken in record.spoken] == ["end_call"]
    verdict = judge(measure_call(record, short.lines), short.expect)
    assert (verdict.passed, verdict.failed) == (("starts_over",), ())
    assert [name for name, _ in verdict.not_judged] == ["pickup_lost_ms", "heard"]


@pytest.mark.parametrize(("status", "settings"), [(401, {"key": "wrong"}), (429, {"sessions_max": 0})])
def test_a_refused_handshake_is_told_by_its_status(status: int, settings: dict[str, Any], short: Scenario) -> None:
    for client in (OURS, "naive"):
        with pytest.raises(ConnectionFailed, match=f"HTTP {status}") as refused:
            asyncio.run(on_a_socket(short, client, **settings))
        assert refused.value.is_final is (status == 401)


def test_settings_of_the_local_server_are_refused(short: Scenario) -> None:
    nowhere = connector(Endpoint("ws://127.0.0.1:1"))
    with pytest.raises(UsageError, match="leave out answer_ms"):
        asyncio.run(take_elsewhere(short, 1, nowhere, POLYAI, options=Options(server={"answer_ms": 5})))
