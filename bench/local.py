"""Free speech by the extra ``local``: words lost, delay, CPU. Needs ``pip install 'callwright[local]'``.

The words are those of the recorded callers of the demos (synthetic voices), and of the voice's own sentences. The delay
is from the end of a turn, as the session finds it, to the first audio of a reply that takes no thought.
"""

from __future__ import annotations

import asyncio
import random
import re
import resource
import statistics
import time
from importlib.resources import files

import msgspec

from callwright.audio.formats import PCM16_24K
from callwright.audio.resample import resample
from callwright.sim.open.recorded import RecordedThinker
from callwright.sim.open.sessions import open_peer
from callwright.sim.open.workers import Senses, open_senses
from callwright.sim.rules import RulesModel
from callwright.sim.server import MemoryConnector
from callwright.sim.speech import RATE_HZ, Recording, Speech
from callwright.wire.codec import encode_append

APPS = ("hotel", "refunds")
TURNS = 8


def lines(kind: str) -> list[Recording]:
    """The recorded lines of this kind."""
    speech = [Speech.load(files(f"callwright.apps.{app}") / "speech") for app in APPS]
    return [line for each in speech for line in each.values() if line.kind == kind]


def wrong(said: str, heard: str) -> tuple[int, int]:
    """How many words have to be changed, left out or put in, and how many there are."""
    wanted, found = (re.findall(r"[a-z0-9']+", text.lower().replace("-", " ")) for text in (said, heard))
    row = list(range(len(found) + 1))
    for at, word in enumerate(wanted, 1):
        before, row[0] = row[:], at
        for to, other in enumerate(found, 1):
            row[to] = min(before[to] + 1, row[to - 1] + 1, before[to - 1] + (word != other))
    return row[-1], len(wanted)


class Client:
    """What a session tells its client, and when the first audio and the end of a turn came."""

    def __init__(self) -> None:
        self.stopped_s = 0.0
        self.answered: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    def on_message(self, message: bytes) -> None:
        """A message of the session's."""
        kind = msgspec.json.decode(message)["type"]
        if kind == "input_audio_buffer.speech_stopped":
            self.stopped_s = time.perf_counter()
        elif kind == "response.output_audio.delta" and not self.answered.done():
            self.answered.set_result(time.perf_counter() - self.stopped_s)

    def on_closed(self, code: int, reason: str) -> None:
        """The session is over."""


async def answered_after_s(senses: Senses, line: Recording) -> float:
    """One turn at speaking pace: from its end to the first audio of the reply."""
    speech = Speech.load(files("callwright.apps.hotel") / "speech")
    rules = files("callwright.apps.hotel") / "hotel.model.yaml"
    thinker = RecordedThinker(RulesModel.load(rules, speech), speech, random.Random(1))  # type: ignore[arg-type]
    client = Client()
    connection = await MemoryConnector(lambda: open_peer("polyai", senses, thinker, random.Random(1))).connect(client)
    sound = resample(line.pcm, RATE_HZ, 24_000).astype("<i2").tobytes()
    size, at = PCM16_24K.frame_bytes, 0
    while not client.answered.done():
        connection.send(encode_append(sound[at : at + size].ljust(size, b"\0")))
        at += size
        await asyncio.sleep(0.02)
    await connection.close()
    return client.answered.result()


async def longest_stall_s(stop: asyncio.Event) -> float:
    """How late the loop was at worst."""
    worst = 0.0
    while not stop.is_set():
        began = time.perf_counter()
        await asyncio.sleep(0.005)
        worst = max(worst, time.perf_counter() - began - 0.005)
    return worst


async def main() -> None:
    """Measure, and print."""
    began = time.perf_counter()
    async with open_senses() as senses:
        print(f"loaded in {time.perf_counter() - began:.1f} s")
        stop = asyncio.Event()
        stalls = asyncio.create_task(longest_stall_s(stop))
        took, sizes, errors = [], 0, []
        for line in lines("caller"):
            began = time.perf_counter()
            errors.append(wrong(line.text, await senses.words(line.pcm)))
            took.append(time.perf_counter() - began)
            sizes += line.ms
        print(
            f"recogniser, {len(took)} recorded lines: {share(errors)} of the words wrong; "
            f"{statistics.median(took) * 1000:.0f} ms a line (median), {sum(took) / sizes * 1000:.2f} of real time"
        )
        took, sizes, errors = [], 0, []
        for line in lines("agent"):
            began = time.perf_counter()
            piece = await senses.speak(line.text)
            took.append(time.perf_counter() - began)
            sizes += len(piece.pcm) // 16
            errors.append(wrong(line.text, await senses.words(piece.pcm)))
        print(
            f"voice, {len(took)} sentences of the agents: {statistics.median(took) * 1000:.0f} ms a line (median), "
            f"{sum(took) / sizes * 1000:.3f} of real time; the recogniser gets {share(errors)} of its words wrong"
        )
        delays = [await answered_after_s(senses, line) for line in lines("caller")[:TURNS]]
        print(
            f"from the end of a turn to the first audio, {len(delays)} turns: "
            f"{statistics.median(delays):.2f} s (median), {max(delays):.2f} s at most"
        )
        stop.set()
        print(f"the event loop was {await stalls * 1000:.0f} ms late at most")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"CPU of both processes: {used.ru_utime + used.ru_stime:.1f} s; the larger has {used.ru_maxrss // 1024} MiB")


def share(errors: list[tuple[int, int]]) -> str:
    """Wrong words of all words."""
    return f"{100 * sum(bad for bad, _ in errors) / sum(all_ for _, all_ in errors):.0f} %"


if __name__ == "__main__":
    asyncio.run(main())
