"""What another session would have to hear again is kept until it need not be, and not for longer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from callwright.audio.formats import FRAME_MS
from callwright.core import events as on
from callwright.core.unheard import BEFORE_MS, KEPT_MS, QUIET_KEPT_MS, TAIL_MS, Unheard
from callwright.ids import ItemId, Ms, ResponseId

TURN = ItemId("item_turn")
LATEST_MS = QUIET_KEPT_MS - BEFORE_MS
"""How long after the first word a server may tell of a turn."""


def began(unheard: Unheard, at_ms: Ms) -> None:
    unheard.began(on.SpeechStarted(TURN, at_ms), 0)


def ended(unheard: Unheard, at_ms: Ms) -> None:
    unheard.ended(on.SpeechStopped(TURN, at_ms), 0)


def test_most_is_kept_only_while_a_turn_is_open() -> None:
    unheard = Unheard()
    kept = [unheard.kept_ms]
    began(unheard, 1_000)
    kept.append(unheard.kept_ms)
    ended(unheard, 3_000)
    kept.append(unheard.kept_ms)
    unheard.told(on.CallerTranscribed(TURN, "Hello."))
    kept.append(unheard.kept_ms)
    assert kept == [QUIET_KEPT_MS, KEPT_MS, KEPT_MS, QUIET_KEPT_MS]


def test_an_answer_ends_the_need_for_a_turn_as_well_as_its_words() -> None:
    unheard = Unheard()
    began(unheard, 1_000)
    ended(unheard, 3_000)
    unheard.answer_began(on.ResponseStarted(ResponseId("r")))
    assert unheard.kept_ms == KEPT_MS
    unheard.answered(ResponseId("r"))
    assert unheard.kept_ms == QUIET_KEPT_MS


def test_a_turn_that_is_heard_again_is_kept_until_the_new_session_tells_that_it_begins() -> None:
    """The connection may break a second time."""
    unheard = Unheard()
    began(unheard, 1_000)
    assert unheard.take(6_000) == (TURN, 5_000 + BEFORE_MS)
    assert unheard.kept_ms == KEPT_MS
    began(unheard, 1_000)
    unheard.told(on.CallerTranscribed(TURN, "Hello."))
    assert unheard.kept_ms == QUIET_KEPT_MS


def test_a_quiet_call_is_kept_for_a_tail_and_for_a_turn_that_is_told_of_late() -> None:
    assert Unheard().take(60_000) == (None, TAIL_MS)
    assert QUIET_KEPT_MS >= 1_500 + BEFORE_MS


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("began", "ended", "told", "answer", "answered", "lost")),
            st.integers(0, 4_000),
            st.integers(0, LATEST_MS),
        ),
        max_size=30,
    )
)
def test_what_is_wanted_was_kept(steps: list[tuple[str, Ms, Ms]]) -> None:
    """Whatever happens when: by an uplink that lets go of what it need not keep."""
    unheard, now_ms, kept_ms = Unheard(), 0, 0
    first_ms: Ms = 0
    """Where the session's audio begins."""
    again_ms: Ms | None = None
    """Where the turn began that the session hears again."""
    for what, after_ms, ago_ms in steps:
        for _ in range(after_ms // FRAME_MS):
            now_ms += FRAME_MS
            kept_ms = min(kept_ms + FRAME_MS, unheard.kept_ms)
        match what:
            case "began":
                began(unheard, max(first_ms, now_ms - ago_ms if again_ms is None else again_ms))
                again_ms = None
            case "ended":
                ended(unheard, now_ms)
            case "told":
                unheard.told(on.CallerTranscribed(TURN, "Hello."))
            case "answer":
                unheard.answer_began(on.ResponseStarted(ResponseId("r")))
            case "answered":
                unheard.answered(ResponseId("r"))
            case _:
                turn, wanted_ms = unheard.take(now_ms)
                assert min(wanted_ms, now_ms - first_ms) <= kept_ms
                kept_ms = min(wanted_ms, kept_ms)
                first_ms = now_ms - kept_ms
                again_ms = None if turn is None else now_ms - wanted_ms + BEFORE_MS
