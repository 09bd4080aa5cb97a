"""Where the words of a reply lie in its audio, where nobody tells: by their letters, and by the pauses in it.

```
audio    ~~~~~~~~~~~~~ ~~~~~~~      ~~~~~~~~ ~~~~~~~~~    pauses take no letters
words    Check in is from three.    Please bring a ...    what ends a sentence is brought together with a pause
```

Between two such places the time that sounds is shared out by letters. A reply that was cut by its server has more text
than audio: how far that reaches is told by the pace of the call's whole replies, and the words behind its end lie where
they would have come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, product
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from callwright.core.estimate import WORD_LETTERS, letters_of
from callwright.sim.speech import Word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from callwright.ids import Ms
    from callwright.sim.record import Streamed

USUAL_PACE: Final = 48.0
"""How long a letter takes where no whole reply tells, in ms of sounding speech: the middle of the recorded lines."""
DOUBT_MS: Final[Ms] = 500
"""Of 100 words of the recorded lines, up to seven lines in a row, 95 are placed less than this off in a whole reply."""
_DRIFT: Final = 8
"""In a reply that is not whole a word may be further off, by one part in so many of the time before it."""
_FRAME_MS: Final[Ms] = 10
_BELOW_DB: Final = 40
"""So much less than the loud parts of a reply is a pause."""
_PAUSE_MS: Final[Ms] = 120
"""A shorter pause is one within a word."""
_SPREAD: Final = 36.0
"""How unevenly letters take time: the variance, in ms squared, for each ms of it."""
_WITHOUT_PAUSE: Final = {",": 0.7, ";": 2.0, ":": 2.0, ".": 4.0, "!": 4.0, "?": 4.0}
"""What may end in a pause, and how unlikely it is that none is there."""
PAIRS_MAX: Final = 30_000
"""So many pairs of breaks and pauses are compared at most: those of a reply of about five minutes."""


class _Place(NamedTuple):
    """Something that may be a pause: of the text, or of the audio."""

    at_ms: float
    """On the clock that stands still in pauses."""
    unlikely: float
    """How unlikely it is that the other side has nothing for it."""
    word: int = 0
    """Of the text: the number of the word behind it."""


_START: Final = _Place(0.0, 0.0)
_Pair: TypeAlias = tuple[int, int]
"""The numbers of a place of the text and one of the audio that belong together."""


def pace_of(replies: Iterable[tuple[str, Streamed]]) -> float:
    """How long a letter takes, in ms of sounding speech, over all whole replies with a text; the usual pace if none."""
    whole = [(text.split(), sound) for text, sound in replies if sound.is_whole]
    letters = sum(sum(_letters(words)) for words, _ in whole if words)
    sounds_ms = sum(_FRAME_MS * int(_sounding(sound).sum()) for words, sound in whole if words)
    return sounds_ms / letters if sounds_ms else USUAL_PACE


def place_words(text: str, sound: Streamed, pace: float) -> tuple[Word, ...]:
    """The words of a whole text, with estimated times from the start of its audio."""
    words = text.split()
    if not words:
        return ()
    sounding = _sounding(sound)
    clock = np.concatenate(([0], np.cumsum(sounding))) * _FRAME_MS
    letters = list(accumulate(_letters(words), initial=0))
    is_whole = sound.is_whole and clock[-1] > 0
    each_ms = float(clock[-1]) / letters[-1] if is_whole else pace
    end = _Place(letters[-1] * each_ms, 0.0, len(words)), _Place(float(clock[-1]), 0.0)
    known = _together(_breaks(words, letters, each_ms), list(_pauses(sounding)), end if is_whole else None)
    last_ms, last_word = known[-1].at_ms, known[-1].word
    known.append(_Place(last_ms + each_ms * (letters[-1] - letters[last_word]), 0.0, len(words)))
    edges = np.interp(letters, [letters[each.word] for each in known], [each.at_ms for each in known])
    starts = [_instant_ms(edge, clock, after_pause=True) for edge in edges[:-1]]
    ends = [_instant_ms(edge, clock, after_pause=False) for edge in edges[1:]]
    return tuple(Word(*each) for each in zip(words, starts, ends, strict=True))


def whole_ms(words: Sequence[Word], sound: Streamed) -> Ms:
    """The length of the whole reply: of its audio or, where that is not all, up to the end of its words."""
    came_ms = len(sound.samples) * 1000 // sound.rate_hz
    return came_ms if sound.is_whole else max([came_ms + 2 * _FRAME_MS, *(word.end_ms for word in words[-1:])])


def doubt_ms(at_ms: Ms, sound: Streamed) -> Ms:
    """How far off a word may be that is placed at ``at_ms``."""
    return DOUBT_MS if sound.is_whole else DOUBT_MS + at_ms // _DRIFT


def _breaks(words: Sequence[str], letters: Sequence[int], each_ms: float) -> list[_Place]:
    """Where the text lets a pause be expected."""
    ends = enumerate(words[:-1], 1)
    return [_Place(letters[n] * each_ms, _WITHOUT_PAUSE[word[-1]], n) for n, word in ends if word[-1] in _WITHOUT_PAUSE]


def _pauses(sounding: NDArray[np.bool_]) -> Iterator[_Place]:
    """Where the audio has one, in between."""
    edges = np.flatnonzero(np.diff(np.concatenate(([1], sounding, [1]))))
    sounds = np.concatenate(([0], np.cumsum(sounding)))
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        length_ms = int(end - first) * _FRAME_MS
        if length_ms >= _PAUSE_MS and 0 < sounds[first] < sounds[-1]:
            yield _Place(float(sounds[first]) * _FRAME_MS, length_ms / _PAUSE_MS)


def _together(breaks: list[_Place], pauses: list[_Place], end: tuple[_Place, _Place] | None) -> list[_Place]:
    """The likeliest pairs of breaks and pauses, in order: where in the audio each is, and the word behind it.

    The beginnings belong together, and so do the ends where both are known. Nothing else does in a reply of so many
    places that the likeliest pairs would take long to find.
    """
    if len(breaks) * len(pauses) > PAIRS_MAX:
        breaks, pauses = [], []
    texts, sounds = [_START, *breaks], [_START, *pauses]
    ends = [end] if end else []
    ways = _Ways([*texts, *(text for text, _ in ends)], [*sounds, *(sound for _, sound in ends)])
    for text, sound in product(range(1, len(texts)), range(1, len(sounds))):
        ways.go_on((text, sound))
    pair: _Pair | None = (len(texts), len(sounds)) if end else ways.last
    if end:
        ways.go_on((len(texts), len(sounds)))
    found = []
    while pair is not None:
        found.append(ways.sounds[pair[1]]._replace(word=ways.texts[pair[0]].word))
        pair = ways.before.get(pair)
    return found[::-1]


class _Ways:
    """The likeliest way to each pair by pairs before it, from the pair of the beginnings."""

    def __init__(self, texts: Sequence[_Place], sounds: Sequence[_Place]) -> None:
        self.texts = texts
        self.sounds = sounds
        self.before: dict[_Pair, _Pair] = {}
        """The pair before, of each but the first."""
        self._text_ms, self._sound_ms = (np.array([each.at_ms for each in places]) for places in (texts, sounds))
        self._text_missed, self._sound_missed = (
            np.cumsum([0.0, *(each.unlikely for each in places)]) for places in (texts, sounds)
        )
        """How unlikely it is that none of so many has anything on the other side."""
        self._costs = np.full((len(texts), len(sounds)), np.inf)
        """How unlikely the way to each pair is."""
        self._costs[0, 0] = 0.0

    def go_on(self, pair: _Pair) -> None:
        """Find the way to a pair; those to all before it are found."""
        text, sound = pair
        text_ms = self._text_ms[text] - self._text_ms[:text]
        off_ms = text_ms[:, None] - (self._sound_ms[sound] - self._sound_ms[:sound])
        texts_missed = self._text_missed[text] - self._text_missed[1 : text + 1]
        sounds_missed = self._sound_missed[sound] - self._sound_missed[1 : sound + 1]
        spread = _SPREAD * np.maximum(text_ms, 1.0)
        costs = self._costs[:text, :sound] + off_ms**2 / spread[:, None] + texts_missed[:, None] + sounds_missed
        before = divmod(int(costs.argmin()), sound)
        self._costs[pair] = costs[before]
        self.before[pair] = before

    @property
    def last(self) -> _Pair:
        """The likeliest pair to be the last one."""
        costs = self._costs + (self._sound_missed[-1] - self._sound_missed[1:])
        text, sound = divmod(int(costs.argmin()), len(self.sounds))
        return text, sound


def _instant_ms(sounds_ms: float, clock: NDArray[np.int64], *, after_pause: bool) -> Ms:
    """The instant at which so much has sounded; past the end of the audio, as much later as is missing."""
    missing_ms = sounds_ms - float(clock[-1])
    if missing_ms > 0:
        return round((len(clock) - 1) * _FRAME_MS + missing_ms)
    frame = int(np.searchsorted(clock, sounds_ms, side="right" if after_pause else "left")) - after_pause
    return round(frame * _FRAME_MS + sounds_ms - float(clock[frame]))


def _sounding(sound: Streamed) -> NDArray[np.bool_]:
    """Which frames of 10 ms are no pause."""
    frame = sound.rate_hz * _FRAME_MS // 1000
    frames = sound.samples[: len(sound.samples) // frame * frame].reshape(-1, frame).astype(np.float64)
    level = np.sqrt((frames**2).mean(axis=1))
    loud = float(np.percentile(level, 90)) if len(level) else 0.0
    is_sounding: NDArray[np.bool_] = level > loud * 10 ** (-_BELOW_DB / 20)
    return is_sounding


def _letters(words: Sequence[str]) -> list[int]:
    """How long each word takes."""
    return [WORD_LETTERS + letters_of(word) for word in words]
