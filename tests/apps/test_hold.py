"""A call that waits on hold, from its first ring to the answer: what the far end heard, and what clients did."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from callwright.core.giveup import PARTING_MS
from callwright.ids import Ms
from callwright.measure.figures import figures_of
from callwright.measure.hearing import HeardCall, hear_call
from callwright.measure.hold import hold_summary
from callwright.sim.models import ToolRequested
from callwright.sim.scenario import Scenario, load_scenario
from callwright.sim.world import OURS, Options, play

SHORT_S = 8
"""Music enough for two halves with an announcement between."""


@cache
def scenario(name: str) -> Scenario:
    with as_file(files("callwright.apps.pharmacy") / "scenarios" / f"{name}.yaml") as path:
        return load_scenario(path)


@cache
def call(
    name: str,
    client: str = OURS,
    hold_s: int = SHORT_S,
    silence_ms: Ms = 300_000,
    max_hold_s: int | None = None,
) -> HeardCall:
    """One call; the server closes a connection on which it is sent nothing for so long."""
    options = Options(hold_s=hold_s, server={"longest_silence_ms": silence_ms}, max_hold_s=max_hold_s)
    return hear_call(play(scenario(name), 1, client=client, options=options), scenario(name).lines)


def value(heard: HeardCall, name: str) -> float:
    (only,) = figures_of(heard).values[name]
    return only


def called(heard: HeardCall, name: str) -> int:
    """How often the model called this tool."""
    return sum(isinstance(item, ToolRequested) and item.name == name for item in heard.record.history)


def rows(heard: HeardCall, kind: str) -> list[Ms]:
    """When the client's trace has an event or a command of this kind."""
    found = map(json.loads, heard.record.trace.splitlines())
    return [row[0] for row in found if isinstance(row, list) and row[2] == kind]


def test_c060_the_key_is_heard_alone_and_nothing_is_asked_for_behind_it() -> None:
    """It goes out about a second after the menu; no reply is asked for until a person speaks, and nothing is said."""
    heard = call("hold")
    assert heard.far is not None
    assert heard.far.keys == "2"
    assert value(heard, "keys_not_alone") == 0
    assert 900 <= value(heard, "key_after_ms") <= 1_400
    assert value(heard, "spoke_on_hold") == 0
    first_ms = heard.far.person[0].start_ms
    assert len(rows(heard, "PressKeys")) == 1
    assert [at_ms for at_ms in rows(heard, "RequestReply") if at_ms < first_ms] == []


def test_c061_no_key_is_only_claimed() -> None:
    assert value(call("hold"), "keys_only_claimed") == 0


def test_c068_a_person_is_answered_behind_the_greeting_and_told_at_once_who_calls() -> None:
    heard = call("hold")
    assert 0 < value(heard, "answered_after_ms") <= 1_200
    assert value(heard, "ai_notice_heard") == 1
    assert value(heard, "introduced_after_ms") <= 3_000
    assert value(heard, "response_rate") == 1


def test_the_first_words_to_a_person_say_that_a_machine_calls() -> None:
    """Whatever was pressed and waited for before, and in one reply with the reason of the call."""
    heard = call("hold")
    assert heard.far is not None
    first, *_ = heard.replies
    assert first.heard.startswith("Hello, this is an automated assistant calling for Jane Porter.")
    assert (first.played.first_audible_ms or 0) > heard.far.person[0].end_ms
    assert heard.record.anomalies == ()


@pytest.mark.parametrize("name", ["hold", "busy", "no-answer"])
def test_keys_and_silence_owe_nobody_a_notice(name: str) -> None:
    """A call that ends before a person is there has told nobody anything, and nothing of it is out of order."""
    alone = replace(scenario(name), line=replace(scenario(name).line, close_at_ms=20_000))
    record = play(alone, 1, options=Options(hold_s=60))
    assert record.far is not None
    assert not record.far.reached_person
    assert "".join(heard.key for heard in record.far.keys) == ("2" if name == "hold" else "")
    assert (record.anomalies, record.violations, record.spoken) == ((), (), ())


