"""The wall around virtual time: it owns the refusal of everything that reaches for the outside world.

Asynchronous code meets :class:`SealedLoop`, whose doors all raise OutsideWorldError. Blocking code (a synchronous
client in an executor job, say) meets the interpreter's audit events, which are watched while a sealed loop runs in the
same thread. Every refusal names what was tried, by which task, and what to do instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

from callwright.errors import OutsideWorldError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_AUDITED: dict[str, tuple[slice, str]] = {
    "socket.connect": (slice(1, 2), ":"),
    "socket.bind": (slice(1, 2), ":"),
    "socket.sendto": (slice(1, 2), ":"),
    "socket.getaddrinfo": (slice(0, 2), ":"),
    "socket.gethostbyname": (slice(0, 1), ":"),
    "subprocess.Popen": (slice(1, 2), " "),
    "os.posix_spawn": (slice(1, 2), " "),
    "os.system": (slice(0, 1), " "),
    "_thread.start_new_thread": (slice(0, 0), ""),
    "_thread.start_joinable_thread": (slice(0, 0), ""),
}
"""Audit event -> (which of its arguments say what was meant, how to join them); Python 3.11 tells of no threads."""

_sealed: dict[int, SealedLoop] = {}
"""Thread ident -> the sealed loop that runs in that thread."""


def _refused(door: str, joint: str = ":") -> Callable[..., NoReturn]:
    def refuse(self: SealedLoop, *args: object, **options: object) -> NoReturn:
        named = [options[name] for name in ("host", "port", "path", "local_addr", "remote_addr") if name in options]
        self.refuse(door, joint.join(_words([*args, *named])))

    return refuse


def _nothing_watched() -> Callable[..., bool]:
    return lambda self, what: False


class SealedLoop(asyncio.AbstractEventLoop):
    """An event loop without an outside world: its doors raise OutsideWorldError."""

    def now_ms(self) -> int:
        """Virtual time in whole milliseconds."""
        raise NotImplementedError

    def refuse(self, what: str, target: str = "") -> NoReturn:
        """Raise OutsideWorldError for ``what`` (an operation) on ``target`` (an address, a command line)."""
        task = asyncio.current_task(self)
        raise OutsideWorldError(
            f"{what}({target}) at {self.now_ms()} ms, tried by "
            f"{'a callback' if task is None else 'task ' + repr(task.get_name())}: there is no outside world in "
            "virtual time. Let the scenario answer it, or give the HTTP client the in-memory transport; "
            "blocking work goes through asyncio.to_thread."
        )

    create_connection = _refused("create_connection")
    create_server = _refused("create_server")
    create_unix_connection = _refused("create_unix_connection")
    create_unix_server = _refused("create_unix_server")
    create_datagram_endpoint = _refused("create_datagram_endpoint")
    connect_accepted_socket = _refused("connect_accepted_socket")
    connect_read_pipe = _refused("connect_read_pipe")
    connect_write_pipe = _refused("connect_write_pipe")
    start_tls = _refused("start_tls")
    sendfile = _refused("sendfile")
    getaddrinfo = _refused("getaddrinfo")
    getnameinfo = _refused("getnameinfo")
    subprocess_exec = _refused("subprocess_exec", " ")
    subprocess_shell = _refused("subprocess_shell", " ")
    add_reader = _refused("add_reader")  # type: ignore[assignment]
    add_writer = _refused("add_writer")  # type: ignore[assignment]
    add_signal_handler = _refused("add_signal_handler")  # type: ignore[assignment]
    sock_accept = _refused("sock_accept")
    sock_connect = _refused("sock_connect")
    sock_recv = _refused("sock_recv")
    sock_recv_into = _refused("sock_recv_into")
    sock_recvfrom = _refused("sock_recvfrom")
    sock_recvfrom_into = _refused("sock_recvfrom_into")
    sock_sendall = _refused("sock_sendall")
    sock_sendfile = _refused("sock_sendfile")
    sock_sendto = _refused("sock_sendto")
    remove_reader = _nothing_watched()
    remove_writer = _nothing_watched()
    remove_signal_handler = _nothing_watched()


@contextlib.contextmanager
def sealed(loop: SealedLoop) -> Iterator[None]:
    """Refuse this thread sockets, child processes and threads while ``loop`` runs in it."""
    _watch()
    thread = threading.get_ident()
    outer = _sealed.get(thread)
    _sealed[thread] = loop
    try:
        yield
    finally:
        if outer is None:
            del _sealed[thread]
        else:
            _sealed[thread] = outer


@functools.cache
def _watch() -> None:
    """Install the audit hook, once: it cannot be removed, and it does nothing where no sealed loop runs."""
    sys.addaudithook(_audit)


def _audit(event: str, args: tuple[object, ...]) -> None:
    if event in _AUDITED and (loop := _sealed.get(threading.get_ident())) is not None:
        which, joint = _AUDITED[event]
        loop.refuse(event, joint.join(_words(args[which])))


def _words(values: object) -> Iterator[str]:
    """Yield the strings and integers in ``values``, through tuples and lists."""
    if isinstance(values, (tuple, list)):
        for value in values:
            yield from _words(value)
    elif isinstance(values, bytes):
        yield values.decode(errors="replace")
    elif isinstance(values, (str, int)):
        yield str(values)
