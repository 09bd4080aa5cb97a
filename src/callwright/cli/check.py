"""``callwright check``: what a live call needs, item by item, and what to do about what is missing or wrong.

No key is printed, nor a part of one, nor what a server writes. The session that is opened is closed at once.
"""

from __future__ import annotations

import asyncio
import json
import platform
import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Final

import click

from callwright.cli.server import Server, is_this_machine
from callwright.errors import ConnectionFailed, LineFailed, UsageError, how_to_install
from callwright.ledger.sqlite import JOURNAL, SQLITE_MIN, WAL_FROM
from callwright.lines.soundcard import default_devices
from callwright.runtime.endpoint import Endpoint
from callwright.runtime.environment import FILE, Environment, read_environment
from callwright.runtime.probe import Probe, Step
from callwright.wire.profiles import PROFILES, Profile

CLOCK_MAX_S: Final = 60
"""A clock that is further from the server's is wrong."""
_OLD_KEYS: Final[Mapping[str, tuple[str, ...]]] = {"POLY_API_KEY": ("DIALOG_API_KEY", "DIALOGUE_API_KEY")}
"""What older samples of a provider call its key."""
_EXTRA: Final = re.compile(r"(?P<package>[\w.-]+).*extra == ['\"](?P<extra>[\w-]+)")
_COLORS: Final = {"ok": "green", "missing": "yellow", "wrong": "red"}
_WORD: Final = max(map(len, _COLORS))
_NAME: Final = 12
"""Columns of an item's name."""


