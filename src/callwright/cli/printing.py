"""How what people look at is printed: as wide as reads well, commands and paths whole, in the output's own alphabet."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
from rich.console import Console, RenderableType
from rich.text import Text

if TYPE_CHECKING:
    from callwright.cli.plan import Plan
    from callwright.ids import Ms

_NARROWEST, _WIDEST = 60, 120
_ASCII = str.maketrans("█▄·", "#=.")
"""What the picture is drawn with where the output's encoding has no blocks."""
_OBEYED = re.compile(r"\x1b(?!\[[\d;]*m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]")
"""What a terminal obeys, but for colors and line breaks: a model may say anything."""


def width() -> int:
    """Columns that are used."""
    return max(_NARROWEST, min(Console().width, _WIDEST))


def put(*parts: RenderableType) -> None:
    """Print one below the other, no wider than reads well, and without blanks at the ends of lines.

    Text that must not be wrapped is left as long as it is: a command or a path is copied whole.
    """
    console = Console(highlight=False, emoji=False, markup=False, width=width())
    with console.capture() as captured:
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))
    text = _OBEYED.sub("", captured.get())
    text = text if console.encoding.startswith("utf") else text.translate(_ASCII)
    for line in text.splitlines():
        click.echo(line.rstrip(), color=console.is_terminal)


def unobeyed(text: str) -> str:
    """A text without what a terminal obeys, colors among it; a line break stays."""
    return _OBEYED.sub("", text).replace("\x1b", "")


def unwrapped(*parts: str | tuple[str, str]) -> Text:
    """A line that holds a command or a path, which must not be broken."""
    return Text.assemble(*parts, no_wrap=True, overflow="ignore")


def heading(plan: Plan, seeds: str) -> Text:
    """Who takes the calls of which scenario, on which seeds and with which settings."""
    what = ", ".join([plan.scenario.name, seeds, *plan.setup.settings()])
    return Text.assemble((plan.client, "bold reverse"), f"  {what}")


def digits(value: float) -> str:
    """A value with two decimals at most."""
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.2f}".rstrip("0").rstrip(".")


def clock(ms: Ms) -> str:
    """An instant of a call in minutes and seconds."""
    return f"{ms // 60_000}:{ms // 1000 % 60:02}"
