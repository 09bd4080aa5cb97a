"""A program of its own takes a call, and is judged by what was heard and what went over the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from tests.sim.clients import OURS, doing, shown

from callwright.errors import UsageError
from callwright.measure.course import course_of
from callwright.measure.figures import METRICS, CallFigures, figures_of
from callwright.measure.hearing import HeardCall, hear_call
from callwright.measure.verdict import judge
from callwright.sim.agents import tools_of
from callwright.sim.program.call import TakenCall, addresses, take_program
from callwright.sim.program.process import Program, check_scenario
from callwright.sim.scenario import Scenario, load_scenario
from callwright.sim.world import Options
from callwright.wire.profiles import OPENAI, POLYAI

APPS = Path(str(resources.files("callwright.apps")))
ASKS = """
scenario: short
about: the caller speaks from the first frame, and talks over the goodbye
agent: callwright.apps.hotel:desk
line: {{kind: phone}}
model: {{rules: {apps}/hotel/hotel.model.yaml}}
server: {{ready_after_ms: [600, 600, 600]}}
expect:
  max:
    unheard_words_in_history: 1 # a busy machine is late
    unheard_words_in_transcript: 1
    pickup_lost_words: 0
    late_talk_over: 0
caller:
  - {{when: pickup + 0 ms, says: thats-all}}
  - {{when: end_call.holding + 500 ms, says: ask-wifi}}
  - {{when: reply.start + 400 ms, does: hang_up}}
"""
LEAVES = """
scenario: leaves
about: the caller hangs up before anything was said
agent: callwright.apps.refunds:desk
party: customer:81
provider: {{settles_ms: 100}}
line: {{kind: phone}}
model: {{rules: {apps}/refunds/refunds.model.yaml}}
expect: {{effects: ["refund order:4417 32.00 USD card:8812"]}}
caller:
  - {{when: pickup + 700 ms, does: hang_up}}
