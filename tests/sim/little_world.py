"""A little world of everything the virtual loop offers; run as a script, it prints the hash of its log.

``python little_world.py SEED``
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import sys
from collections.abc import Callable

import httpx

from callwright.sim.http import MemoryTransport
from callwright.sim.vloop import VirtualLoop, run_virtual

WORKERS = 20
ROUNDS = 30


def log_of(seed: int) -> list[str]:
    """What happened in the world of ``seed``, one line an event, each beginning with its time in ms."""
    log: list[str] = []
    run_virtual(_world(random.Random(seed), log))
    return log


async def _world(rng: random.Random, log: list[str]) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)

    def note(what: object) -> None:
        task = asyncio.current_task()
        log.append(f"{loop.now_ms()} {'-' if task is None else task.get_name()} {what}")

    async def answer(request: httpx.Request) -> httpx.Response:
        note(f"asked {request.url.path}")
        await asyncio.sleep(rng.randrange(40) / 1000)
        return httpx.Response(200, text=request.url.path)

    queue: asyncio.Queue[int] = asyncio.Queue(3)
    lock = asyncio.Lock()
    async with httpx.AsyncClient(transport=MemoryTransport({"shop.test": answer}), timeout=0.03) as client:
        workers = [asyncio.create_task(_worker(rng, note, queue, lock, client)) for _ in range(WORKERS)]
        workers += [asyncio.create_task(_drain(note, queue)) for _ in range(2)]
        await asyncio.gather(*workers[:WORKERS])


async def _worker(
    rng: random.Random,
    note: Callable[[object], None],
    queue: asyncio.Queue[int],
    lock: asyncio.Lock,
    client: httpx.AsyncClient,
) -> None:
    for number in range(ROUNDS):
        await asyncio.sleep(rng.choice((0, 0, 0.001, 0.0204, rng.random())))
        match rng.randrange(5):
            case 0:
                await queue.put(number)
                note(f"put {number}")
            case 1:
                async with lock:
                    note("locked")
                    await asyncio.sleep(0.003)
            case 2:
                note(await asyncio.to_thread(pow, number, 2))
            case 3:
                try:
                    note((await client.get(f"https://shop.test/{number}")).text)
                except httpx.ReadTimeout:
                    note("no answer")
            case _:
                try:
                    async with asyncio.timeout(0.01):
                        note(await queue.get())
                except TimeoutError:
                    note("nothing to get")


async def _drain(note: Callable[[object], None], queue: asyncio.Queue[int]) -> None:
    try:
        while True:
            note(f"got {await queue.get()}")
            await asyncio.sleep(0.05)
    finally:
        note("cancelled")


if __name__ == "__main__":
    sys.stdout.write(hashlib.sha256("\n".join(log_of(int(sys.argv[1]))).encode()).hexdigest())
