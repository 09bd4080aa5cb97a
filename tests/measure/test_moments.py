"""Where to listen: the instant of each figure, and the order of what went wrong."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from tests.measure.records import LONG, SPEECH, Laid, record_of, said

from callwright.measure.figures import METRICS, figures_of
from callwright.measure.hearing import HeardCall, hear_call
from callwright.measure.moments import PLACES, Moment, instants, moments
from callwright.measure.verdict import Failure, Verdict
from callwright.sim.record import Effect


@cache
def call() -> HeardCall:
    """Two cut replies of which the client believes everything, and two refunds of one order, never told."""
    short = Laid(LONG[:1], 3_000, heard_ms=1_500, truncated_ms=1_500)
    long = Laid(LONG[:2], 12_000, heard_ms=1_000, truncated_ms=3_000)
    replies = [replace(each, transcript=each.made.text) for each in (short, long)]
    lines = [said("ask-parking", 500), said("go-on", 4_400, over=100)]
    book = [
        Effect(f"re_{n}", "refund", "order:4417", "full", 3200, "USD", "card:4242", status, at_ms)
        for n, status, at_ms in (
            (1, "pending", 5_000),
            (2, "pending", 7_000),
            (1, "succeeded", 8_000),
            (2, "succeeded", 99_000),
        )
    ]
    record = replace(record_of(replies, lines, length_ms=16_000), book=tuple(book), action_tools=("pay",))
    return hear_call(record, SPEECH)


def last_ms(number: int) -> int:
    at_ms = call().replies[number].played.last_audible_ms
    assert at_ms is not None
    return at_ms


def test_every_place_is_that_of_a_figure_or_of_an_expectation() -> None:
    assert sorted(PLACES.keys() - METRICS.keys()) == ["effects", "ended", "heard"]


def test_a_figure_is_heard_where_it_came_about_the_worst_first() -> None:
    assert instants(call(), "unheard_words_in_transcript") == [last_ms(1), last_ms(0)]
    assert instants(call(), "heard_error_ms") == [last_ms(1)]  # of the other the server was told the truth
    assert instants(call(), "duplicate_effects") == [7_000]
    assert instants(call(), "untold_at_hangup") == [8_000, 16_000]
    assert instants(call(), "ended") == [16_000]
    turns = call().turns
    assert instants(call(), "yield_latency_ms") == [turns[1].onset_ms]
    assert instants(call(), "response_latency_ms") == [turns[1].end_ms, turns[0].end_ms]
    silence = instants(call(), "dead_air_ms")
    assert abs(silence[0] - turns[1].end_ms) <= 20
    assert instants(call(), "connected_s") == []


def test_what_was_done_on_the_world_stands_before_how_it_felt_and_failures_before_all_else() -> None:
    names = ("dead_air_ms", "connected_s", "unheard_words_in_transcript", "duplicate_effects")
    failed = Verdict((), tuple(Failure(name, "at most 0", "9") for name in names))
    found = moments(call(), figures_of(call()), failed)
    told = [moment.what.partition(":")[0] for moment in found if moment.is_failure]
    assert told == ["duplicate_effects", "unheard_words_in_transcript", "dead_air_ms", "connected_s"]
    others = found[len(names) :]
    assert others == (Moment(last_ms(0), others[0].what, is_failure=False),)  # the other cut is told already
    assert others[0].what.startswith("a reply is cut; ")


def test_what_nobody_expected_is_shown_by_time_where_nothing_failed() -> None:
    found = moments(call(), figures_of(call()), Verdict((), ()))
    assert [moment.at_ms for moment in found] == sorted(moment.at_ms or 0 for moment in found)
    assert sum(moment.what.startswith("nobody speaks for ") for moment in found) == 1


def test_a_card_number_in_what_was_measured_is_masked() -> None:
    failed = Verdict((), (Failure("invariants", "no card", "kept 4111 1111 1111 1111"),))
    assert moments(call(), figures_of(call()), failed)[0].what.endswith("kept **** **** **** 1111")
