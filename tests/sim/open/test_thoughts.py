"""What a reasoning model thinks, in a text that comes in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.sim.open.thoughts import Aloud


def said(*pieces: str) -> str:
    aloud = Aloud()
    return "".join([*map(aloud.take, pieces), aloud.rest()])


@pytest.mark.parametrize(
    ("text", "aloud"),
    [
        ("<think>He wants parking.</think>\n\nParking is valet only.", "\n\n\nParking is valet only."),
        ("One moment.<think>Which?</think>It is valet.", "One moment.\nIt is valet."),
        ("<THINK>a</think>b<Think>c</THINK>d", "\nb\nd"),
        ("<think></think>Yes.", "\nYes."),
        ("<think>a <think> b</think>Yes.", "\nYes."),
        ("Yes.<think>and nobody ends it", "Yes.\n"),
        ("<think>a</thi", "\n"),
        ("he wants parking</think>Valet only.", "Valet only."),
        ("<think>a<think>b</think>c</think>Yes.", "Yes."),
        ("2 < 3, <thi and </b>", "2 < 3, <thi and </b>"),
        ("it is <thin", "it is <thin"),
        ("\u0130 <think>\u0130</think>\u0130", "\u0130 \n\u0130"),
        ("", ""),
    ],
)
def test_of_a_text_this_is_said(text: str, aloud: str) -> None:
    assert said(text) == aloud


def test_what_stands_before_a_thought_does_not_wait_for_its_end() -> None:
    aloud = Aloud()
    assert aloud.take("One moment.<th") == "One moment."
    assert aloud.take("ink>") == "\n"
    assert aloud.take("Parking? ") == ""
    assert aloud.take("</think") == ""
    assert aloud.take(">Valet.") == "Valet."


TEXT = st.text("ab <>/\u0130", max_size=12)


@given(st.lists(st.tuples(TEXT, TEXT), max_size=4), TEXT, st.lists(st.integers(1, 9), min_size=1))
def test_pieces_do_not_matter(blocks: list[tuple[str, str]], end: str, sizes: list[int]) -> None:
    """However a text is cut into pieces, all but its thoughts is there, and nothing of them."""
    text = "".join(f"{before}<think>{thought}</think>" for before, thought in blocks) + end
    pieces, at = [], 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
    assert said(*pieces) == "".join(f"{before}\n" for before, _ in blocks) + end
