"""An action is what its decorator and its signature say, and whatever cannot be one is refused with file and line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import callwright as cw
from callwright.declare.actions import Action
from callwright.declare.tools import Tool

HEAD = """
import callwright as cw
class Bank:
    name = "bank"
payments = Bank()
desk = cw.Agent("desk", model=cw.polyai(), instructions="Be brief.")
"""
PLACE = "desk.py:8: "
CTX = "ctx: cw.Context[None]"
SPOKEN = f"{CTX}, order: str, holding: cw.Spoken"
GOOD = 'kind="refund", provider=payments'


def declare(function: str) -> Mapping[str, Tool]:
    """The tools of a module that declares this one."""
    namespace: dict[str, Any] = {"__name__": "desk"}
    exec(compile(f"{HEAD}\n{function}\n", "desk.py", "exec", dont_inherit=True), namespace)
    tools: Mapping[str, Tool] = namespace["desk"].tools
    return tools


def action(settings: str = GOOD, arguments: str = SPOKEN, *, head: str = "async def", returns: str = "cw.Terms") -> str:
    body = '    """Refund."""\n    return cw.Terms("order:4417")'
    return f"@desk.action({settings})\n{head} refund({arguments}) -> {returns}:\n{body}"


def declared(settings: str) -> Action:
    found = declare(action(settings))["refund"].action
    assert found is not None
    return found


REFUSED: Mapping[str, tuple[str, str]] = {
    "no provider": (action('kind="refund", provider=None'), "provider is None; expected the system that does it"),
    "a provider without a name": (action('kind="refund", provider=object()'), "expected the system that does it"),
    "an empty name": (action('kind="refund", provider=""'), "expected the system that does it"),
    "nothing said of a provider": (action('kind="refund"'), "provider is ''; expected the system that does it"),
    "nothing said of a kind": (action("provider=payments"), "kind is ''; expected a word such as refund"),
    "no settings": (
        action().replace(f"({GOOD})", "", 1),
        "action refund needs @agent.action(kind=..., provider=...)",
    ),
    "no kind": (action('kind="", provider=payments'), "kind is ''; expected a word such as refund"),
    "a kind of several words": (action('kind="Re fund", provider=payments'), "expected a word such as refund"),
    "a kind without words": (
        action('kind="teleport", provider=payments'),
        "kind 'teleport': no words are known for it; give a Lexicon, or use one of refund, cancel, cancellation, "
        "booking, so that it is known when a caller is told: lexicon=callwright.Lexicon(...)",
    ),
    "an empty slot": (action(f'{GOOD}, slot=" "'), "slot is empty"),
    "what cannot be heard": (
        action(f'{GOOD}, must_hear=("amont",)'),
        "must_hear: there is no 'amont'; known: amount, card, subject",
    ),
    "one text to hear": (action(f'{GOOD}, must_hear="amount"'), "must_hear is one text; expected a tuple"),
    "an authority of another type": (action(f'{GOOD}, authority="me"'), "authority is 'me'"),
    "no spoken argument": (action(GOOD, f"{CTX}, order: str"), "action refund needs one spoken argument"),
    "two spoken arguments": (action(GOOD, f"{CTX}, a: cw.Spoken, b: cw.Spoken"), "needs one spoken argument"),
    "sync": (action(head="def"), "tool refund must be an async function"),
    "no time": (action(f"{GOOD}, timeout_ms=0"), "timeout_ms is 0, which must be positive"),
    "what reads": (action(returns="cw.Facts"), "is declared as an action, so it must be annotated to return"),
    "what returns either": (action(returns="cw.Terms | str"), "is declared as an action"),
    "a tool that plans": (
        f'@desk.tool\nasync def refund({CTX}) -> cw.Terms:\n    """Refund."""\n    return cw.Terms("order:1")',
        "plans an action, as it returns callwright.Terms; declare it with action(...)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_an_action_is_refused_with_file_and_line(case: str) -> None:
    function, problem = REFUSED[case]
    with pytest.raises(cw.DeclarationError) as refused:
        declare(function)
    assert problem in str(refused.value)
    assert str(refused.value).startswith(PLACE)


def test_a_second_tool_of_an_actions_name_is_refused() -> None:
    with pytest.raises(cw.DeclarationError, match=r"has a tool refund already, at desk\.py:8; rename one"):
        declare(f"{action()}\n{action()}")


def test_an_action_names_its_provider_or_takes_its_name() -> None:
    assert declared(GOOD).provider == "bank"
    assert declared('kind="refund", provider="payments"').provider == "payments"


def test_an_action_is_automatic_and_full_unless_it_says_otherwise() -> None:
    plain = declared(GOOD)
    assert (plain.slot, plain.must_hear, plain.authority) == ("full", (), cw.AUTOMATIC)
    asking = declared(f'{GOOD}, slot="line:1", must_hear=("amount", "card"), authority=cw.Authority.CALLER')
    assert (asking.slot, asking.must_hear) == ("line:1", ("amount", "card"))
    assert asking.authority is cw.Authority.CALLER


def test_a_slot_can_be_found_from_the_terms_and_must_be_a_text() -> None:
    by_line = declared(f'{GOOD}, slot=lambda terms: terms.details["line"]')
    assert by_line.slot_of(cw.Terms("order:4417", details={"line": "line:2"})) == "line:2"
    with pytest.raises(ValueError, match="a slot is a text that is not empty, not ''"):
        by_line.slot_of(cw.Terms("order:4417", details={"line": ""}))


def test_details_can_have_to_be_heard_and_a_kind_can_bring_its_words() -> None:
    found = declared(
        'kind="teleport", provider=payments, details=("place",), must_hear=("place",), '
        'lexicon=cw.Lexicon(nouns=("trip",), done=("teleported",), base=("teleport",))'
    )
    assert found.must_hear == ("place",)
    assert found.lexicon is not None


def test_the_model_sees_an_action_as_any_other_tool() -> None:
    schema = declare(action())["refund"].schema(spoken=True)
    assert schema["name"] == "refund"
    assert schema["description"] == "Refund."
    assert sorted(schema["parameters"]["properties"]) == ["holding", "order"]  # type: ignore[index, call-overload]


def test_a_cards_token_shows_in_no_repr():
    assert "tok_visa" not in repr(cw.Terms("order:4417", card=cw.Card("tok_visa", "Visa", "4242")))
