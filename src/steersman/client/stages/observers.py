"""Observers of a client: what an observer is called with, and what may replace requests to the server.

`Client.observed` returns an ordinary client with up to four companions. A controller uses them to keep its cache as new
as its own writes, to recognize the echo of a write, and to skip applies that change nothing. An audit log can use the
same observers.

Guarantees for a `WriteObserver`:
- `written` is called before the verb returns, with the object from the server's response. That includes a deletion
  that only marked the object.
- `deleted` is called when the server reports that the object with this uid is gone.
- Dry runs are not reported.
- `touched` is called for a change without a visible result: each object in the deletion of a collection, and a response
  of another kind (a Scale, a token).
- `unknown` is called when a write may or may not have happened, or happened in part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import msgspec

from steersman.client.results import ListOf
from steersman.client.selections import Labels
from steersman.client.stages.scoped_reads import KindScope
from steersman.objects import GroupVersionKind, Key, Object, Unstructured

#: The bytes of an object as a reader would see it now; None if it is absent or unknown.
Before: TypeAlias = Callable[[GroupVersionKind, Key], bytes | None]


def nothing_before(kind: GroupVersionKind, key: Key) -> bytes | None:
    """The `Before` of a client without a cache: always None."""
    del kind, key


class Write(msgspec.Struct, frozen=True):
    """One write, as confirmed by the server."""

    kind: GroupVersionKind
    key: Key
    resource_version: str
    subresource: str = ""
    #: Whether the version contains only this write on top of the state known before. A write that changed nothing
    #: returns the version of another writer's change, whose event is news.
    certain: bool = True


class WriteObserver(Protocol):
    """Called as writes are confirmed. Its methods must not block."""

    def written(self, write: Write, obj: Object | Unstructured) -> None:
        """The server now stores ``obj``."""
        ...

    def deleted(self, kind: GroupVersionKind, key: Key, uid: str) -> None:
        """The object with this uid is gone."""
        ...

    def touched(self, kind: GroupVersionKind, key: Key | None) -> None:
        """A write whose result is not visible. Without a key, the object is unknown."""
        ...

    def unknown(self, kind: GroupVersionKind, key: Key | None, *, namespace: str = "") -> None:
        """A write may or may not have happened. Without a key: to any object of the kind, or of one namespace."""
        ...


class CachedForm(Protocol):
    """The objects of a cache in one form: whole, or as metadata."""

    def answers(self, kind: Any, /) -> bool:
        """Whether reads of a kind in this form are for the cache; raise if it holds the kind in another form alone."""
        ...

    async def get(self, kind: Any, key: Key | str | tuple[str, str], /) -> Any:
        """One object."""
        ...

    async def list(self, kind: Any, /, *, namespace: str | None, labels: Labels | None) -> ListOf[Any]:
        """The objects of a kind that match the selector, in one namespace or in all."""
        ...

    async def head(self, kind: Any, /, *, namespace: str | None, labels: Labels | None) -> ListOf[Any]:
        """The first of these objects, by namespace and name."""
        ...


class ObjectCache(CachedForm, Protocol):
    """A cache that answers get and list, and the scope of what it holds."""

    @property
    def metadata(self) -> CachedForm:
        """The kinds of which it holds the metadata alone."""
        ...

    def scope(self, kind: Any, namespaced: bool, /) -> KindScope:  # noqa: FBT001 - as `Scopes`
        """What a client of this cache reads of a kind."""
        ...


class Intent(msgspec.Struct, frozen=True):
    """An apply about to be sent."""

    kind: GroupVersionKind
    key: Key
    #: The object as it will be sent.
    body: bytes
    manager: str
    subresource: str
    #: The class of the object; None for an `Unstructured`.
    declared: type[Object] | None
    #: A digest of the inputs of the intent, if its builder has one: with the same inputs, it need not be built again.
    token: bytes = b""

    def __repr__(self) -> str:
        # Without the body, which may be that of a Secret.
        return f"<intent of {self.manager} for {self.kind.kind} {self.key}>"


class ApplyMemory(Protocol):
    """Remembers applies, and says which need not be sent."""

    def unchanged(self, intent: Intent) -> bytes | None:
        """The bytes of the object, if applying the intent would change nothing; None if it must be sent."""
        ...

    def applied(self, intent: Intent, obj: Object | Unstructured) -> None:
        """Called with the server's result ``obj`` of an applied intent."""
        ...