class Verdict(StrEnum):
    """How it is with an item."""

    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was looked at; ``needed`` is whether no call can be made without it."""

    item: str
    verdict: Verdict
    told: str
    needed: bool = True


@click.command("check")
@click.option("--server", default="polyai", show_default=True, metavar="NAME|URL", help="What calls are to reach.")
@click.option("--dialect", type=click.Choice(tuple(PROFILES)), help="Whose key a URL is shown.  [default: polyai]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per item, one a line.")
@click.pass_context
def command(ctx: click.Context, server: str, dialect: str | None, as_json: bool) -> None:
    """Say what a live call needs, and what of it is missing or wrong.

    Keys and addresses come from the environment, or from .env in this directory; no key is printed. A session is opened
    and closed at once: connected time is billed, and this is less than a second of it.

    Exits with 0 if all that is needed is there, and with 1 if not.
    """
    reached, environment = Server.parse(server, dialect), read_environment(Path())
    lacking = []
    for item in _items(reached, environment):
        if item.needed and item.verdict is not Verdict.OK:
            lacking.append(item.item)
        click.echo(json.dumps(asdict(item)) if as_json else _line(item))
    if not as_json:
        click.echo(f"not ready: {', '.join(lacking)}" if lacking else "ready: a call can be made")
    ctx.exit(1 if lacking else 0)


def _line(item: Item) -> str:
    verdict = click.style(f"{item.verdict.value:{_WORD}}", fg=_COLORS[item.verdict.value])
    return f"{verdict}  {item.item:{_NAME}}  {item.told}"


def _items(server: Server, environment: Environment) -> Iterator[Item]:
    """Everything that is looked at, in the order in which it is told."""
    yield Item("Python", Verdict.OK, f"{platform.python_version()}, callwright {metadata.version('callwright')}")
    yield _sqlite()
    yield _sound_card()
    yield from _extras()
    yield from _server(server, environment)


# --- the machine


def _sqlite() -> Item:
    """Which SQLite a ledger would use."""
    version, newest = sqlite3.sqlite_version, ".".join(map(str, WAL_FROM))
    if sqlite3.sqlite_version_info < SQLITE_MIN:
        oldest = ".".join(map(str, SQLITE_MIN))
        return Item("SQLite", Verdict.WRONG, f"{version}; a ledger needs {oldest}: take a newer Python", needed=False)
    return Item("SQLite", Verdict.OK, f"{version}; a ledger's journal_mode is {JOURNAL} (WAL from {newest} on)")


def _sound_card() -> Item:
    """Which microphone and loudspeaker a call at this machine would have; no other call needs them."""
    try:
        devices = default_devices()
    except (UsageError, LineFailed) as problem:
        return Item("sound card", Verdict.MISSING, f"{problem} (only callwright talk needs it)", needed=False)
    return Item("sound card", Verdict.OK, ", ".join(f"{device.name} ({device.directions})" for device in devices))


def _extras() -> Iterator[Item]:
    """Which of the packages that extras install are there."""
    extras: dict[str, list[str]] = {}
    for requirement in metadata.requires("callwright") or ():
        if found := _EXTRA.match(requirement):
            extras.setdefault(found["extra"], []).append(found["package"])
    for extra, packages in sorted(extras.items()):
        versions = {package: _version(package) for package in packages}
        absent = [package for package, version in versions.items() if not version]
        if absent:
            told = f"{', '.join(absent)}, which is optional: {how_to_install(extra)}"
            yield Item(f"extra {extra}", Verdict.MISSING, told, needed=False)
        else:
            yield Item(f"extra {extra}", Verdict.OK, ", ".join(map(" ".join, versions.items())))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


# --- the server


def _server(server: Server, environment: Environment) -> Iterator[Item]:
    """Address and key, and how far one comes with them."""
    profile = server.profile
    if server.url:
        whence = "as asked for"
    elif source := environment.source(profile.url_env):
        whence = f"{profile.url_env} from {source}"
    else:
        whence = f"{profile.name}'s own; {profile.url_env} names another one"
    try:
        endpoint = server.bare(environment)
    except UsageError as problem:
        yield Item("address", Verdict.WRONG, f"{problem}; it is {whence}")
        return
    yield Item("address", Verdict.OK, f"{endpoint.address}, {whence}")
    item = _key(profile, environment)
    try:
        endpoint = server.endpoint(environment)
    except UsageError as problem:
        item = item if item.verdict is Verdict.MISSING else Item("key", Verdict.WRONG, str(problem))
    yield item
    yield from _hidden((profile.key_env,) if server.url else (profile.key_env, profile.url_env), environment)
    yield from _reaching(endpoint, opens=item.verdict is Verdict.OK)


def _key(profile: Profile, environment: Environment) -> Item:
    name = profile.key_env
    if source := environment.source(name):
        return Item("key", Verdict.OK, f"{name} from {source}")
    if not profile.needs_key:
        return Item("key", Verdict.OK, f"{name} is not set, and none is sent; a server of one's own may need none")
    old = [each for each in _OLD_KEYS.get(name, ()) if each in environment]
    hint = f"; {old[0]} is its name in older samples, and is not read" if old else ""
    return Item("key", Verdict.MISSING, f"{name} is not set: set it in the environment, or in {FILE} here{hint}")


def _hidden(names: tuple[str, ...], environment: Environment) -> Iterator[Item]:
    """What the environment keeps from being read in the file."""
    for name in filter(environment.is_hidden, names):
        told = f"the environment's {name} counts, and hides another one in {environment.path}: unset {name} to use that"
        yield Item("hidden", Verdict.WRONG, told, needed=False)


def _reaching(endpoint: Endpoint, *, opens: bool) -> Iterator[Item]:
    """How far one comes; a session is opened only if there is a key to show."""
    probe = Probe(endpoint)
    for step in (Step.HOST, *((Step.TLS,) if endpoint.tls else ()), *((Step.SESSION,) if opens else ())):
        try:
            asyncio.run(probe.take(step))
        except ConnectionFailed as problem:
            yield Item(step.value, Verdict.WRONG, str(problem))
            break
        yield Item(step.value, Verdict.OK, _reached(step, endpoint, probe))
        if step is Step.HOST and not endpoint.tls and not is_this_machine(endpoint.host):
            told = "the address is ws://: key and words can be read on the way; use wss:// where the server has it"
            yield Item("TLS", Verdict.MISSING, told, needed=False)
    if probe.ahead_s is not None:
        yield _clock(probe.ahead_s)


def _reached(step: Step, endpoint: Endpoint, probe: Probe) -> str:
    match step:
        case Step.HOST:
            return f"{endpoint.host} takes connections at port {endpoint.port}"
        case Step.TLS:
            return f"{endpoint.host} has a certificate that is known here"
        case Step.SESSION:
            return (
                f"opened, and closed after {probe.connected_ms} ms, which count as connected time where that is billed"
            )


def _clock(ahead_s: float) -> Item:
    off = f"{abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} the server's"
    if abs(ahead_s) <= CLOCK_MAX_S:
        return Item("clock", Verdict.OK, f"{off}; up to {CLOCK_MAX_S} s do no harm")
    return Item("clock", Verdict.WRONG, f"{off}: set it by a time server; certificates and a ledger's windows go by it")