def test_what_is_said_to_a_person_who_has_put_the_agent_on_hold_again_is_one_word() -> None:
    heard = call("hold")
    assert heard.far is not None
    (again,) = [phase for phase in heard.far.phases if phase.name == "on hold again"]
    before = [reply for reply in heard.replies if (reply.played.first_audible_ms or 0) < again.start_ms]
    assert before[-1].heard == "Sure."


def test_the_summary_tells_the_waiting_as_it_was() -> None:
    told = hold_summary(call("hold"))
    assert told is not None
    assert told["result"] == "Thanks for waiting. It will be ready any time after two today."
    assert (told["keys_pressed"], told["spoke_on_hold"]) == ("2", [])
    assert told["cost_usd"] == pytest.approx(told["seconds_connected"] / 60 * 0.02, abs=1e-6)
    names = [phase["name"] for phase in told["phases"]]
    assert names == ["ringing", "menu", "queue", "person", "on hold again", "person"]
    assert told["client"]["keys_pressed"] == "2"
    assert told["client"]["on_hold_ms"] == pytest.approx(told["seconds_on_hold"] * 1000, abs=500)


def test_nobody_is_waited_for_longer_than_one_may_and_a_goodbye_says_so() -> None:
    """The music of a minute is given up after 10 s, with a goodbye that is heard whole, and the result says why."""
    heard = call("max-hold", hold_s=60, max_hold_s=10)
    told = hold_summary(heard)
    assert told is not None
    assert heard.far is not None
    assert (told["result"], told["ended_by"], told["answered_after_ms"]) == ("nobody answered in time", "agent", None)
    assert len(heard.far.spoken_on_hold) == 1
    assert value(heard, "goodbye_played") == 1
    waited_ms = heard.far.spoken_on_hold[0].start_ms - heard.far.book.keys[0].started_ms
    assert 10_000 < waited_ms < 12_000


def test_a_model_that_waits_on_all_the_same_is_hung_up_on_15_s_later(tmp_path: Path) -> None:
    """It says something to the music, and does not call the tool that ends the call."""
    whole = scenario("max-hold")
    rules = whole.rules.read_text("utf-8").replace("noted: [give up, cannot wait]", "noted: [no such note]")
    (tmp_path / "rules.yaml").write_text(rules, "utf-8")
    (tmp_path / "speech").symlink_to(whole.speech)
    deaf = replace(whole, rules=tmp_path / "rules.yaml")
    heard = hear_call(play(deaf, 1, options=Options(hold_s=60, max_hold_s=10)), deaf.lines)
    assert (heard.record.ended_by, heard.record.ended_because) == ("agent", "gave up after 10 s on hold")
    (asked_ms,) = rows(heard, "RequestReply")
    assert heard.record.ended_ms == pytest.approx(asked_ms + PARTING_MS, abs=20)
    assert called(heard, "end_call") == 0
    assert (heard.record.result, heard.record.settings["max_hold_s"]) == ("", 10)


def test_who_asks_for_a_reply_to_every_output_talks_to_the_queue() -> None:
    """The same call otherwise: the key is pressed, and the person is answered."""
    heard = call("hold", "talks-to-the-queue")
    assert value(heard, "spoke_on_hold") >= 1
    assert value(heard, "keys_pressed") == 1
    assert value(heard, "answered_after_ms") <= 1_200


def test_who_sends_nothing_of_music_is_closed_out_and_who_sends_all_of_it_is_not() -> None:
    """4408, which the live service sends after five minutes; 5 s here."""
    silent, sending = (call("hold", client, 20, 5_000) for client in ("stops-on-music", OURS))
    assert (silent.record.ended_by, "4408" in silent.record.ended_because) == ("model", True)
    assert "answered_after_ms" not in figures_of(silent).values
    assert sending.record.ended_by == "agent"


def test_c063_c065_a_greeting_in_parts_gets_one_message_whole_and_behind_the_beep() -> None:
    heard = call("voicemail-in-parts")
    assert called(heard, "leave_voicemail") == 1
    assert value(heard, "spoke_before_beep_ms") == 0
    assert value(heard, "message_share") == 1
    assert value(heard, "spoke_on_hold") == 0
    assert heard.record.ended_by == "agent"
