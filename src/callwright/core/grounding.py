"""What replies rest on, as far as the server tells: the topics that they cite, and whether none covers them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from callwright.ids import ItemId

if TYPE_CHECKING:
    from callwright.core.transcript import Turn


@dataclass(slots=True)
class Grounds:
    """The grounds of the replies of one call."""

    _of: dict[ItemId, tuple[tuple[str, ...], bool | None]] = field(default_factory=dict)

    def rests_on(self, item_id: ItemId, topics: tuple[str, ...], *, out_of_domain: bool | None) -> None:
        """The server told of a reply."""
        self._of[item_id] = topics, out_of_domain

    def beside(self, turn: Turn) -> Turn:
        """A turn with its grounds."""
        topics, out_of_domain = self._of.get(turn.item_id, ((), None))
        if not topics and out_of_domain is None:
            return turn
        return replace(turn, cited_topics=topics, out_of_domain=out_of_domain)
