"""What is to be measured of a call, found in its recording: how every reply was heard, and when the caller spoke."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import lru_cache
from typing import TYPE_CHECKING

from callwright.core.transcript import Speaker
from callwright.measure.far import FarSide, find_far_side
from callwright.measure.pickup import Arrival, find_arrival
from callwright.measure.played import Played, audible_bounds_ms, measure_played, placed_clips
from callwright.measure.texts import Prefix, follow
from callwright.sim.ear import Ear, Placement
from callwright.sim.elsewhere.placing import doubt_ms
from callwright.sim.models import AgentSaid, CallerSaid
from callwright.sim.record import Tells
from callwright.sim.speech import RATE_HZ

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from callwright.ids import ItemId, Ms
    from callwright.measure.played import PlacedClip
    from callwright.sim.record import CallerLine, CallRecord, SpokenItem, Streamed
    from callwright.sim.speech import Recording

DELIVERED = 0.9
"""A word was heard whole when at least so much of its samples arrived, and the ear finds at least `EAR_SHARE` of it."""
EAR_SHARE = 0.5
MISSED = 0.1
"""A word was not heard when at most so much of its samples arrived. Between the two it is under the cut: neutral."""
FRAME_MS: Ms = 20
"""A reply of which less than this is missing was not cut."""


class Fate(Enum):
    """What became of a written word at the caller's ear."""

    WHOLE = auto()
    UNDER_CUT = auto()
    UNHEARD = auto()


@dataclass(frozen=True)
class Reply:
    """One reply: what was written, what arrived, and what server and client believe."""

    item: SpokenItem
    clips: tuple[PlacedClip, ...]
    played: Played
    fates: tuple[Fate, ...]
    in_history: str
    in_transcript: str | None
    """What the client holds to have been heard of it; None where it does not tell that of any reply."""
    call_ended_ms: Ms
    is_left_over: bool
    """The last reply of the call, which no one asked to shorten: if nothing of it arrived, it was still on its way."""

    @property
    def written(self) -> str:
        """The whole text."""
        return " ".join(word.text for word in self.item.words)

    @property
    def heard(self) -> str:
        """The words that arrived whole."""
        return " ".join(text for text, is_whole in self.whole_words if is_whole)

    @property
    def whole_words(self) -> list[tuple[str, bool]]:
        """Each word, and whether it arrived whole."""
        return [(word.text, fate is Fate.WHOLE) for word, fate in zip(self.item.words, self.fates, strict=True)]

    def began_ms(self, number: int) -> Ms:
        """The instant at the ear at which a word of ``heard`` began, counted from 0."""
        whole = [word for word, fate in zip(self.item.words, self.fates, strict=True) if fate is Fate.WHOLE]
        return self.played.instant_ms(whole[number].start_ms)

    @property
    def under_cut(self) -> str | None:
        """The word that began and did not end at the ear; the last, if there are several. None where it is in doubt."""
        cut = self._neutral
        return cut[-1] if cut and self.item.sound is None else None

    @property
    def in_doubt(self) -> str:
        """The words near the end, where their times are supposed: nobody knows whether they were heard."""
        return " ".join(self._neutral) if self.item.sound is not None else ""

    @property
    def _neutral(self) -> list[str]:
        return [word.text for word, fate in zip(self.item.words, self.fates, strict=True) if fate is Fate.UNDER_CUT]

    @property
    def was_cut(self) -> bool:
        """Whether it ended early at the ear."""
        return self.item.audio_ms - self.played.ms >= FRAME_MS

    @property
    def is_restated(self) -> bool:
        """Whether the client told the server by words what was heard of it, so that no length can be wrong."""
        return self.item.sound is not None and self.item.sound.is_restated

    @property
    def is_wordless(self) -> bool:
        """Whether the server told no words of what was heard; in one that was cut at once all would be in doubt."""
        sound = self.item.sound
        if sound is None or self.item.words or not self.played.stretches:
            return False
        return not self.was_cut or self.played.ms >= doubt_ms(0, sound)

    @property
    def lines(self) -> list[tuple[str, int]]:
        """For each word the recorded line that it is from, and its number there; none of a reply that is no line."""
        return [(clip.line.id, n) for clip in self.clips for n in range(clip.first_word, clip.end_word)]

    @property
    def outlasted_call(self) -> bool:
        """Whether it was at the ear, or on the way to it, when the call ended: nobody was left to be told of a cut."""
        if not self.was_cut:
            return False
        return self.is_left_over if not self.played.stretches else self.call_ended_ms - self.played.ended_ms <= FRAME_MS

    def with_doubtful_words(self) -> Reply:
        """The same reply, if the words near its end were heard whose times are supposed."""
        if self.item.sound is None:
            return self
        return replace(self, fates=tuple(Fate.WHOLE if fate is Fate.UNDER_CUT else fate for fate in self.fates))

    def follow(self, text: str | None) -> Prefix:
        """How a text follows this reply; without one nothing does."""
        return follow(text or "", [word.text for word in self.item.words])

    def unheard_in(self, text: str | None) -> int:
        """How many words of a text that is to be this reply were never heard."""
        matched, foreign = self.follow(text)
        return foreign + self.count(Fate.UNHEARD, 0, matched)

    def count(self, fate: Fate, begin: int, end: int | None = None) -> int:
        """How many of the words from ``begin`` up to ``end`` (excluded) have this fate."""
        return self.fates[begin:end].count(fate)


@dataclass(frozen=True, slots=True)
class CallerTurn:
    """A scripted line that takes the floor, with its bounds measured from the caller's channel."""

    line: CallerLine
    onset_ms: Ms
    end_ms: Ms


