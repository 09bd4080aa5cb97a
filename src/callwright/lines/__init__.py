"""Places where a call's audio comes from and goes to, one file each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callwright.lines.soundcard import sound_card as sound_card

__all__ = ["sound_card"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from callwright.lines import soundcard

    return getattr(soundcard, name)
