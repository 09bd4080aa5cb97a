"""How the local realtime server behaves: every delay and habit is a named field with its source.

A range ``(low, high)`` is drawn anew for each event, both ends included, from the session's own random numbers.
One of three numbers ``(low, median, high)`` has half of its draws on either side of the median. A rate is a
probability. The defaults are what was measured on the live service; other dialects differ in some.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

from callwright.errors import UsageError
from callwright.ids import Ms
from callwright.sim.caller import REPLY_ENDS_AFTER_MS
from callwright.sim.server.dialects import Dialect, Habit, dialect_of

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

MsRange = tuple[Ms, Ms]
MsSpread = tuple[Ms, Ms] | tuple[Ms, Ms, Ms]
"""A range, or one with its median in the middle."""

_LIVE = "measured on the live service, Nov 2026"
_EARLIER = "measured on the live service, Oct 2026"
_REFERENCE = "documented limit, Nov 2026"
_FRAMES = "five frames of 32 ms, documented for the live service; only misread audio has less voice in a row"
_RECORDED = "median over the recorded lines"
_OURS = "chosen here; not measured"
_QUIET_ENDS_MS: Ms = 200
"""Twice what the ends of two recorded lines in a row were measured to lie below the caller's threshold."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Timings and habits of one session. Beside each type: what it is, and where its default comes from."""

    dialect: str = "polyai"
    """Whose protocol is spoken; the agent's model says it, so it is no setting by name."""

    # --- opening and limits
    ready_after_ms: Annotated[
        MsSpread, "From the start of the connection to session.updated, for a client that answers at once.", _LIVE
    ] = (234, 234)
    update_takes_ms: Annotated[Ms, "From session.update to session.updated.", _LIVE] = 50
    longest_session_ms: Annotated[Ms, "Then session_expired, and the close code 4410.", _REFERENCE] = 3_600_000
    longest_silence_ms: Annotated[Ms, "A client that sends nothing for so long is closed with 4408.", _REFERENCE] = (
        300_000
    )
    longest_turn_ms: Annotated[Ms, "Audio of one open turn that is kept; the rest is dropped.", _REFERENCE] = 300_000

    takes_calls: Annotated[bool, "Tool calls that a client puts into the conversation are taken.", _OURS] = True
    closes_on_calls: Annotated[bool, "And where they are not, the connection is closed with 1007.", _OURS] = False

    # --- the caller's turns
    turn_end_ms: Annotated[Ms, "From the last word to the turn's end mark, on the audio clock.", _LIVE] = 500
    stop_told_ms: Annotated[MsRange, "From the end mark to speech_stopped.", _LIVE] = (83, 108)
    start_told_ms: Annotated[MsRange, "From the first word to speech_started in silence.", _FRAMES] = (170, 200)
    start_judged_ms: Annotated[Ms, "Voice that makes a turn in silence.", _FRAMES] = 160
    barge_in_told_ms: Annotated[MsRange, "From the first word to speech_started, over a reply.", _EARLIER] = (760, 800)
    barge_in_judged_ms: Annotated[Ms, "Voice over a reply before its kind is judged.", _OURS] = 720
    murmur_ms: Annotated[Ms, "A murmur over a reply that goes on for so long is a turn.", _OURS] = 1500
    voice_share: Annotated[float, "Part of an attempt at a turn that must be voice.", _OURS] = 0.5
    voice_gap_ms: Annotated[Ms, "A longer gap before a turn is confirmed begins a new attempt.", _OURS] = 350
    padding_ms: Annotated[Ms, "Audio before the first word that belongs to the turn.", "the protocol's default"] = 300
    voice_threshold: Annotated[
        float, "Score of the voice detector from which a window is voice.", "the detector's default"
    ] = 0.5
    voice_onset_ms: Annotated[Ms, "How late the detector is at a first word; taken off.", _RECORDED] = 24
    voice_tail_ms: Annotated[Ms, "How late the detector is at a last word; taken off.", _RECORDED] = 64
    unfinished_ms: Annotated[
        Ms, "From the last word to the end of a turn that sounds unfinished; 0: as of any other.", _OURS
    ] = 0
    idle_ms: Annotated[
        Ms, "From the end of a reply until a caller who says nothing is asked again; 0: never.", _OURS
    ] = 0
    music_turn_rate: Annotated[
        float, "Music behind a turn that was answered aloud is itself taken for a turn.", _LIVE
    ] = 0.2

    # --- replies
    answer_ms: Annotated[MsRange, "From the end mark to the first audio of the reply.", _LIVE] = (430, 640)
    asked_answer_ms: Annotated[
        MsRange,
        "From an accepted response.create to the first audio.",
        "answer_ms, less the time in which a turn is ended",
    ] = (340, 540)
    chunk_ms: Annotated[Ms, "Audio in one delta.", _LIVE] = 200
    lead_ms: Annotated[Ms, "Audio ahead of playback, half-way between two deltas; 100 to 500 occur.", _LIVE] = 300
    pace: Annotated[float, "How many times as fast as speech audio leaves that is not ahead yet.", _LIVE] = 1.0
    done_after_ms: Annotated[MsRange, "From the last delta to response.done.", _LIVE] = (436, 436)
    stall_at_ms: Annotated[
        Ms, "Audio of a reply after which nothing more of it leaves for a while; 0: never.", _OURS
    ] = 0
    stall_ms: Annotated[MsRange, "How long that is; then all that was held leaves at once.", _OURS] = (500, 500)
    sentence_pause_ms: Annotated[Ms, "Pause between two recorded lines of one reply.", _OURS] = 200
    cancelled_first_rate: Annotated[
        float,
        "The cancelled response.done comes before speech_started.",
        "seen once in a few runs on the live service, Oct 2026",
    ] = 0.1
    transcript_after_ms: Annotated[MsRange, "From the reply's first audio to the caller's transcript.", _OURS] = (
        300,
        900,
    )
    transcript_last_rate: Annotated[float, "The caller's transcript comes only after response.done.", _OURS] = 0.25
    transcript_last_ms: Annotated[MsRange, "How long after response.done it then comes.", _OURS] = (50, 400)

    # --- replies that are written
    text_answer_ms: Annotated[
        MsRange, "From the end mark to the first text of a written reply.", "the vendor's own sample, early access"
    ] = (390, 390)
    text_word_ms: Annotated[Ms, "From one word of a written reply to the next.", _OURS] = 20
    text_done_ms: Annotated[MsRange, "From its last word to response.done.", _OURS] = (20, 60)
    report_lasts_ms: Annotated[
        Ms, "So long behind a report of a client's voice its reply is believed to be audible.", _OURS
    ] = 3_000

    # --- tools
    call_after_audio_ms: Annotated[Ms, "From the first audio of a spoken argument to the call.", _LIVE] = 46
    call_before_audio_ms: Annotated[Ms, "From the call to the first audio of a spoken argument.", _LIVE] = 120
    call_first_rate: Annotated[float, "The call comes before the audio; both orders were measured.", _LIVE] = 0.5

    # --- the wire
    item_events: Annotated[
        bool,
        "Item and content part events are sent; clients must work without them.",
        "the protocol; not seen on the live service",
    ] = True

    def __post_init__(self) -> None:
        dialect_of(self.dialect)
        for name in SETTINGS:
            if what := misfit(name, getattr(self, name)):
                raise UsageError(f"server setting {name}: expected {what}; got {getattr(self, name)}")

    @staticmethod
    def for_dialect(name: str, given: Mapping[str, Any] | None = None) -> ServerSettings:
        """The settings of a dialect, with those that are given by name. Raises UsageError for what does not exist."""
        changes = {key: value for key, (value, _) in dialect_of(name).settings.items()} | dict(given or {})
        for key in changes:
            if key not in SETTINGS:
                raise UsageError(f"the local server has no setting {key!r}; settings: {', '.join(sorted(SETTINGS))}")
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in changes.items()
        }
        return ServerSettings(dialect=name, **values)

    @property
    def speaks(self) -> Dialect:
        """The dialect."""
        return dialect_of(self.dialect)

    def has(self, habit: Habit) -> bool:
        """Whether this server has a habit."""
        return habit in self.speaks.habits


