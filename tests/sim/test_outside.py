"""Rules of the wall around virtual time: whatever reaches outside is refused, by name."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Awaitable, Callable

import httpx
import pytest

from callwright.errors import OutsideWorldError
from callwright.sim.vloop import VirtualLoop, run_virtual


async def open_connection() -> None:
    await asyncio.open_connection("api.example", 443)


async def datagrams() -> None:
    await asyncio.get_running_loop().create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=("192.0.2.1", 53))


async def server() -> None:
    await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 8080)


async def child_process() -> None:
    await asyncio.create_subprocess_exec("ls", "-l")


async def child_shell() -> None:
    await asyncio.create_subprocess_shell("ls -l")


async def reader() -> None:
    asyncio.get_running_loop().add_reader(0, print)


async def signals() -> None:
    asyncio.get_running_loop().add_signal_handler(2, print)


async def real_client_by_name() -> None:
    async with httpx.AsyncClient() as client:
        await client.get("http://api.example/")


async def blocking_client_in_a_job() -> None:
    await asyncio.to_thread(urllib.request.urlopen, "http://api.example/")


async def blocking_socket() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as raw:
        raw.connect(("192.0.2.1", 80))


async def blocking_child() -> None:
    await asyncio.to_thread(subprocess.run, ["ls", "-l"])


async def thread() -> None:
    threading.Thread(target=print).start()


@pytest.mark.parametrize(
    ("reach", "what"),
    [
        (open_connection, "create_connection(api.example:443)"),
        (datagrams, "create_datagram_endpoint(192.0.2.1:53)"),
        (server, "create_server(127.0.0.1:8080)"),
        (child_process, "subprocess_exec(ls -l)"),
        (child_shell, "subprocess_shell(ls -l)"),
        (reader, "add_reader(0)"),
        (signals, "add_signal_handler(2)"),
        (real_client_by_name, "getaddrinfo(api.example:80)"),
        (blocking_client_in_a_job, "socket.getaddrinfo(api.example:80)"),
        (blocking_socket, "socket.connect(192.0.2.1:80)"),
        (blocking_child, "subprocess.Popen(ls -l)"),
    ],
)
def test_reaching_outside_names_what_was_tried_by_which_task_and_what_to_do(
    reach: Callable[[], Awaitable[None]], what: str
):
    async def main() -> None:
        await asyncio.sleep(0.04)
        await asyncio.ensure_future(tool())

    async def tool() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.set_name("find_order")
        await reach()

    with pytest.raises(OutsideWorldError) as caught:
        run_virtual(main())
    assert str(caught.value).startswith(f"{what} at 40 ms, tried by task 'find_order': ")
    assert "in-memory transport" in str(caught.value)


@pytest.mark.parametrize("address", ["http://192.0.2.1/", "https://192.0.2.1/"])
def test_the_real_http_client_is_refused_an_address_too(address: str):
    async def main() -> None:
        async with httpx.AsyncClient() as client:
            await client.get(address)

    with pytest.raises((OutsideWorldError, ExceptionGroup)) as caught:
        run_virtual(main())
    assert "create_connection(192.0.2.1:" in repr(caught.value)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.11 does not tell of threads")
def test_a_thread_is_refused():
    with pytest.raises(OutsideWorldError, match=r"_thread\.start"):
        run_virtual(thread())


def test_outside_a_running_virtual_loop_the_wall_is_not_there():
    run_virtual(asyncio.sleep(1))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        socket.create_connection(listening.getsockname()).close()
    assert subprocess.run([sys.executable, "-c", ""], check=True).returncode == 0
    started = threading.Thread(target=int)
    started.start()
    started.join()


def test_another_thread_keeps_its_sockets_while_a_virtual_loop_runs():
    go, done = threading.Event(), []

    def connect() -> None:
        go.wait()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            socket.create_connection(listening.getsockname()).close()
        done.append("connected")

    async def main() -> None:
        go.set()
        real.join()

    real = threading.Thread(target=connect)
    real.start()
    run_virtual(main())
    assert done == ["connected"]


def test_burying_one_loop_inside_another_leaves_the_wall_standing():
    async def main() -> None:
        VirtualLoop().close()
        await blocking_socket()

    with pytest.raises(OutsideWorldError, match=r"socket\.connect"):
        run_virtual(main())


def test_there_is_nothing_to_stop_watching():
    loop = VirtualLoop()
    assert not any((loop.remove_reader(0), loop.remove_writer(0), loop.remove_signal_handler(2)))


def test_every_door_of_an_event_loop_is_closed():
    """A door that Python adds later must not lead to NotImplementedError, which nobody understands."""
    opened = [
        name
        for name in dir(asyncio.AbstractEventLoop)
        if not name.startswith("__") and getattr(VirtualLoop, name) is getattr(asyncio.AbstractEventLoop, name)
    ]
    assert opened == []
