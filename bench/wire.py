"""What the two frequent messages cost: an append of 20 ms up, an audio delta of 200 ms down, beside json and base64.

Run ``python bench/wire.py``. Prints microseconds of CPU per message, the best of several rounds.
"""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING

from callwright.wire.client import InputAudioBufferAppend
from callwright.wire.codec import ServerDecoder, encode, encode_append
from callwright.wire.items import ContentPart, MessageItem
from callwright.wire.objects import Response
from callwright.wire.server import ResponseDone, ResponseOutputAudioDelta

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 7
FRAME = bytes(range(240)) * 4
"""20 ms of PCM16 at 24 kHz, 960 bytes."""
DELTA = encode(
    ResponseOutputAudioDelta(
        event_id="event_0123456789abcdef",
        response_id="resp_0123456789abcdef",
        item_id="item_0123456789abcdef",
        delta=FRAME * 10,
    )
)
"""200 ms of PCM16 at 24 kHz, 9,600 bytes."""
DONE = encode(
    ResponseDone(
        event_id="event_0123456789abcdef",
        response=Response(
            id="resp_0123456789abcdef",
            status="completed",
            output=(
                MessageItem(
                    id="item_0123456789abcdef",
                    role="assistant",
                    content=(ContentPart(type="output_audio", transcript="Check-in is from three. " * 10),),
                ),
            ),
        ),
    )
)


def microseconds(work: Callable[[], object], times: int = 20_000) -> float:
    """Return the CPU time of one call of ``work``, in µs."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(times):
            work()
        best = min(best, time.process_time() - began)
    return best / times * 1e6


def plain_append() -> bytes:
    """Encode an append as the standard library does."""
    audio = base64.b64encode(FRAME).decode()
    return json.dumps({"type": "input_audio_buffer.append", "audio": audio}).encode()


def plain_delta() -> bytes:
    """Decode a delta as the standard library does."""
    return base64.b64decode(json.loads(DELTA)["delta"])


def main() -> None:
    """Print the table."""
    decoder = ServerDecoder()
    append = InputAudioBufferAppend(audio=FRAME)
    rows: list[tuple[str, Callable[[], object]]] = [
        ("append 20 ms: encode_append", lambda: encode_append(FRAME)),
        ("append 20 ms: encode", lambda: encode(append)),
        ("append 20 ms: json and base64", plain_append),
        ("delta 200 ms: ServerDecoder.decode", lambda: decoder.decode(DELTA)),
        ("delta 200 ms: json and base64", plain_delta),
        ("response.done: ServerDecoder.decode", lambda: decoder.decode(DONE)),
        ("response.done: json", lambda: json.loads(DONE)),
    ]
    for name, work in rows:
        print(f"{name:36} {microseconds(work):7.2f} us")


if __name__ == "__main__":
    main()
