"""Keys and addresses of services: from the environment, or from the file ``.env`` where a command runs.

The environment wins, so that a shell or a container can say otherwise for once; a variable that is set to nothing
counts as not set. Only the command line reads the file. A library must not pick up what lies about in the directory
that its process happens to have, so `connect_to` takes what it is handed, and nothing here changes ``os.environ``.

The file has one ``NAME=value`` a line, as a shell reads it::

    # a comment
    POLY_API_KEY=value                       # to the end of the line, or to a blank and a #
    export OPENAI_API_KEY='as it stands'     # no escapes in single quotes
    NOTE="with \\" or \\\\ or \\n, or a line break"

Nothing is put in for ``$NAME``, and the last line for a name counts. What is not of this form is an error with file and
line, rather than a key that is silently not there. No value is in an error or a ``repr``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from callwright.errors import UsageError

FILE: Final = ".env"

_LINE: Final = re.compile(
    r"""
    [ \t]*
    (?:
        (?: export [ \t]+ )? (?P<name> [A-Za-z_][A-Za-z0-9_.-]* ) [ \t]* = [ \t]*
        (?: '(?P<literal> [^']* )' | "(?P<escaped> (?: [^"\\] | \\. )* )" | (?P<bare> (?: [^\s\#'"] [^\n]*? )? ) )
        (?: [ \t]+ \#[^\n]* )?
    |
        \#[^\n]*
    )?
    [ \t]* (?: \n | \Z )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}


class Environment(Mapping[str, str]):
    """Variables by name, the process's own before those of the file."""

    def __init__(self, process: Mapping[str, str], file: Mapping[str, str], path: Path) -> None:
        self._process = {name: value for name, value in process.items() if value.strip()}
        self._file = {name: value for name, value in file.items() if value.strip()}
        self.path = path
        """The file, whether it is there or not."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def __getitem__(self, name: str) -> str:
        return self._process[name] if name in self._process else self._file[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._process, **self._file})

    def __len__(self) -> int:
        return len({**self._process, **self._file})

    def source(self, name: str) -> str:
        """Where this variable comes from, in words; empty if it is not set."""
        return "the environment" if name in self._process else str(self.path) if name in self._file else ""

    def is_hidden(self, name: str) -> bool:
        """Whether the environment hides another value of this name in the file."""
        both = name in self._process and name in self._file
        return both and self._process[name].strip() != self._file[name].strip()


def read_environment(directory: Path) -> Environment:
    """The environment as it is now, with the file ``.env`` of ``directory`` behind it; that need not be there.

    Raises UsageError, with file and line, for a file that cannot be read.
    """
    path = directory / FILE
    try:
        text = "" if path.is_dir() else path.read_text("utf-8-sig")  # a virtual environment may be called .env
    except FileNotFoundError:
        text = ""
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not a text in UTF-8; save it as one") from None
    except OSError as problem:
        raise UsageError(f"{path}: cannot be read ({problem.strerror}); may you read it?") from None
    return Environment(os.environ, parse(text, str(path)), path)


def parse(text: str, name: str = FILE) -> dict[str, str]:
    """The variables in the text of such a file. Raises UsageError that names the file and the line."""
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        line = _LINE.match(text, at)
        if line is None:
            number = text.count("\n", 0, at) + 1
            raise UsageError(
                f"{name}:{number}: expected NAME=value, a comment or an empty line; a value that begins with a quote"
                " ends with the same one, and one that begins with # needs quotes"
            )
        if line["name"]:
            found[line["name"]] = _value(line)
        at = line.end()
    return found


def _value(line: re.Match[str]) -> str:
    if line["escaped"] is not None:
        return _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), line["escaped"])
    return line["literal"] or line["bare"] or ""
