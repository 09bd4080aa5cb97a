"""The two sets of sentences, and the operations that they are judged by."""

from __future__ import annotations

from dataclasses import dataclass
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
)


def refund(milestone: Milestone = Milestone.CONFIRMED, *must_hear: str) -> ClaimFacts:
    return ClaimFacts("refund", milestone, must_hear, 3200, "USD", 2, "Visa", "4242", "order:4417")


FACTS = {
    "refund": REFUND,
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
    """One sentence, the operation it is judged by, and what it should come to ("other" is all that is not told)."""

    operation: str
    wanted: str
    text: str

    @property
    def heard(self) -> Heard:
        return Heard(self.text.removesuffix("--"), cut=self.text.endswith("--"))

    @property
    def is_told(self) -> bool:
        return self.wanted == Verdict.TOLD


def cases(name: str) -> list[Case]:
    listed = yaml.safe_load((Path(__file__).parent / "sets" / f"{name}.yaml").read_text(encoding="utf-8"))
    groups = [(operation, wanted, texts) for operation, all_of in listed.items() for wanted, texts in all_of.items()]
    return [Case(operation, wanted, text) for operation, wanted, texts in groups for text in texts]