"""
REFUNDS = (
    'asked = {"charge": "order:4417", "amount": 3200, "currency": "USD", "destination": "card:8812"}',
    'url = os.environ["CALLWRIGHT_PROVIDER_URL"] + "/refunds"',
    'request = urllib.request.Request(url, json.dumps(asked).encode(), {"Idempotency-Key": "k1"})',
    "await asyncio.to_thread(urllib.request.urlopen, request)",
)
LISTENS = (
    "async for message in line:",
    "    if isinstance(message, str) and json.loads(message)['type'] == 'end':",
    "        break",
)


def scenario(directory: Path, text: str) -> Scenario:
    path = directory / f"{text.split()[1]}.yaml"
    path.write_text(text.format(apps=APPS), "utf-8")
    return load_scenario(path, tools_of, METRICS)


def together(*calls: Coroutine[Any, Any, TakenCall]) -> list[TakenCall]:
    """Take calls at the same time."""

    async def all_of_them() -> list[TakenCall]:
        return list(await asyncio.gather(*calls))

    return asyncio.run(all_of_them())


def measured(taken: TakenCall, played: Scenario) -> tuple[HeardCall, CallFigures]:
    heard = hear_call(taken.record, played.lines)
    return heard, figures_of(heard)


def test_a_naive_program_fails_as_the_naive_baseline_does_and_an_agent_of_ours_passes(tmp_path: Path) -> None:
    played = scenario(tmp_path, ASKS)
    naive, ours = together(
        take_program(played, 1, Program(shown(tmp_path))),
        take_program(played, 1, Program(f"{OURS} callwright.apps.hotel:desk")),
    )
    assert naive.output == b""
    heard, figures = measured(naive, played)
    assert figures.void is None
    failed = [failure.name for failure in judge(figures, played.expect).failed]
    assert failed == ["pickup_lost_words", "late_talk_over"]
    heard, figures = measured(ours, played)
    verdict = judge(figures, played.expect)
    assert (figures.void, verdict.failed, verdict.not_judged) == (None, (), ())
    course = course_of(heard)
    assert [tool.name for tool in course.tools] == ["end_call"]
    assert course.turns
    assert heard.record.session_ready_ms


def test_what_a_program_does_not_tell_is_not_judged_and_named(tmp_path: Path) -> None:
    played = scenario(tmp_path, LEAVES)
    taken, other = together(
        take_program(played, 1, Program(doing(tmp_path, *REFUNDS, *LISTENS))),
        take_program(played, 1, Program(doing(tmp_path, *LISTENS))),
    )
    _, figures = measured(taken, played)
    assert judge(figures, played.expect).passed == ("effects",)
    assert figures.values["duplicate_effects"] == (0,)
    assert "the client does not tell" in figures.unjudged["heard_words_missing"]
    assert {"held_sent_ms", "outcomes_lost"} <= figures.unjudged.keys()
    _, figures = measured(other, played)
    (failure,) = judge(figures, played.expect).failed
    assert (failure.name, failure.is_measured) == ("effects", False)
    assert "sent nothing to the stand-in provider" in failure.got
    assert not figures.values.keys() & {"held_sent_ms", "heard_words_missing", "false_claims_heard", "missing_effects"}


@pytest.mark.parametrize(
    ("lines", "by", "told"),
    [
        (("print('no key')", "sys.exit(3)"), "fault", "the client ended (exit code 3); its last lines:\n  no key"),
        (("pass",), "agent", "closed the audio socket"),
        (
            (
                "await line.send('hello')",
                "await line.wait_closed()",
                "print('no', os.environ['CALLWRIGHT_MODEL_KEY'])",
                "sys.exit(1)",
            ),
            "fault",
            "the client broke the protocol of the audio socket: expected audio, or an object of type mark, clear, "
            "keys, heard, hang_up: JSON is malformed: invalid character (byte 0); the client ended (exit code 1); "
            "its last lines:\n  no ***",
        ),
        (
            ("await line.close()", "await asyncio.sleep(0.2)", "sys.exit('late')"),
            "fault",
            "the client ended (exit code 1); its last lines:\n  late",
        ),
    ],
)
def test_a_program_that_fails_has_broken_off_and_one_that_leaves_has_hung_up(
    lines: tuple[str, ...], by: str, told: str, tmp_path: Path
) -> None:
    program = Program(doing(tmp_path, *lines), goes_within_ms=50)
    record = together(take_program(scenario(tmp_path, LEAVES), 1, program))[0].record
    assert (record.ended_by, record.ended_because) == (by, told)
    assert record.error == (told if by == "fault" else None)


def test_what_a_program_prints_when_it_is_told_to_go_is_kept(tmp_path: Path) -> None:
    lines = (
        "asyncio.get_running_loop().add_signal_handler(15, lambda: (print('told'), sys.exit()))",
        "await line.send(json.dumps({'type': 'hang_up'}))",
        "await asyncio.Event().wait()",
    )
    program = Program(doing(tmp_path, *lines), goes_within_ms=50)
    taken = together(take_program(scenario(tmp_path, LEAVES), 1, program))[0]
    assert (taken.record.ended_by, taken.output) == ("agent", b"told\n")


def test_a_key_of_the_users_own_is_hidden_by_one_for_this_call() -> None:
    told = addresses(POLYAI, "ws://127.0.0.1:1/v1/realtime", "k")
    assert told["POLY_API_KEY"] == told["CALLWRIGHT_MODEL_KEY"] == "k"
    assert told["DIALOG_REALTIME_URL"] == told["CALLWRIGHT_MODEL_URL"] == "ws://127.0.0.1:1/v1/realtime"
    with_model = replace(OPENAI, model="another")
    assert addresses(with_model, "ws://127.0.0.1:1/v1/realtime", "k")["OPENAI_BASE_URL"] == "http://127.0.0.1:1/v1"


def test_a_connection_that_breaks_cannot_be_given_to_a_program(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a program has a connection of its own"):
        check_scenario(scenario(tmp_path, LEAVES + "connection: {{drops_at_ms: [500]}}\n"), Options())
    check_scenario(scenario(tmp_path, LEAVES), Options())
