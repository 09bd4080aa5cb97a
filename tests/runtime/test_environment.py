"""Keys from the environment and from ``.env``: which one counts, what a file may look like, and that none is told."""

from __future__ import annotations

import asyncio
import os
import traceback
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import callwright as cw
from callwright.errors import UsageError
from callwright.runtime.connect import connect_to
from callwright.runtime.environment import Environment, parse, read_environment
from callwright.sim.server.websocket import RealtimeServer
from callwright.testing.connections import EchoPeer, Witness
from callwright.wire.profiles import PROFILES

ROOT = Path(__file__).parent.parent.parent
KEY = "sk-marker-4411"

WRITTEN = [
    (f"POLY_API_KEY={KEY}", KEY),
    (f"export POLY_API_KEY={KEY}\n", KEY),
    (f"  POLY_API_KEY = {KEY}  \n", KEY),
    (f"POLY_API_KEY='{KEY}'", KEY),
    (f'POLY_API_KEY="{KEY}"  # of the workspace', KEY),
    (f"POLY_API_KEY={KEY} # of the workspace", KEY),
    ("POLY_API_KEY=with#inside", "with#inside"),
    ("POLY_API_KEY=two words", "two words"),
    ("POLY_API_KEY='no \\n escape'", "no \\n escape"),
    (r'POLY_API_KEY="a \"b\" \\ \n c"', 'a "b" \\ \n c'),
    ("POLY_API_KEY=$HOME/${USER}", "$HOME/${USER}"),
    ("POLY_API_KEY= # none yet", ""),
    ("POLY_API_KEY=", ""),
    (f"# a comment\n\n\t\nPOLY_API_KEY=older\nPOLY_API_KEY={KEY}\n", KEY),
    (f'OTHER="over\ntwo lines"\nPOLY_API_KEY={KEY}', KEY),
]
BROKEN = [
    (KEY, 1),
    (f"{KEY}\n", 1),
    (f"A=1\n\nPOLY_API_KEY {KEY}\n", 3),
    (f"A=1\nPOLY_API_KEY: {KEY}", 2),
    (f'A="over\ntwo"\nPOLY_API_KEY="{KEY}\n', 3),
    (f"POLY_API_KEY='{KEY}", 1),
    (f'POLY_API_KEY="{KEY}" {KEY}', 1),
    (f"POLY_API_KEY='{KEY}'#joined", 1),
    (f"={KEY}", 1),
    (f"1KEY={KEY}", 1),
    (f"KEY=#{KEY}", 1),
    (f"export {KEY}", 1),
]


@pytest.mark.parametrize(("text", "value"), WRITTEN)
def test_a_line_reads_as_in_a_shell(text: str, value: str) -> None:
    assert parse(text)["POLY_API_KEY"] == value


@pytest.mark.parametrize(("text", "line"), BROKEN)
def test_c156_a_broken_line_is_named_by_its_number_and_not_told(text: str, line: int) -> None:
    with pytest.raises(UsageError, match=rf"^\.env:{line}: expected NAME=value") as wrong:
        parse(text)
    assert "marker" not in str(wrong.value)


@given(st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True), st.text(max_size=12), max_size=4))
@settings(max_examples=50)
@example({"A": '\\"'})
@example({"A": "\n#\\n"})
def test_what_is_written_in_double_quotes_comes_back(values: dict[str, str]) -> None:
    lines = [
        f'{name}="{value.replace(chr(92), chr(92) * 2).replace(chr(34), chr(92) + chr(34))}"'
        for name, value in values.items()
    ]
    assert parse("\n".join(lines)) == values


@given(st.text("AB=#'\"\\ \n\t", max_size=30))
@settings(max_examples=100)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse(text)
    except UsageError:
        return
    assert all(found)