@dataclass(frozen=True)
class HeardCall:
    """A call with everything that its figures need."""

    record: CallRecord
    speech: Mapping[str, Recording]
    replies: tuple[Reply, ...]
    turns: tuple[CallerTurn, ...]
    """What the caller said; of a far end what a person said there."""
    arrival: Arrival
    far: FarSide | None = None
    """The far end, where the agent makes the call."""

    @property
    def foreign_in_history(self) -> int:
        """Words that history holds of replies that were never spoken."""
        return self._foreign((item.item_id, item.text) for item in self.record.history if isinstance(item, AgentSaid))

    @property
    def foreign_in_transcript(self) -> int:
        """Words that the client's transcript holds of replies that were never spoken."""
        return self._foreign((t.item_id, t.heard) for t in self.record.turns if t.speaker is Speaker.AGENT)

    def _foreign(self, texts: Iterable[tuple[ItemId, str]]) -> int:
        spoken = [reply.item.item_id for reply in self.replies]
        return sum(len(text.split()) for item_id, text in texts if item_id not in spoken)

    def with_doubtful_words(self) -> HeardCall:
        """The same, if the words were heard of which that is in doubt, because nobody tells when they lie."""
        return replace(self, replies=tuple(reply.with_doubtful_words() for reply in self.replies))

    @property
    def understood(self) -> list[str]:
        """The caller's turns as the server understood them."""
        return [item.text for item in self.record.history if isinstance(item, CallerSaid)]


def hear_call(record: CallRecord, speech: Mapping[str, Recording]) -> HeardCall:
    """Find every reply and every line of the caller in the recording."""
    history = {item.item_id: item.text for item in record.history if isinstance(item, AgentSaid)}
    transcript = None if record.tells is Tells.NOTHING else {turn.item_id: turn.heard for turn in record.turns}
    replies = tuple(_reply(item, record, speech, history, transcript) for item in record.spoken)
    turns = [_turn(line, record) for line in record.caller_lines if _takes_floor(line, record, speech)]
    return HeardCall(
        record, speech, replies, tuple(turn for turn in turns if turn), find_arrival(record), find_far_side(record)
    )


def _takes_floor(line: CallerLine, record: CallRecord, speech: Mapping[str, Recording]) -> bool:
    """Whether it is a caller or, at a far end, a person who speaks, and no murmur, machine or music."""
    if record.far is None:
        return speech[line.line_id].kind == "caller"
    return any(span.kind == "person" and span.started_ms == line.started_ms for span in record.far.spans)


def _turn(line: CallerLine, record: CallRecord) -> CallerTurn | None:
    sound = record.recording
    bounds = audible_bounds_ms(sound.caller, sound.rate_hz, line.started_ms, line.ended_ms)
    return CallerTurn(line, *bounds) if bounds else None


def _reply(
    item: SpokenItem,
    record: CallRecord,
    speech: Mapping[str, Recording],
    history: Mapping[ItemId, str],
    transcript: Mapping[ItemId, str] | None,
) -> Reply:
    clips = placed_clips(item, speech)
    played = measure_played(item, clips, record.ear, record.recording)
    in_history = history.get(item.item_id, "")
    in_transcript = None if transcript is None else transcript.get(item.item_id, "")
    ended_ms = len(record.recording.agent) * 1000 // record.recording.rate_hz
    fates = tuple(_fates(item, clips, played) if item.sound is None else _supposed(item, item.sound, played))
    shortened = [truncation.item_id for truncation in record.truncations]
    is_left_over = item is record.spoken[-1] and item.item_id not in shortened
    return Reply(item, tuple(clips), played, fates, in_history, in_transcript, ended_ms, is_left_over)


def _fates(item: SpokenItem, clips: Sequence[PlacedClip], played: Played) -> list[Fate]:
    arrived = [played.share(word.start_ms, word.end_ms) for word in item.words]
    fates: list[Fate] = []
    for clip in clips:
        parts = arrived[len(fates) : len(fates) + clip.end_word - clip.first_word]
        found = _found(clip, played) if max(parts) > MISSED else [0.0] * len(parts)
        fates += [_fate(part, share) for part, share in zip(parts, found, strict=True)]
    return fates


def _supposed(item: SpokenItem, sound: Streamed, played: Played) -> Iterator[Fate]:
    """The same where nobody tells when the words lie: of a reply that ends early, those near its end are neutral."""
    is_cut = item.audio_ms - played.ms >= FRAME_MS
    for word in item.words:
        if not played.stretches:
            yield Fate.UNHEARD
        elif not is_cut or word.end_ms + doubt_ms(word.end_ms, sound) <= played.ms:
            yield Fate.WHOLE
        else:
            is_behind = word.start_ms - doubt_ms(word.start_ms, sound) >= played.ms
            yield Fate.UNHEARD if is_behind else Fate.UNDER_CUT


def _fate(arrived: float, found: float) -> Fate:
    if MISSED < arrived < DELIVERED:
        return Fate.UNDER_CUT
    return Fate.WHOLE if arrived >= DELIVERED and found >= EAR_SHARE else Fate.UNHEARD


def _found(clip: PlacedClip, played: Played) -> list[float]:
    """How much of each word of a clip the ear finds where it should be."""
    first, end = (round(at * played.rate_hz / RATE_HZ) for at in (clip.at, clip.at + clip.length))
    place = Placement(clip.line.id, clip.first_word, clip.end_word, 0)
    heard = _ear(clip.line).follow(played.sound[first:end], played.rate_hz, [place])
    return [word.share for word in heard]


@lru_cache(maxsize=256)
def _ear(line: Recording) -> Ear:
    return Ear([line])
