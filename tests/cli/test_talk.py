"""``callwright talk``: a whole conversation at a card without hardware, against the local server, and how it ends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.calling import callwright
from tests.cli.test_serve import serving
from tests.lines.fake_card import BOX, RATE_HZ, SILENCE, FakeCard, ThreadedCard
from tests.sim.whole_call import check_in, says

from callwright.audio.formats import PCM
from callwright.cli.talk import told
from callwright.core.transcript import Source, Speaker, Turn
from callwright.ids import ItemId, Ms
from callwright.sim.caller import Anchor, ScriptedCaller


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving("check-in", "--quiet") as (_, url, _):
        yield url


def talk(monkeypatch: pytest.MonkeyPatch, card: FakeCard, *arguments: str) -> tuple[int, str, str]:
    """Run the command on this card: exit code, output and errors."""
    monkeypatch.setitem(sys.modules, "sounddevice", card)
    result = callwright("talk", *arguments, columns=120)
    return result.exit_code, result.stdout, result.stderr


class PressesCtrlC:
    """Says nothing, and presses Ctrl-C after a while."""

    hung_up = False

    def __init__(self, after_ms: Ms) -> None:
        self._after_ms = after_ms

    def step(self, now_ms: Ms, ear: PCM, item_id: ItemId | None) -> PCM:
        if now_ms == self._after_ms:
            os.kill(os.getpid(), signal.SIGINT)
        return SILENCE


class HangsUpOnceAnswered:
    """Says a line, and presses Ctrl-C when he hears anything."""

    def __init__(self, line_id: str) -> None:
        self._caller = ScriptedCaller([says(line_id, Anchor.PICKUP, 0)], check_in().lines, RATE_HZ)
        self._has_pressed = False

    @property
    def hung_up(self) -> bool:
        return self._caller.hung_up

    def step(self, now_ms: Ms, ear: PCM, item_id: ItemId | None) -> PCM:
        if ear.any() and not self._has_pressed:
            self._has_pressed = True
            os.kill(os.getpid(), signal.SIGINT)
        return self._caller.step(now_ms, ear, item_id)


def test_a_conversation_is_shown_as_it_goes_and_ends_when_the_agent_hangs_up(
    monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    """By the wall clock, over a real socket and a card that calls from a thread of its own."""
    caller = ScriptedCaller([says("thats-all", Anchor.PICKUP, 0)], check_in().lines, RATE_HZ)
    code, out, err = talk(monkeypatch, ThreadedCard(caller), "hotel", "--server", server)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("line open: Built-in Audio (microphone), Built-in Audio, 0 ms to the ear; on headphones")
    assert lines[1] == "connecting; Ctrl-C hangs up"
    assert lines[2].startswith("ready after ")
    assert [line for line in lines if line.startswith("you")] == ["you      That's all, thank you, goodbye."]
    assert [line for line in lines if line.startswith("agent")]
    assert lines[-1].startswith("ended by agent: ")


def test_with_the_local_server_nobody_needs_a_key_and_a_demo_answers_in_its_recorded_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Recogniser and voice run in processes of their own, with stand-ins for the packages of the extra."""
    for place in (Path(__file__).parents[2], Path(__file__).parents[1] / "sim" / "open" / "packages"):
        monkeypatch.syspath_prepend(str(place))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("POLY_API_KEY", raising=False)
    card = ThreadedCard(HangsUpOnceAnswered("thank-you"))
    code, out, err = talk(monkeypatch, card, "hotel", "--server", "local")
    assert (code, err) == (130, "")
    assert out.startswith("loading the recogniser and the voice\nline open: ")
    assert [line for line in out.splitlines() if line.startswith("you")] == ["you      Thank you."]
    assert out.splitlines()[-1] == "ended by agent: Ctrl-C"


def test_without_the_extra_the_local_server_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "moonshine_voice", None)
    card = FakeCard()
    code, _, err = talk(monkeypatch, card, "hotel", "--server", "local")
    assert code == 2
    assert "pip install 'callwright[local]'" in err
    assert not card.did


CHAT = ("--chat-url", "http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["callwright.apps.hotel:desk", "--server", "local"], "give --chat-url and --chat-model"),
        (["hotel", "--server", "local", *CHAT], "--chat-url and --chat-model go together"),
        (["hotel", "--server", "local", "--chat-model", "m"], "--chat-url and --chat-model go together"),
        (["hotel", "--server", "local", "--chat-url", "127.0.0.1", "--chat-model", "m"], "--chat-url: the address"),
        (["hotel", *CHAT, "--chat-model", "m"], "say --server local, too"),
    ],
)
def test_what_the_local_server_lacks_is_named(monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "sim" / "open" / "packages"))
    card = FakeCard()
    code, _, err = talk(monkeypatch, card, *arguments)
    assert code == 2
    assert told in err
    assert not card.did


