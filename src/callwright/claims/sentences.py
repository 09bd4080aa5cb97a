"""Whether a sentence of our own was heard, word by word: the way for every language, and the surest one for each.

The record writes one canonical sentence per milestone. Where that very sentence was played to its end, nothing needs
to be understood. It must begin where a sentence begins and end where one ends, so "if" before it or "or not" behind it
does not pass.
"""

from __future__ import annotations

from callwright.claims.words import STOP, Heard, tokens_of


def is_rendered(heard: Heard, sentence: str) -> bool:
    """Whether a sentence was heard whole, as it was written; never where it says nothing.

    Case, punctuation inside it and the way of writing apostrophes do not count. A sentence whose end was not heard may
    go on: of a cut reply, a sentence counts only with its full stop.
    """
    said = [token.text for token in tokens_of(heard.certain)]
    wanted = [word for word in (token.text for token in tokens_of(sentence)) if word not in (STOP, "?", ",", '"')]
    asks = sentence.rstrip().endswith("?")
    pieces = [piece for piece in _sentences(said) if piece[0]]
    if not wanted:
        return False
    for start in range(len(pieces)):
        words: list[str] = []
        for end in range(start, len(pieces)):
            words += pieces[end][0]
            if len(words) >= len(wanted):
                whole = words == wanted and (pieces[end][1] == "?") is asks
                if whole and not _may_go_on(heard, pieces, end):
                    return True
                break
    return False


def _sentences(said: list[str]) -> list[tuple[list[str], str]]:
    """Sentences without their commas, each with what it ends with; the last may end with nothing."""
    found: list[tuple[list[str], str]] = []
    words: list[str] = []
    for word in said:
        if word in (STOP, "?"):
            found.append((words, word))
            words = []
        elif word not in (",", '"'):
            words.append(word)
    return [*found, (words, "")]


def _may_go_on(heard: Heard, pieces: list[tuple[list[str], str]], end: int) -> bool:
    """Whether there may be more of a sentence behind what was heard of it."""
    if not heard.is_cut or end < len(pieces) - 1:
        return False
    return not pieces[end][1]