@pytest.mark.parametrize(
    ("process", "file", "value", "source", "is_hidden"),
    [
        ("shell", "file", "shell", "the environment", True),
        ("same", " same ", "same", "the environment", False),
        ("shell", None, "shell", "the environment", False),
        ("shell", "", "shell", "the environment", False),
        (None, "file", "file", ".env", False),
        ("", "file", "file", ".env", False),
        (" ", "file", "file", ".env", False),
        ("", None, None, "", False),
        (None, "", None, "", False),
    ],
)
def test_the_environment_goes_before_the_file(
    process: str | None, file: str | None, value: str | None, source: str, is_hidden: bool
) -> None:
    """A variable that is set to nothing is not set: an empty one in a shell must not hide the file's."""

    def one(of: str | None) -> dict[str, str]:
        return {} if of is None else {"KEY": of}

    environment = Environment(one(process), one(file), Path(".env"))
    assert environment.get("KEY") == value
    assert dict(environment) == ({} if value is None else {"KEY": value})
    assert len(environment) == (value is not None)
    assert (environment.source("KEY"), environment.is_hidden("KEY")) == (source, is_hidden)


def test_a_file_is_read_where_the_command_runs_and_nowhere_above(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"CALLWRIGHT_TEST_KEY={KEY}\r\n", "utf-8-sig")
    below = tmp_path / "below"
    below.mkdir()
    assert read_environment(tmp_path)["CALLWRIGHT_TEST_KEY"] == KEY
    assert "CALLWRIGHT_TEST_KEY" not in read_environment(below)
    assert "CALLWRIGHT_TEST_KEY" not in os.environ
    (below / ".env").mkdir()
    assert "CALLWRIGHT_TEST_KEY" not in read_environment(below)


def test_c156_a_file_that_is_no_text_is_refused_without_being_told(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(f"A={KEY}\xff".encode("latin-1"))
    with pytest.raises(UsageError, match=r"\.env: not a text in UTF-8") as wrong:
        read_environment(tmp_path)
    assert "marker" not in "".join(traceback.format_exception(wrong.value))


def test_c156_an_environment_shows_no_value() -> None:
    environment = Environment({"A": KEY}, {"A": f"{KEY}2", "B": f"{KEY}3"}, Path(".env"))
    assert "marker" not in f"{environment} {environment!r} {[environment]}"


def test_a_key_that_is_handed_in_is_used_and_no_file_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An application says what its keys are; a ``.env`` in its working directory is not ours to read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("POLY_API_KEY", raising=False)
    (tmp_path / ".env").write_text(f"POLY_API_KEY={KEY}\n", "utf-8")
    with pytest.raises(UsageError, match="POLY_API_KEY"):
        connect_to(cw.polyai())

    async def play() -> list[bytes]:
        witness = Witness()
        async with RealtimeServer(EchoPeer, key=KEY) as server:
            choice = cw.polyai(url=server.url)
            witness.connection = await connect_to(choice, environment=read_environment(tmp_path)).connect(witness)
            await witness.expect(lambda: witness.messages, "the server's greeting arrives")
            await witness.connection.close()
        return witness.messages

    assert asyncio.run(play()) == [b"hello"]


def test_a_server_of_ones_own_needs_no_key() -> None:
    async def play() -> list[bytes]:
        witness = Witness()
        async with RealtimeServer(EchoPeer) as server:
            witness.connection = await connect_to(cw.plain(url=server.url), environment={}).connect(witness)
            await witness.expect(lambda: witness.messages, "the server's greeting arrives")
            await witness.connection.close()
        return witness.messages

    assert asyncio.run(play()) == [b"hello"]


def test_the_example_names_every_variable_and_holds_no_value() -> None:
    text = (ROOT / ".env.example").read_text("utf-8")
    names = [name for profile in PROFILES.values() for name in (profile.key_env, profile.url_env)]
    assert [name for name in names if f"{name}=" not in text] == []
    assert not any(parse(text).values())


def test_the_file_itself_is_not_committed() -> None:
    assert ".env" in (ROOT / ".gitignore").read_text("utf-8").splitlines()