_TYPES = get_type_hints(ServerSettings)
SETTINGS = tuple(each.name for each in fields(ServerSettings) if each.name != "dialect")
"""The names of all settings, in the order of their declaration."""

_LONGEST_MS: Ms = 6 * 3_600_000
_SPANS: Mapping[object, tuple[tuple[int, ...], str]] = {
    MsRange: ((2,), "two whole numbers of ms, the lower one first, such as [430, 640]"),
    MsSpread: ((2, 3), "two whole numbers of ms, or three with the median in the middle, such as [230, 660, 2830]"),
}
"""How many numbers each kind of range has, and how it is told."""
_SHARE = (0, 1)
_BOUNDS: Mapping[str, tuple[float, float]] = {
    **{name: _SHARE for name in SETTINGS if name.endswith("_rate")},
    "voice_share": _SHARE,
    "voice_threshold": _SHARE,
    "pace": (0.01, 1000),
    "chunk_ms": (20, 10_000),
    "sentence_pause_ms": (0, REPLY_ENDS_AFTER_MS - _QUIET_ENDS_MS),
}
"""The least and the most of each setting that is not just a time."""
_WHY = {
    "sentence_pause_ms": f": after {REPLY_ENDS_AFTER_MS} ms of silence a caller takes the reply for over, "
    f"and the ends of two lines may be as good as silent for {_QUIET_ENDS_MS} ms"
}


