"""What it costs to judge a heard sentence, beside a plain search for the last four digits.

Run ``python bench/claims.py``. The sentences are those of ``tests/claims/sets``. Prints microseconds of CPU per
sentence, for each the best of several rounds on one thread, and the ratio to the search; what the search gets wrong
stands beside it.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.claims.sentence_sets import FACTS, cases

from callwright.claims.clauses import read
from callwright.claims.facts import Verdict
from callwright.claims.matcher import claimed, judge
from callwright.claims.numbers import readings
from callwright.claims.words import _parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.claims.sentence_sets import Case

ROUNDS = 15
DIGITS = {"four": "4", "two": "2", "forty": "4", "-": "", ",": ""}
SPOKEN = re.compile("|".join(map(re.escape, DIGITS)))


def search(case: Case) -> bool:
    """Take the sentence for told where the last four digits are in it, digit words written as digits."""
    text = SPOKEN.sub(lambda match: DIGITS[match[0]], case.text.lower()).replace(" ", "")
    return re.search(FACTS[case.operation].last4 or "4417", text) is not None


def told(case: Case) -> bool:
    """Judge the sentence."""
    return judge(case.heard, FACTS[case.operation]).verdict is Verdict.TOLD


def claim(case: Case) -> bool:
    """What it claims, without the fields."""
    return bool(claimed(case.heard, FACTS[case.operation]).said)


def cold(case: Case) -> bool:
    """Judge it with nothing remembered of earlier words."""
    _parts.cache_clear()
    readings.cache_clear()
    return told(case)


def microseconds(judged: Callable[[Case], bool], sentences: list[Case]) -> float:
    """CPU per sentence: the least of `ROUNDS` for each, on average."""
    best = [float("inf")] * len(sentences)
    for _ in range(ROUNDS):
        for number, case in enumerate(sentences):
            read.cache_clear()
            before = time.process_time()
            judged(case)
            best[number] = min(best[number], time.process_time() - before)
    return sum(best) / len(sentences) * 1e6


def main() -> None:
    """Print the table."""
    sentences = cases("written_on") + cases("unseen")
    base = microseconds(search, sentences)
    print(f"{len(sentences)} sentences\n{'':24}{'us each':>10}{'ratio':>8}{'false':>8}{'missed':>8}")
    ways = {"search for the digits": search, "judge": told, "judge, nothing cached": cold, "claimed": claim}
    for name, way in ways.items():
        each = microseconds(way, sentences)
        line = f"{name:24}{each:10.1f}{each / base:8.1f}"
        if way is not claim:
            false = sum(way(case) and not case.is_told for case in sentences)
            missed = sum(case.is_told and not way(case) for case in sentences)
            line += f"{false:8}{missed:8}"
        print(line)


if __name__ == "__main__":
    main()