def test_ctrl_c_hangs_up_and_what_is_on_record_is_shown(monkeypatch: pytest.MonkeyPatch, server: str) -> None:
    card = ThreadedCard(PressesCtrlC(1_000))
    code, out, err = talk(monkeypatch, card, "refunds", "--server", server, "--speakers")
    assert (code, err) == (130, "")
    assert "its echo is cancelled" in out.splitlines()[0]
    assert out.splitlines()[-2:] == ["ended by agent: Ctrl-C", "operations: none"]
    assert card.did == ["open", "stop", "close"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_line_is_open_before_anything_is_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    card = ThreadedCard()
    code, out, err = talk(monkeypatch, card, "hotel", "--server", "ws://127.0.0.1:9/v1/realtime")
    assert code == 1
    assert out.startswith("line open: ")
    assert err.startswith("callwright: ")
    assert "127.0.0.1:9" in err
    assert card.did == ["open", "stop", "close"]


@pytest.mark.parametrize("key", [None, "   "])
def test_what_is_missing_is_told_before_the_card_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("POLY_API_KEY", raising=False)
    if key:
        monkeypatch.setenv("POLY_API_KEY", key)
    card = FakeCard()
    code, _, err = talk(monkeypatch, card, "hotel")
    assert code == 2
    assert "POLY_API_KEY" in err
    assert not card.did


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "expected whom to talk to: hotel, refunds, pharmacy"),
        (["nobody"], "there is no app 'nobody'"),
        (["no_such_module:desk"], "no_such_module"),
        (["hotel", "--server", "mars"], "--server mars: expected polyai, openai, plain"),
        (["hotel", "--server", "ws://127.0.0.1:9", "--device", "7"], "no such sound device: 7"),
        (["hotel", "--server", "ws://127.0.0.1:9", "--device", "Nose"], "no such sound device: Nose"),
    ],
)
def test_wrong_use_is_named(monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str) -> None:
    code, _, err = talk(monkeypatch, FakeCard(), *arguments)
    assert code == 2
    assert told in err


def test_an_agent_with_actions_needs_its_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = "callwright.apps.refunds:desk"
    code, _, err = talk(monkeypatch, FakeCard(), entry, "--server", "ws://127.0.0.1:9")
    assert code == 2
    assert "ledger" in err


def test_an_agent_of_ones_own_has_behind_it_what_the_options_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It comes as far as the connection, with a ledger in the file."""
    own = (
        "--provider",
        "tests.cli.test_ledger:bank",
        "--deps",
        "callwright.apps.refunds:Shop",
        "--party",
        "customer:81",
    )
    where = ("--db", str(tmp_path / "own.db"), "--server", "ws://127.0.0.1:9")
    code, out, _ = talk(monkeypatch, ThreadedCard(), "callwright.apps.refunds:desk", *own, *where)
    assert code == 1
    assert out.startswith("line open: ")
    assert (tmp_path / "own.db").exists()


def test_a_terminal_has_the_level_of_the_microphone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    _, out, _ = talk(monkeypatch, ThreadedCard(), "hotel", "--server", "ws://127.0.0.1:9")
    assert "mic" in out
    assert "-60 dBFS" in out


def test_devices_are_listed_with_what_each_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = talk(monkeypatch, FakeCard(), "--list-devices")
    assert code == 0
    listed = [" ".join(line.split()) for line in out.splitlines()[1:]]
    assert listed == [
        "0 Built-in Audio microphone and loudspeaker default",
        "1 Desk Microphone microphone",
        "2 Loudspeaker Box loudspeaker",
    ]


def test_a_machine_without_a_microphone_lists_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = talk(monkeypatch, FakeCard(devices=[BOX]), "--list-devices")
    assert code == 0
    assert "Loudspeaker Box" in out
    assert "there is no microphone here" in err


def test_without_sounddevice_the_install_line_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    result = callwright("talk", "hotel", "--server", "ws://127.0.0.1:9")
    assert result.exit_code == 2
    assert "pip install 'callwright[mic]'" in result.stderr


def test_what_a_model_writes_is_shown_without_what_a_terminal_obeys() -> None:
    turn = Turn(Speaker.AGENT, ItemId("i"), "Hi\x1b]0;owned\x07", "Hi\x1b[31m there\x9b2J", Source.ESTIMATED)
    assert told(turn).plain.split() == ["agent", "Hi]0;owned", "written:", "Hi[31m", "there2J", "(estimated)"]
