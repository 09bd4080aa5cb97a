"""``callwright serve-provider``: the stand-in payment provider as a real server."""

from __future__ import annotations

import asyncio
import logging
import signal

import click

from callwright.cli import options
from callwright.ids import Ms
from callwright.ledger.provider import Idempotency
from callwright.sim.provider import SHOP, Answers, Charge, Desk, ProviderSettings
from callwright.sim.provider.server import ProviderServer
from callwright.sim.provider.settings import Fault, parse_fault

_ENDS = (signal.SIGINT, signal.SIGTERM)


@click.command("serve-provider")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="NAME", help="Where it listens.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=8766, show_default=True, metavar="N", help="0 takes a free one."
)
@click.option(
    "--answers",
    type=click.Choice([each.value for each in Answers]),
    default=Answers.PENDING.value,
    show_default=True,
    help="Soon with a pending refund, or once it is settled.",
)
@click.option(
    "--idempotency",
    type=click.Choice([each.value for each in Idempotency]),
    default=Idempotency.REPLAY.value,
    show_default=True,
    help="What it does with a key that it has seen.",
)
@click.option("--after-ms", type=click.IntRange(0), default=150, show_default=True, metavar="MS", help="To an answer.")
@click.option(
    "--settles-ms", type=click.IntRange(0), default=4_000, show_default=True, metavar="MS", help="To the settlement."
)
@click.option(
    "--charge",
    "charges",
    multiple=True,
    metavar="ID=MINOR,CURRENCY,CARD...",
    help="What can be refunded, and to which cards; the demo shop's orders if none is given. May be repeated.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME=RATE[*TIMES]",
    help="Let something go wrong, at a rate of 0 to 1, at most so many times. May be repeated.",
)
@options.seed
@click.option("--quiet", is_flag=True, help="Print no line for each request.")
def command(
    host: str,
    port: int,
    answers: str,
    idempotency: str,
    after_ms: Ms,
    settles_ms: Ms,
    charges: tuple[str, ...],
    faults: tuple[str, ...],
    seed: int,
    quiet: bool,
) -> None:
    """Run the stand-in payment provider: refunds that settle, fail, get lost on the way, or land late.

    GET /book shows every request and every refund with its instant. One line for each request goes to standard error,
    without keys and content. Ctrl-C ends it with 0.
    """
    settings = ProviderSettings(
        answers=Answers(answers),
        idempotency=Idempotency(idempotency),
        after_ms=after_ms,
        settles_ms=settles_ms,
        faults=_faults(faults),
    )
    desk = Desk(settings, [Charge.parse(text) for text in charges] or SHOP, seed)
    if not quiet:
        log = logging.getLogger("callwright.access")
        log.addHandler(logging.StreamHandler())
        log.setLevel(logging.INFO)
    asyncio.run(_serve(ProviderServer(desk, host=host, port=port)))


async def _serve(server: ProviderServer) -> None:
    """Serve until a signal asks for the end; a second one does not wait."""
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    async with server:
        for number in _ENDS:
            loop.add_signal_handler(number, asked.set)
        click.echo(f"serving a stand-in payment provider at {server.url}; Ctrl-C ends it")
        await asked.wait()
        for number in _ENDS:
            loop.remove_signal_handler(number)


def _faults(texts: tuple[str, ...]) -> dict[str, Fault]:
    return dict(parse_fault(text) for text in texts)
