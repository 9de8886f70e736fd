"""Which objects a verb reads: kinds, keys, selectors, versions and page sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, TypedDict

from steersman.objects import FieldSelector, Key, Kind, Object, Selector, check_equalities
from steersman.wire import ResourceVersionMatch

AnyKind: TypeAlias = type[Object] | Kind
KeyLike: TypeAlias = Key | str | tuple[str, str]
Labels: TypeAlias = Selector | str | dict[str, str]
Fields: TypeAlias = FieldSelector | str | dict[str, str]


def selector_text(selector: Labels | Fields | None) -> str:
    """A selector as query text; a dict requires equality of all its entries."""
    if selector is None:
        return ""
    if isinstance(selector, dict):
        check_equalities(selector)
        return ",".join(f"{name}={value}" for name, value in sorted(selector.items()))
    if not isinstance(selector, str | Selector | FieldSelector):  # pyright: ignore[reportUnnecessaryIsInstance] - user
        raise TypeError(f'{selector!r} is not a selector; write "app=web" or {{"app": "web"}}')
    return str(selector)


class Selection(TypedDict, total=False):
    """Selects objects of a kind; all of them by default."""

    #: One namespace; None means all.
    namespace: str | None
    labels: Labels | None
    fields: Fields | None


class ReadSelection(Selection, total=False):
    """Selects objects of a kind, and a version."""

    resource_version: str | None
    match: ResourceVersionMatch


class ListSelection(ReadSelection, total=False):
    """Selects objects of a kind, a version and a page size."""

    #: Objects per request; 0 reads all in one response. It does not limit how many objects are read.
    page_size: int
    #: The most that `list` reads in all, in bytes; `iterate` and `pages` hold one page at a time and have no such limit.
    max_bytes: int


class WatchSelection(Selection, total=False):
    """Selects the changes to watch, the start version and the duration."""

    resource_version: str | None
    #: Stream the existing objects first, then a `Bookmark` that marks their end.
    initial_events: bool
    bookmarks: bool
    #: The server ends the watch after this many seconds.
    timeout_seconds: int | None
    #: Raise `DeadlineExceeded` after this many seconds without data.
    idle_timeout: float | None


def check_options(verb: str, selection: Mapping[str, Any], known: type[Selection]) -> None:
    """Raise `TypeError` for an option that the verb does not have: ignored, it would widen the result."""
    options = known.__optional_keys__
    for name in selection:
        if name not in options:
            hint = f"its options are {', '.join(sorted(options))}"
            if name == "limit" and "page_size" in options:
                hint = "page_size is the number of objects per request, and first() reads one object"
            raise TypeError(f"{verb}() has no option {name!r}; {hint}")
