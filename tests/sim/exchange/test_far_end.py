"""What the far end sends, and what its book says of it, from samples alone."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from tests.sim.test_caller import SPEECH

from callwright.audio.dtmf import tones
from callwright.audio.formats import FRAME_MS, PCM
from callwright.audio.levels import active_spans, level_dbfs
from callwright.audio.mix import gain_factor, mix
from callwright.audio.resample import resample
from callwright.ids import Ms
from callwright.sim.caller import AUDIBLE_DBFS, silent_frame
from callwright.sim.ear import Ear
from callwright.sim.exchange import Callee, FarEnd, sounds
from callwright.sim.exchange.tree import HANG_UP, Awaits, HoldMusic, Node, Sound, Tree, Wait
from callwright.sim.room import room_lines, together
from callwright.sim.speech import RATE_HZ as RECORDED_HZ

RATE_HZ = 8_000
FRAME = RATE_HZ * FRAME_MS // 1000
LINES = together(SPEECH, room_lines(), sounds.tones())

MENU = Node((Sound("menu", "ask-pool"), Wait(Awaits.KEY, 6_000, "menu")), HANG_UP, {"2": "queue"})
TREE = Tree(
    "menu",
    {
        "menu": MENU,
        "queue": Node((HoldMusic("music", 2), Sound("announcement", "go-on"), HoldMusic("music", 2)), "sam"),
        "sam": Node((Sound("person", "ask-parking"), Wait(Awaits.ANSWER, 10_000)), HANG_UP),
        "mailbox": Node(
            (
                *(Sound("announcement", "ask-check-in"), Wait(Awaits.NOTHING, 900), Sound("announcement", "ask-pool")),
                *(Sound("beep", "beep", 400), Wait(Awaits.NOTHING, 5_000, "recording")),
            ),
            HANG_UP,
        ),
        "engaged": Node((Sound("busy", "busy", 3_000),), HANG_UP),
    },
)


def call(
    answers: str,
    *heard: tuple[Ms, PCM],
    until_ms: Ms = 60_000,
    hold_s: int = 8,
    rings: int = 0,
    seed: int = 1,
    hiss_dbfs: int | None = None,
) -> tuple[FarEnd, PCM]:
    """A call in which these sounds arrive, each from its instant on; the far end, and all that it sent."""
    far = FarEnd(Callee(TREE, answers, rings, hold_s, hiss_dbfs), LINES, RATE_HZ, random.Random(seed))
    ear = np.zeros(until_ms * RATE_HZ // 1000, np.int16)
    for at_ms, samples in heard:
        at = at_ms * RATE_HZ // 1000
        ear[at : at + len(samples)] = samples[: len(ear) - at]
    sent = []
    for now_ms in range(0, until_ms, FRAME_MS):
        frame = ear[now_ms * RATE_HZ // 1000 :][:FRAME]
        sent.append(far.step(now_ms, frame if frame.any() else silent_frame(RATE_HZ), None))
        if far.hung_up:
            break
    return far, np.concatenate(sent)


def voice(line_id: str) -> PCM:
    return resample(SPEECH[line_id].pcm, RECORDED_HZ, RATE_HZ)


def told(far: FarEnd) -> list[tuple[object, ...]]:
    return [(span.kind, span.line_id, span.started_ms, span.ended_ms, span.node) for span in far.book.spans]


def test_a_key_at_its_ear_leads_from_the_menu_through_the_queue_to_a_person() -> None:
    far, sent = call("menu", (5_500, tones("2", RATE_HZ)))
    (key,) = far.book.keys
    assert (key.key, abs(key.started_ms - 5_500) <= 10, abs(key.ended_ms - 5_600) <= 10) == ("2", True, True)
    menu, waiting, *rest = told(far)
    assert menu == ("menu", "ask-pool", 0, 4_260, "menu")
    (kind, line_id, began_ms, left_ms, node) = waiting
    assert (kind, line_id, began_ms, node) == ("menu", None, 4_260, "menu")
    assert isinstance(left_ms, int)
    assert 5_600 <= left_ms <= 5_680
    assert rest == [
        ("music", "music", left_ms, left_ms + 4_000, "queue"),
        ("announcement", "go-on", left_ms + 4_000, left_ms + 5_800, "queue"),
        ("music", "music", left_ms + 5_800, left_ms + 9_800, "queue"),
        ("person", "ask-parking", left_ms + 9_800, left_ms + 12_880, "sam"),
    ]
    assert far.hung_up
    assert far.book.reached_person
    assert len(sent) == (left_ms + 12_880 + 10_000 + FRAME_MS) * RATE_HZ // 1000


@pytest.mark.parametrize("into_ms", [700, 1_000, 1_100])
def test_c060_a_key_under_speech_is_lost(into_ms: Ms) -> None:
    """C060: the detector wants the key alone; beside speech as loud as it, it is a matter of luck."""
    key = np.concatenate((np.zeros(into_ms * 8, np.int16), tones("2", RATE_HZ)))
    alone, _ = call("menu", (5_000, key))
    over, _ = call("menu", (5_000, mix(key, voice("ask-check-in"), gain_factor(8))))
    assert [heard.key for heard in alone.book.keys] == ["2"]
    assert over.book.keys == ()
    assert not [span for span in over.book.spans if span.node == "queue"]


@pytest.mark.parametrize("tone_ms", [20, 40])
def test_c060_a_key_has_to_be_long_enough(tone_ms: Ms) -> None:
    """C060: 40 ms are a key, 20 ms are none."""
    far, _ = call("menu", (5_500, tones("2", RATE_HZ, tone_ms=tone_ms)), until_ms=7_000)
    assert [heard.key for heard in far.book.keys] == ["2"] * (tone_ms >= 40)


def test_lines_are_sent_as_they_were_recorded() -> None:
    far, sent = call("menu", until_ms=4_260)
    assert np.array_equal(sent[: len(voice("ask-pool"))], voice("ask-pool"))
    (line,) = far.lines
    assert (line.line_id, line.started_ms, line.trigger, line.is_interruption) == ("ask-pool", 0, "menu", False)
    assert far.unspoken == ()


def test_what_lies_over_the_agents_speech_is_counted() -> None:
    far, _ = call("menu", (2_000, voice("thank-you")), until_ms=6_000)
    assert 500 <= far.lines[0].overlapped_ms <= SPEECH["thank-you"].ms


def test_c063_a_mailbox_greets_for_nine_seconds_beeps_and_records() -> None:
    """C063: the message is what is said behind the beep."""
    far, sent = call("mailbox", (10_500, voice("ask-parking")))
    greeting = [(kind, started, ended) for kind, _, started, ended, _ in told(far)]
    assert greeting == [
        *(("announcement", 0, 4_320), ("announcement", 5_220, 9_480), ("beep", 9_480, 9_880)),
        ("recording", 9_880, 14_880),
    ]
    assert far.book.voicemail_from_ms == 9_880
    beep = sent[9_480 * 8 : 9_880 * 8].astype(np.float64)
    assert np.argmax(np.abs(np.fft.rfft(beep))) * RATE_HZ / len(beep) == 1_000
    assert not sent[9_880 * 8 :].any()


def test_tones_have_their_cadence() -> None:
    def cadence(answers: str, rings: int, until_ms: Ms) -> Sequence[tuple[Ms, Ms]]:
        return active_spans(call(answers, rings=rings, until_ms=until_ms)[1], RATE_HZ, AUDIBLE_DBFS, hang_ms=100)

    assert cadence("menu", 2, 11_900) == [(0, 2_000), (6_000, 8_000)]
    assert cadence("engaged", 0, 9_000) == [(0, 500), (1_000, 1_500), (2_000, 2_500)]


def test_music_runs_on_from_a_place_that_the_seed_draws() -> None:
    first, again, other = (call("queue", hold_s=60, until_ms=30_000, seed=seed)[1] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    loop = sounds.framed(LINES["music"], RATE_HZ, is_loop=True)
    assert np.array_equal(first[: len(loop)], first[len(loop) : 2 * len(loop)])
    assert abs(level_dbfs(first) + 20) <= 1


def test_what_is_sent_on_hold_is_one_array() -> None:
    """An hour of music is to cost no memory beyond the loop."""
    far = FarEnd(Callee(TREE, "queue", 0, 3_600), LINES, RATE_HZ, random.Random(1))
    loop = sounds.framed(LINES["music"], RATE_HZ, is_loop=True)
    frames = (far.step(now_ms, silent_frame(RATE_HZ), None) for now_ms in range(0, 13_000, FRAME_MS))
    assert all(np.shares_memory(frame, loop) for frame in frames)


def test_an_ear_knows_all_that_the_far_end_sends() -> None:
    ear = Ear([*SPEECH.values(), LINES["music"], *sounds.tones().values()])
    for answers in ("menu", "mailbox", "engaged"):
        far, sent = call(answers, (11_500, tones("2", RATE_HZ)), rings=1, hold_s=4)
        for span in far.book.spans:
            heard = ear.listen(sent[span.started_ms * 8 : min(span.ended_ms, span.started_ms + 5_000) * 8], RATE_HZ)
            assert {word.line_id for word in heard} == {span.line_id} - {None}, span


def test_c070_a_telephone_hisses_for_the_whole_call_and_passes_its_band_only() -> None:
    """C070: noise at -42 dBFS between the words, from the first frame to the last."""
    far, sent = call("mailbox", until_ms=14_000, hiss_dbfs=-42)
    pause = sent[10_200 * 8 : 13_800 * 8]
    assert abs(level_dbfs(pause) + 42) <= 1
    power = np.abs(np.fft.rfft(pause.astype(np.float64))) ** 2
    assert power[: 150 * len(pause) // RATE_HZ].mean() < power[500 * len(pause) // RATE_HZ :].mean() / 1000
    assert told(far) == told(call("mailbox", until_ms=14_000)[0])
