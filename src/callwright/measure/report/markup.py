"""HTML that cannot be broken by what is put into it: text is escaped, and only what `tag` made is taken as it is."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

_VOID = ("br", "link", "meta")
"""Elements that hold nothing and are not closed."""


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Content: TypeAlias = str | Iterable["Content"]
"""Text, HTML, or any number of either."""


def tag(name: str, /, *content: Content, **attributes: str | float | bool | None) -> Html:
    """An element. Content that is not `Html` is escaped.

    An attribute is left out where its value is None or False, and stands alone where it is True. An underscore in its
    name is a hyphen, one at its end is dropped: ``class_``, ``data_t``.
    """
    opening = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{opening}>")
    return Html(f"<{name}{opening}>{join(content)}</{name}>")


def join(content: Content) -> Html:
    """Several pieces, one behind the other."""
    if isinstance(content, Html):
        return content
    if isinstance(content, str):
        return Html(escape(content, quote=False))
    return Html("".join(map(join, content)))


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
