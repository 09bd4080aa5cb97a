"""A dictated number is as long as it was declared, or it is refused in words for the model."""

from __future__ import annotations

from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.declare.test_tools import CTX, declare, tool

import callwright as cw
from callwright.declare.tools import Tool
from callwright.errors import UsageError


def declared(annotation: str) -> Tool:
    return declare(tool(f"{CTX}, number: {annotation}"))["look"]


def test_the_model_is_told_how_many_digits_are_wanted() -> None:
    agent = cw.Agent("desk", model=cw.polyai(), instructions="Be brief.")

    @agent.tool
    async def look(
        ctx: cw.Context[None],
        order: Annotated[str, "the order number", cw.Digits(8)],
        phone: Annotated[str, cw.Digits(10, 11)],
        pin: Annotated[str | None, cw.Digits(1)] = None,
    ) -> str:
        """Look."""
        return ""

    properties = agent.tools["look"].parameters["properties"]
    assert [described["description"] for described in properties.values()] == [
        "the order number, 8 digits",
        "10 to 11 digits",
        "1 digit",
    ]
    assert agent.tools["look"].read('{"order": "4178 8209", "phone": "555.013.4444"}') == {
        "order": "41788209",
        "phone": "5550134444",
        "pin": None,
    }


LOOK = declared("Annotated[str, cw.Digits(4, 6)]")


@given(st.from_regex(r"[0-9]{1,12}", fullmatch=True), st.sampled_from([" ", "-", ". ", ""]))
def test_digits_are_counted_however_they_are_divided(digits: str, between: str) -> None:
    arguments = f'{{"number": "{between.join(digits)}"}}'
    if 4 <= len(digits) <= 6:
        assert LOOK.read(arguments) == {"number": digits}
    else:
        with pytest.raises(UsageError, match="nothing was done") as refused:
            LOOK.read(arguments)
        assert digits not in str(refused.value).replace("4 to 6", "") or len(digits) < 3


@pytest.mark.parametrize("value", ["", "four one", "41a", "\u0664\u0661\u0667\u0668", "+4178", "-4178", "41\\n78"])
def test_what_is_no_number_is_refused_without_being_quoted(value: str) -> None:
    with pytest.raises(UsageError, match=r"^number is to be 4 digits, in figures and nothing else; nothing was done$"):
        declared("Annotated[str, cw.Digits(4)]").read(f'{{"number": "{value}"}}')


@pytest.mark.parametrize("annotation", ["Annotated[int, cw.Digits(4)]", "Annotated[cw.Spoken, cw.Digits(4)]"])
def test_only_a_str_has_digits(annotation: str) -> None:
    with pytest.raises(cw.DeclarationError, match=r"^desk\.py:9: argument .* a number with Digits is a str"):
        declared(annotation)


@pytest.mark.parametrize("digits", [(0,), (-1,), (5, 4)])
def test_a_number_has_a_digit_and_no_fewer_than_its_most(digits: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="one digit or more"):
        cw.Digits(*digits)
