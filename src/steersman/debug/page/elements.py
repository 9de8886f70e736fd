"""Pieces of HTML for the debug page.

Guarantees
- Everything that is not already `Html` is escaped, so a name or an error may contain anything.
- Tags are balanced: an element is built together with its content.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from html import escape
from typing import TypeAlias
from urllib.parse import quote, urlencode

from steersman.controller import Causes, KeyRecord, Request
from steersman.debug.text import duration, stamp


class Html(str):
    """Text that is already HTML."""

    __slots__ = ()


Child: TypeAlias = str | int | Iterable["str | int"] | None

NOTHING = Html("")
#: Elements without an end tag.
_VOID = frozenset({"br", "hr", "input", "meta"})
#: A dash for an empty value.
DASH = Html('<span class="none">&ndash;</span>')


def element(tag: str, *children: Child, **attributes: str | None) -> Html:
    """One element: ``element("td", "a < b", class_="number")``. Attributes that are None are omitted."""
    opening = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID:
        return Html(f"<{tag}{opening}>")
    return Html(f"<{tag}{opening}>{join(*children)}</{tag}>")


def _attribute(name: str, value: str | None) -> str:
    return "" if value is None else f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"'


def join(*children: Child) -> Html:
    """The children, concatenated."""
    return Html("".join(_text(child) for child in children))


def _text(child: Child) -> str:
    match child:
        case None:
            return ""
        case Html():
            return child
        case str():
            return escape(child)
        case int():
            return f"{child:,}"
        case _:
            return "".join(_text(part) for part in child)


def ago(moment: datetime | None, now: datetime) -> Html:
    """How long ago a moment was, with the moment itself in the tooltip."""
    if moment is None:
        return DASH
    seconds = (now - moment).total_seconds()
    words = "just now" if seconds < 1 else f"{duration(seconds)} ago"
    return element("time", words, datetime=moment.isoformat(timespec="seconds"), title=stamp(moment))


def identifier(*parts: str) -> str:
    """An HTML id made of names that may contain anything."""
    return "-".join(quote(part, safe="") for part in parts)


# parts of both pages

_RESULTS = {
    "success": ("done", "good"),
    "requeue": ("again soon", "quiet"),
    "requeue_after": ("again later", "quiet"),
    "conflict": ("conflict", "quiet"),
    "error": ("error", "bad"),
    "terminal_error": ("failed for good", "bad"),
}


def badge(words: str, tone: str) -> Html:
    """A word with a color: good, quiet, warn or bad."""
    return element("span", words, class_=f"badge {tone}")


def result_badge(record: KeyRecord) -> Html:
    """How a reconcile ended; for an error, also whether it timed out or is a programming error."""
    if record.timed_out:
        return badge("timed out", "bad")
    return badge("crashed", "bad") if record.crashed else badge(*_RESULTS[record.result])


def key_link(controller: str, request: Request) -> Html:
    """A key as a link to its explanation."""
    query = urlencode({"kind": controller, "namespace": request.key.namespace, "name": request.key.name})
    return element("a", str(request), class_="key", href=f"/debug/explain?{query}")


def error_text(words: str, *, place: str) -> Html:
    """An error's first lines, and the rest on demand.

    ``place`` is unique on the page, so that an opened error stays open after a refresh.
    """
    if not words:
        return DASH
    first, _, rest = words.strip().partition("\n")
    if len(first) <= _LONG and not rest:
        return element("span", first, class_="error")
    return element(
        "details",
        element("summary", element("span", first[:_LONG].rstrip(), "…", class_="error")),
        element("pre", words),
        class_="more",
        id=identifier("error", place),
    )


_LONG = 220


def causes_list(causes: Causes, *, limit: int = 3) -> Html:
    """Why a reconcile ran: the first causes, and how many more there were."""
    shown = [str(cause) for cause in causes.kept[:limit]]
    if not shown:
        return DASH
    more = len(causes.kept) - len(shown) + causes.omitted
    lines = [element("span", words, class_="cause") for words in shown]
    if more > 0:
        lines.append(element("span", f"and {more} more", class_="cause quiet", title=str(causes)))
    return join(lines)


def trace_line(record: KeyRecord) -> Html:
    """The trace id of the reconcile, if it was traced."""
    _, _, rest = record.trace.partition("-")
    found = rest.partition("-")[0]
    return element("div", "trace ", element("span", found, class_="mono"), class_="soft") if found else NOTHING


def table(head: Iterable[str | Html], rows: Iterable[Iterable[Html]], *, class_: str = "") -> Html:
    """A table that scrolls by itself in a narrow window. A heading that begins with # marks a column of numbers."""
    cells = [
        element("th", name.lstrip("#"), class_="number" if name.startswith("#") else None, scope="col") for name in head
    ]
    body = [element("tr", row) for row in rows]
    whole = element("table", element("thead", element("tr", cells)), element("tbody", body), class_=class_ or None)
    return element("div", whole, class_="scroll")


def cell(*children: Child, class_: str | None = None) -> Html:
    """A cell with text."""
    return element("td", *children, class_=class_)


def number(value: int | str, *, tone: str = "") -> Html:
    """A cell with a number. Zero is shown muted."""
    quiet = value in {0, "0", "0%"}
    return element("td", value, class_=f"number {tone if not quiet else 'zero'}".rstrip())
