"""Pages in a real browser, at two widths."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.measure import test_report, test_report_batch
from tests.measure.browser import browser

from callwright.measure.verdict import Verdict

PLAYS = """(async () => {
  const call = document.querySelector(".call"), audio = call.querySelector("audio");
  const scroll = call.querySelector(".scroll"), axis = call.querySelector(".axis");
  if (!audio.duration) await new Promise((done) => audio.addEventListener("loadedmetadata", done));
  const link = call.querySelector(".moments a");
  link.click();
  const after = { asked: Number(link.dataset.t), at: audio.currentTime, playing: !audio.paused };
  audio.pause();
  const box = axis.getBoundingClientRect();
  scroll.dispatchEvent(new MouseEvent("click", { clientX: box.left + box.width / 2, bubbles: true }));
  const middle = audio.currentTime;
  audio.pause();
  const press = (key) => scroll.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  press("Home"); press("ArrowRight");
  const second = audio.currentTime;
  for (const button of call.querySelectorAll("[data-zoom]")) button.click();
  return { ...after, middle, second, told: scroll.getAttribute("aria-valuetext"), length: audio.duration,
           fits: axis.clientWidth <= scroll.clientWidth + 1,
           sticks_out: document.documentElement.scrollWidth > innerWidth };
})()"""


def test_a_browser_plays_from_where_it_is_asked_and_complains_of_nothing(tmp_path: Path) -> None:
    call, batch = tmp_path / "call.html", tmp_path / "batch.html"
    shown = test_report.shown
    call.write_text(test_report.page(shown(), shown(Verdict((), ()))), "utf-8")
    some = test_report_batch.batch(*(test_report_batch.run(seed, heard_error_ms=seed) for seed in range(1, 9)))
    batch.write_text(test_report_batch.page(some), "utf-8")
    with browser(tmp_path / "profile") as opened:
        for width in (1280, 420):
            opened.open(batch, width, 900)
            assert not opened.value("document.documentElement.scrollWidth > innerWidth")
            opened.open(call, width, 900)
            got = opened.value(PLAYS)
            assert opened.complaints == []
            assert got["at"] == pytest.approx(got["asked"], abs=0.2)
            assert got["playing"]
            assert got["length"] == pytest.approx(9.0, abs=0.02)
            assert got["middle"] == pytest.approx(4.5, abs=0.05)
            assert (got["second"], got["told"]) == (1, "0:01.00")
            assert got["fits"]
            assert not got["sticks_out"]
