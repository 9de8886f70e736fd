"""Watching a client write: what an observer is told, and what may be asked instead of the server.

`Client.observed` gives a client that is like any other, with up to four companions. They are how a controller keeps its cache as new as
its own writes, tells the echo of a write from news, and sends nothing when nothing changed; whoever writes an audit log uses the same seam.

Guarantees of the calls to a `WriteObserver`
- `written` is called before the write's caller goes on, with the object as the server answered it. So it is for a deletion that only
  began: the object is marked.
- `deleted` is called when the server says that an object is gone for good, by its uid.
- A dry run is not told at all. Each object that a deletion of many names, and an answer of another kind (a Scale, a token) are `touched`:
  something changed, and what it became was not shown.
- `unknown` is called when a write may or may not have happened, or happened in part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import msgspec

from steersman.client.reads import Labels
from steersman.client.results import ListOf
from steersman.objects import GroupVersionKind, Key, Object, Unstructured

#: The bytes of an object as a reader could see it now; None if it is not there or not known.
Before: TypeAlias = Callable[[GroupVersionKind, Key], bytes | None]


def nothing_before(kind: GroupVersionKind, key: Key) -> bytes | None:
    """What is known without a cache."""
    del kind, key


class Write(msgspec.Struct, frozen=True):
    """One write as the server confirmed it."""

    kind: GroupVersionKind
    key: Key
    resource_version: str
    subresource: str = ""
    #: Whether the version shows nothing but this write on top of what was known before. A write that changed nothing is
    #: answered with the version of somebody else's write, whose event is news.
    certain: bool = True


class WriteObserver(Protocol):
    """Is told of writes as they are confirmed. It must not wait."""

    def written(self, write: Write, obj: Object | Unstructured) -> None:
        """The server holds ``obj`` now."""
        ...

    def deleted(self, kind: GroupVersionKind, key: Key, uid: str) -> None:
        """The object with this uid is gone."""
        ...

    def touched(self, kind: GroupVersionKind, key: Key | None) -> None:
        """Something was written whose result was not shown. Without a key: nobody can say to which object."""
        ...

    def unknown(self, kind: GroupVersionKind, key: Key | None) -> None:
        """A write may or may not have happened. Without a key: to any object of the kind."""
        ...


class CachedReads(Protocol):
    """The reading verbs as a cache answers them."""

    async def get(self, kind: Any, key: Key | str | tuple[str, str], /) -> Any:
        """One object."""
        ...

    async def list(self, kind: Any, /, *, namespace: str | None, labels: Labels | None) -> ListOf[Any]:
        """All objects of a kind, in all namespaces or in one, that a selector selects."""
        ...


class Intent(msgspec.Struct, frozen=True):
    """What an apply is about to send."""

    kind: GroupVersionKind
    key: Key
    #: The object as it will be sent.
    body: bytes
    manager: str
    subresource: str
    #: The class of the object; None for an `Unstructured`.
    declared: type[Object] | None


class Intents(Protocol):
    """Knows which intents need not be sent."""

    def unchanged(self, intent: Intent) -> bytes | None:
        """The bytes of the object, if applying the intent would change nothing; None to send it."""
        ...

    def applied(self, intent: Intent, obj: Object | Unstructured) -> None:
        """The server made ``obj`` of it."""
        ...