def misfit(name: str, value: object) -> str | None:
    """What the setting of this name takes, where ``value`` is nothing of the kind; None where it is."""
    kind = _TYPES[name]
    low, high = _BOUNDS.get(name, (0, _LONGEST_MS))
    if kind is bool:
        return None if isinstance(value, bool) else "true or false"
    if kind in _SPANS:
        lengths, told = _SPANS[kind]
        ends = value if isinstance(value, (tuple, list)) and len(value) in lengths else ()
        fits = bool(ends) and all(type(end) is int for end in ends) and sorted((low, *ends, high)) == [low, *ends, high]
        return None if fits else told
    what, types = ("a whole number of ms", (int,)) if kind is Ms else ("a number", (int, float))
    if type(value) in types and low <= value <= high:  # type: ignore[operator]
        return None
    return f"{what} from {low} to {high}{_WHY.get(name, '')}"


def drawn(span: MsSpread, rng: random.Random) -> Ms:
    """A time from a range, each as likely as another; of three numbers the middle one is the median."""
    if len(span) == 2:
        return rng.randint(*span)
    low, median, high = span
    return rng.randint(low, median) if rng.random() < 0.5 else rng.randint(median, high)


class SettingInfo(NamedTuple):
    """One setting as the reference documents it."""

    name: str
    default: object
    about: str
    source: str


def list_differences(dialect: str) -> Iterator[SettingInfo]:
    """The settings with another default in this dialect, in the order of their declaration. Raises UsageError."""
    others = dialect_of(dialect).settings
    for info in list_settings():
        if info.name in others:
            default, source = others[info.name]
            yield info._replace(default=default, source=source)


def list_settings() -> Iterator[SettingInfo]:
    """All settings in the order of their declaration."""
    hints = get_type_hints(ServerSettings, include_extras=True)
    usual = ServerSettings()
    for name in SETTINGS:
        about, source = hints[name].__metadata__
        yield SettingInfo(name, getattr(usual, name), about, source)
