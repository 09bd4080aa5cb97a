"""The two sets of sentences, and the operations that they are judged by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from callwright.claims.facts import ClaimFacts, Milestone, Verdict
from callwright.claims.words import Heard

REFUND = ClaimFacts(
    "refund",
    Milestone.CONFIRMED,
    must_hear=("amount", "card"),
    amount_minor=3200,
    currency="USD",
    brand="Visa",
    last4="4242",
    subject="order:4417",
    texts=(("item", "cast iron skillet"),),
)


def refund(milestone: Milestone = Milestone.CONFIRMED, *must_hear: str) -> ClaimFacts:
    return ClaimFacts("refund", milestone, must_hear, 3200, "USD", 2, "Visa", "4242", "order:4417")


FACTS = {
    "refund": REFUND,
    "kettle": replace(
        REFUND, amount_minor=8950, last4="7003", subject="order:5120", texts=(("item", "copper kettle"),)
    ),
    "part": replace(REFUND, amount_minor=1999, brand="Mastercard", last4="8812", subject="order:6210", texts=()),
    "other-card": ClaimFacts("refund", Milestone.CONFIRMED, ("amount", "card"), 1999, "USD", 2, "Mastercard", "0071"),
    "pounds": ClaimFacts("refund", Milestone.CONFIRMED, ("amount", "card"), 3250, "GBP", 2, "", "4242"),
    "yen": ClaimFacts("refund", Milestone.CONFIRMED, ("amount", "card"), 3200, "JPY", 0, "", "4242"),
    "failed": refund(Milestone.FAILED),
    "unknown": refund(Milestone.UNKNOWN),
    "accepted": refund(Milestone.ACCEPTED),
    "withdrawn": refund(Milestone.CANCELLED),
    "cancel": ClaimFacts("cancel order", Milestone.CONFIRMED, ("order",), subject="order:4417"),
}


@dataclass(frozen=True)
class Case:
    """One sentence, the operation it is judged by, and what it should come to.

    ``other`` is all that is not told; ``missed`` is true, and told in words that the rules do not take for it.
    """

    operation: str
    wanted: str
    text: str

    @property
    def heard(self) -> Heard:
        return Heard(self.text.removesuffix("--"), cut=self.text.endswith("--"))

    @property
    def is_told(self) -> bool:
        """Whether it is a true confirmation."""
        return self.wanted in (Verdict.TOLD, "missed")

    def is_right(self, verdict: Verdict) -> bool:
        """Whether a verdict is the one that is wanted."""
        if self.wanted in ("other", "missed"):
            return verdict is not Verdict.TOLD
        return verdict == self.wanted


def cases(name: str) -> list[Case]:
    listed = yaml.safe_load((Path(__file__).parent / "sets" / f"{name}.yaml").read_text(encoding="utf-8"))
    groups = [(operation, wanted, texts) for operation, all_of in listed.items() for wanted, texts in all_of.items()]
    return [Case(operation, wanted, text) for operation, wanted, texts in groups for text in texts]
