"""Figures of a call that the agent makes: what it said while nobody was there, its keys, and how a person was met."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from callwright.claims.presses import claimed_keys
from callwright.core.keyclaims import CLAIM_MS
from callwright.measure import goodbye
from callwright.measure.metric import Aim, Elsewhere, Lack, Metric
from callwright.measure.played import audible_bounds_ms
from callwright.sim.models import CallerSaid
from callwright.wire.profiles import PROFILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from callwright.ids import Ms
    from callwright.measure.far import FarSide
    from callwright.measure.hearing import HeardCall
    from callwright.measure.metric import Values
    from callwright.sim.record import CallRecord

ALONE_MS: Ms = 200
"""How long before and after a key nothing else is to be heard."""
MUSIC: Final = "[music]"
"""How a server writes a turn that it takes music for."""


def hold_summary(call: HeardCall) -> dict[str, object] | None:
    """What came of a call that the agent made, and how it waited, as a JSON object; None of one that it took."""
    far, record = call.far, call.record
    if far is None:
        return None
    return {
        "result": record.result,
        "ended_by": record.ended_by,
        "ended_because": record.ended_because,
        "keys_pressed": far.keys,
        "seconds_on_hold": None if far.on_hold_ms is None else far.on_hold_ms / 1000,
        "spoke_on_hold": [asdict(each) for each in far.spoken_on_hold],
        "answered_after_ms": far.answered_after_ms,
        "seconds_connected": record.connected_ms / 1000,
        "cost_usd": cost_usd(record),
        "phases": [asdict(phase) for phase in far.phases],
        "client": None if record.hold is None else asdict(record.hold),
    }


def cost_usd(record: CallRecord) -> float | None:
    """What its connection costs, without tokens; None where the provider takes nothing for time, or none is known."""
    micro_usd = PROFILES[record.server].micro_usd(record.connected_ms)
    return None if micro_usd is None else micro_usd / 1_000_000


def _of_far(figure: Callable[[HeardCall, FarSide], Iterable[float]]) -> Callable[[HeardCall], Values]:
    """A figure that only a call with a far end has."""
    return lambda call: () if call.far is None else list(figure(call, call.far))


def _known(value: float | None) -> Values:
    return () if value is None else (value,)


def _menu_talked_over(far: FarSide) -> Values:
    menus = far.spans("menu")
    over = [each for each in far.agent if any(each.meets(menu.started_ms, menu.ended_ms) for menu in menus)]
    return (len(over),) if menus else ()


def _keys_not_alone(far: FarSide) -> Values:
    near = [
        any(each.meets(key.started_ms - ALONE_MS, key.ended_ms + ALONE_MS) for each in far.agent)
        for key in far.book.keys
    ]
    return (sum(near),) if near else ()


def _key_after_ms(call: HeardCall, far: FarSide) -> Iterable[float]:
    """Of each menu that a key follows, or interrupts, the first one against the last sample of its words."""
    sound = call.record.recording
    menus = [span for span in far.spans("menu") if span.line_id is not None]
    answered = -1
    for key in far.book.keys:
        menu = sum(span.started_ms < key.started_ms for span in menus) - 1
        if menu > answered:
            answered, span = menu, menus[menu]
            bounds = audible_bounds_ms(sound.caller, sound.rate_hz, span.started_ms, span.ended_ms)
            yield key.started_ms - (bounds[1] if bounds else span.ended_ms)


def keys_only_claimed(call: HeardCall, far: FarSide) -> Iterator[Ms]:
    """When the agent began each "pressing two", "pressed two" or "I'll press two" without such a key near it."""
    for run in goodbye.heard_runs(call):
        for at, claimed in claimed_keys([word for word, _ in run]):
            at_ms = run[at][1]
            if claimed not in [key.key for key in far.book.keys if abs(key.started_ms - at_ms) <= CLAIM_MS]:
                yield at_ms


def _introduced_after_ms(call: HeardCall, far: FarSide) -> Iterable[float]:
    for greeting in far.person[:1]:
        told = [at_ms for at_ms in goodbye.notices_ms(call) if at_ms > greeting.start_ms]
        yield from (at_ms - greeting.end_ms for at_ms in told[:1])


def _spoke_before_beep_ms(far: FarSide) -> Values:
    from_ms = far.book.voicemail_from_ms
    if from_ms is None:
        return ()
    return (sum(max(0, min(each.end_ms, from_ms) - each.start_ms) for each in far.agent),)


def _message_share(call: HeardCall, far: FarSide) -> Iterable[float]:
    from_ms = far.book.voicemail_from_ms
    for reply in goodbye.farewells(call)[-1:] if from_ms is not None else ():
        whole_ms, heard_ms = goodbye.farewell_lengths_ms(call, reply, from_ms or 0)
        yield round(heard_ms / whole_ms, 3)


def _music_turns(call: HeardCall, far: FarSide) -> Values:
    turns = [item for item in call.record.history if isinstance(item, CallerSaid) and item.text == MUSIC]
    return (len(turns),) if far.spans("music") else ()


_CALLED = "the agent did not make this call, so there is no far end"
_NO_KEY = "no key was heard at the far end"
_NO_PERSON = "no person was reached"
_NO_VOICEMAIL = "no voicemail was reached"

HOLD_METRICS = (
    Metric(
        "spoke_on_hold",
        "times",
        "How often the agent spoke while nobody was there: through ringing, menus, announcements, music and busy tones,"
        " with the pauses between them. Once is audible sound of the agent at the far end, up to a pause of 0.7 s, of"
        " which anything lies more than 1.0 s behind the beginning of that time. Tones of keys are no speech.",
        "sum over the call",
        _of_far(lambda _, far: (len(far.spoken_on_hold),)),
        _CALLED,
        elsewhere=Elsewhere.SAME,
    ),
    Metric(
        "menu_talked_over",
        "times",
        "How often the agent spoke while a menu spoke, or waited for a key.",
        "sum over the call's menus",
        _of_far(lambda _, far: _menu_talked_over(far)),
        "there was no menu",
        elsewhere=Elsewhere.SAME,
    ),
    Metric(
        "keys_pressed",
        "keys",
        "Keys that the far end's detector heard, whatever they led to.",
        "sum over the call",
        _of_far(lambda _, far: (len(far.book.keys),)),
        _CALLED,
        aim=Aim.NEITHER,
        elsewhere=Elsewhere.SAME,
    ),
    Metric(
        "keys_not_alone",
        "keys",
        "Of those, the ones with anything else of the agent within 200 ms.",
        "sum over the keys heard",
        _of_far(lambda _, far: _keys_not_alone(far)),
        _NO_KEY,
        elsewhere=Elsewhere.SAME,
    ),
    Metric(
        "keys_only_claimed",
        "claims",
        "How often the agent was heard to say that it presses a key, or has pressed it (`pressing two`, `pressed two`,"
        " `I'll press two`), which the far end did not hear within 10 s of these words.",
        "sum over the call's replies",
        _of_far(lambda call, far: (len(list(keys_only_claimed(call, far))),)),
        _CALLED,
        elsewhere=Elsewhere.DOUBTED,
    ),
    Metric(
        "key_after_ms",
        "ms",
        "From the last audible sample of what a menu says to the first sample of the key that answers it. Negative"
        " where that is pressed before the menu has ended.",
        "per menu that a key follows, of several keys the first",
        _of_far(_key_after_ms),
        _NO_KEY,
        aim=Aim.NEITHER,
        elsewhere=Elsewhere.SAME,
    ),
    Metric(
        "seconds_on_hold",
        "s",
        "From the first sample of the last key before a person's first word to the first audible sample of that word;"
        " where no person comes, to the end of what there is while nobody is there.",
        "per call in which a key was heard",
        _of_far(lambda _, far: _known(None if far.on_hold_ms is None else far.on_hold_ms / 1000)),
        f"{_NO_KEY} before a person, or before the end of the music",
        aim=Aim.NEITHER,
        elsewhere=Elsewhere.SAME,
    ),
    Metric(
        "answered_after_ms",
        "ms",
        "From the last audible sample of a person's greeting to the first of what the agent says after the greeting"
        " began. Negative where it falls into it.",
        "per call that came to a person",
        _of_far(lambda _, far: _known(far.answered_after_ms)),
        f"{_NO_PERSON}, or the agent said nothing to one",
        elsewhere=Elsewhere.SAME,
    ),
    Metric(
        "introduced_after_ms",
        "ms",
        "From the last audible sample of a person's greeting to the first of the words by which the agent declares that"
        " it is a machine, where these were heard whole after the greeting began.",
        "per call that came to a person",
        _of_far(_introduced_after_ms),
        f"{_NO_PERSON}, or one did not hear from the agent that it is a machine",
        elsewhere=Elsewhere.DOUBTED,
    ),
    Metric(
        "spoke_before_beep_ms",
        "ms",
        "How long the agent spoke before a voicemail began to record.",
        "sum over the call, from its beginning",
        _of_far(lambda _, far: _spoke_before_beep_ms(far)),
        _NO_VOICEMAIL,
        elsewhere=Elsewhere.SAME,
    ),
    Metric(
        "message_share",
        "part",
        "Part of a message, from its first to its last audible sample, that a voicemail recorded before the line ended;"
        " 1 where less than 20 ms of it is missing. The message is what is spoken in a response that calls a tool which"
        " ends the call.",
        "the last of a call that came to a voicemail",
        _of_far(_message_share),
        f"{_NO_VOICEMAIL}, or the agent called no tool that ends the call",
        aim=Aim.MORE,
        elsewhere=Elsewhere.ESTIMATED,
    ),
    Metric(
        "music_turns",
        "turns",
        f"Turns in the server's history that are nothing but `{MUSIC}`.",
        "sum over the turns in history",
        _of_far(_music_turns),
        "the far end played no music",
        aim=Aim.NEITHER,
        elsewhere=Elsewhere.WIRE,
        lacks=Lack.TURNS,
    ),
)
