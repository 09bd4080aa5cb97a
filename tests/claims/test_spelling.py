"""A name is spelled letter by letter, and is known again by its letters alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.claims.facts import ClaimFacts, Milestone, Verdict
from callwright.claims.matcher import judge
from callwright.claims.spelling import is_spelled, spelled
from callwright.claims.words import Heard, plain


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("Reid", "R-E-I-D"),
        ("Ann Reid", "A-N-N R-E-I-D"),
        ("O'Brien", "O-B-R-I-E-N"),
        ("room 12", "R-O-O-M 12"),
        ("reid@mail.com", "R-E-I-D at M-A-I-L dot C-O-M"),
        ("", ""),
    ],
)
def test_letters_are_set_apart_and_numbers_are_not(text, letters):
    assert spelled(text) == letters


@pytest.mark.parametrize("said", ["R-E-I-D", "R E I D", "R, E, I, D", "r. e. i. d.", "with name R-E-I-D then"])
def test_a_name_is_known_by_its_letters(said):
    assert is_spelled("Reid", plain(said))


@pytest.mark.parametrize("said", ["Reid", "R-E-E-D", "R-E-I-D-S", "B R E I D", "R E I", "R E and I D", ""])
def test_another_name_or_no_spelling_is_none(said):
    assert not is_spelled("Reid", plain(said))


def test_letters_at_a_cut_may_go_on():
    assert not is_spelled("Reid", plain("R E I D"), cut=True)
    assert is_spelled("Reid", plain("R E I D right"), cut=True)
    assert not is_spelled("", plain("R E I D"))


@given(st.text(alphabet="abcdefghij XYZ", min_size=1, max_size=12).filter(str.strip), st.text(max_size=20))
def test_every_text_is_known_by_its_own_spelling(text, before):
    assert is_spelled(text, plain(f'{before} name "{spelled(text)}" please'))


def test_a_spelled_name_is_heard():
    facts = ClaimFacts("booking", Milestone.CONFIRMED, ("name",), subject="table:4", texts=(("name", "Reid"),))
    assert judge(Heard("Your table is booked, with name R-E-I-D."), facts).verdict is Verdict.TOLD
    assert judge(Heard("Your table is booked, with name R-E-E-D."), facts).verdict is Verdict.PARTIAL
