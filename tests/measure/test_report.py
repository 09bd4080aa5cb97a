"""The page of a call: safe, whole in one file, the same every time, and of use in a real browser."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest
from tests.measure.far_ends import far_call
from tests.measure.records import HZ, LONG, SPEECH, Laid, record_of, said

from callwright.cli.report import assets
from callwright.measure.batch import RunResult
from callwright.measure.figures import figures_of
from callwright.measure.hearing import HeardCall, hear_call
from callwright.measure.report import Shown, call_page
from callwright.measure.report.markup import join, tag
from callwright.measure.report.sound import COLUMNS_MAX, waveform
from callwright.measure.verdict import Failure, Verdict

FAILED = Verdict((), (Failure("heard_error_ms", "at most 60", "900"), Failure("duplicate_effects", "at most 0", "1")))


@cache
def heard() -> HeardCall:
    """A reply that the caller cuts, of which the client believes every word, and one that is heard whole."""
    cut = Laid(LONG[:2], 1_000, heard_ms=2_100, truncated_ms=4_000)
    naive = replace(cut, transcript=cut.made.text)
    record = record_of([naive, Laid(LONG[:1], 6_000)], [said("go-on", 2_800, over=300)], length_ms=9_000)
    return hear_call(record, SPEECH)


@cache
def shown(verdict: Verdict = FAILED, about: str = "the caller interrupts") -> Shown:
    run = RunResult(7, "0" * 64, figures_of(heard()), verdict)
    return Shown(heard(), run, about, ("--lag-ms 1500",), "callwright call by-hand --seed 7", None, False)


def page(*calls: Shown) -> str:
    return call_page(calls or [shown()], assets())


class Elements(HTMLParser):
    """All elements of a page with their attributes, and those that are left open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((name, dict(attributes)))
        self.open += [] if name in ("meta", "link", "br") else [name]

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def of_class(self, *names: str) -> list[dict[str, str | None]]:
        return [each for _, each in self.found if set(names) <= set((each.get("class") or "").split())]


def test_a_call_that_the_agent_makes_shows_what_the_far_end_did_and_the_keys_that_it_heard() -> None:
    call = hear_call(far_call(length_ms=60_000), SPEECH)
    run = RunResult(7, "0" * 64, figures_of(call), Verdict((), ()))
    elements = Elements(page(Shown(call, run, "a far end", (), "callwright call by-hand", None, True)))
    kinds = [str(bar["class"]).partition("far ")[2] for bar in elements.of_class("bar", "far")]
    assert kinds == [
        "ringing", "menu", "menu", "key", "announcement", "music", "announcement", "music", "person", "music", "person"
    ]  # fmt: skip
    assert page().count("far end") == 0


def test_what_is_put_into_an_element_cannot_leave_it() -> None:
    assert tag("b", "<i>", "&", title='"><script>') == '<b title="&quot;&gt;&lt;script&gt;">&lt;i&gt;&amp;</b>'
    assert join(["a<", tag("br"), ["<b>", [tag("i", "x")]]]) == "a&lt;<br>&lt;b&gt;<i>x</i>"
    assert tag("a", data_t=1, class_=None, hidden=True, open=False) == '<a data-t="1" hidden></a>'


def test_a_page_is_well_formed_and_holds_no_element_that_a_scenario_wrote() -> None:
    text = page(shown(about="</p><script>alert(1)</script>"))
    elements = Elements(text)
    assert elements.open == []
    assert [name for name, _ in elements.found].count("script") == 1
    assert "&lt;script&gt;alert(1)" in text


def test_a_page_names_no_address_but_its_own_data_and_may_load_nothing() -> None:
    text = page()
    assert not re.search(r"(https?:)?//\w", re.sub(r'"data:[^"]*"', '""', text))
    sources = [value for _, each in Elements(text).found for key, value in each.items() if key in ("src", "href")]
    assert sources
    assert all(value and value.startswith(("data:", "#")) for value in sources)
    (policy,) = [each["content"] for _, each in Elements(text).found if "http-equiv" in each]
    assert policy
    assert policy.startswith("default-src 'none'")


def test_the_same_call_makes_the_same_bytes() -> None:
    again = call_page([replace(shown())], assets())
    assert again == page()


def test_the_worst_moment_stands_first_and_leads_to_where_it_is_heard() -> None:
    text = page()
    first, second = re.findall(r'<li class="failed">(.*?)</li>', text)
    assert first == '<span class="when">whole call</span> duplicate_effects: wanted at most 0, got 1'
    cut_ms = heard().replies[0].played.last_audible_ms
    assert cut_ms is not None
    assert f'data-t="{(cut_ms - 800) / 1000:.3f}"' in second
    assert "heard_error_ms: wanted at most 60, got 900" in second


def test_a_word_is_marked_by_what_became_of_it() -> None:
    elements = Elements(page())
    fates = heard().replies[0].fates
    unheard = sum(fate.name == "UNHEARD" for fate in fates)
    assert len(elements.of_class("word", "believed", "bar")) - 1 == unheard > 5  # one is in the legend
    assert len(elements.of_class("word", "caller", "heard", "bar")) - 1 == len(SPEECH["go-on"].words)
    assert len(elements.of_class("cut-here")) - 1 == 1
    for each in elements.of_class("bar", "word", "agent", "heard")[:-1]:
        place = re.fullmatch(r"left:([\d.]+)%;width:([\d.]+)%;top:\d+px", each["style"] or "")
        assert place
        assert 0 <= float(place[1]) + float(place[2]) <= 100.01


def test_calls_beside_each_other_have_their_own_sound_and_their_own_names() -> None:
    other = shown(Verdict(("heard_error_ms",), ()))
    elements = Elements(page(shown(), other))
    ids = [each["id"] for _, each in elements.found if "id" in each]
    assert len(ids) == len(set(ids))
    assert [name for name, _ in elements.found].count("audio") == 2


def test_a_waveform_is_as_high_as_its_sound_and_no_longer_than_can_be_drawn() -> None:
    sound = np.zeros(HZ, np.int16)
    sound[HZ // 2] = -16_384
    assert 'd="M25 50v100"' in waveform(sound, HZ, 1_000, "said", "w")
    assert f'viewBox="0 0 {COLUMNS_MAX} 200"' in waveform(np.zeros(HZ, np.int16), HZ, 3_600_000, "said", "w")
    assert 'd="M0 0"' in waveform(np.zeros(0, np.int16), HZ, 1_000, "said", "w")


@pytest.mark.parametrize(
    ("verdict", "must_fail", "badge"),
    [
        (FAILED, None, "failed"),
        (FAILED, ("heard_error_ms", "duplicate_effects"), "failed as it must"),
        (Verdict(("heard_error_ms",), ()), None, "held"),
    ],
)
def test_the_verdict_is_a_word_and_a_sentence(verdict: Verdict, must_fail: tuple[str, ...] | None, badge: str) -> None:
    text = page(replace(shown(verdict), must_fail=must_fail, is_as_wanted=must_fail is not None))
    assert f">{badge}</span></h2>" in text
    assert "callwright&#x27;s record holds" in text or "callwright's record holds" in text
