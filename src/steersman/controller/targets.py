"""The targets that a mapper, a source or a program names, read strictly.

Guarantees
- A mapper may return one target or several: a `Key`, ``"namespace/name"`` or a `Request`.
- Targets that cannot exist are rejected before they reach the queue: a tuple instead of a key, a key without a name, a
  key without a namespace for a namespaced kind, and a key with a namespace for a cluster-scoped kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, cast

import msgspec

from steersman.controller.causes import Request
from steersman.objects import Key

#: How a mapper or a program names an object to reconcile.
Target: TypeAlias = Request | Key | str

_WRITE = 'Key(namespace, name), "namespace/name" or a Request'


class Scope(msgspec.Struct, frozen=True):
    """The kind that a controller reconciles, and whether it is namespaced; None: unknown."""

    kind: str = ""
    namespaced: bool | None = None

    def check(self, request: Request) -> Request:
        """Raise `ValueError` for an object that cannot exist."""
        namespace, name = check_request(request).key
        if self.namespaced and not namespace:
            raise ValueError(
                f'{name!r} is not a {self.kind}: a {self.kind} is namespaced; write Key(namespace, "{name}")'
            )
        if self.namespaced is False and namespace:
            raise ValueError(
                f'\'{namespace}/{name}\' is not a {self.kind}: a {self.kind} is cluster-scoped; write Key("", "{name}")'
            )
        return request

    def requests(self, returned: object) -> tuple[Request, ...]:
        """The requests that a mapper returned: one target or several."""
        if isinstance(returned, (Request, Key, str)):
            return (self.check(_request_for(returned)),)
        if isinstance(returned, Iterable):
            several = cast("Iterable[object]", returned)
            return tuple(dict.fromkeys([self.check(_request_for(target)) for target in several]))
        raise TypeError(f"it returned {_short(returned)}; return a list of {_WRITE}, or one of them")


#: For mappers whose controller is unknown.
ANY_SCOPE = Scope()


def as_request(target: object) -> Request:
    """The request for a target."""
    return check_request(_request_for(target))


def _request_for(target: object) -> Request:
    match target:
        case Request():
            return target
        case Key():
            return Request(target)
        case str():
            return Request(Key.parse(target))
        case _:
            key = getattr(target, "key", None)
            write = "return its key: write .key after it" if isinstance(key, Key) else f"pass {_WRITE}"
            raise TypeError(f"{_short(target)} is not a target; {write}")


def check_request(request: object) -> Request:
    """Raise unless this is a valid request."""
    if not isinstance(request, Request):
        raise TypeError(f"{_short(request)} is not a request; pass Request(Key(namespace, name))")
    key = request.key
    if not isinstance(key, Key):  # pyright: ignore[reportUnnecessaryIsInstance] - users are not all typed
        raise TypeError(f"{_short(request)} holds {_short(key)}; pass Request(Key(namespace, name))")
    if not (type(key.namespace) is str and type(key.name) is str and type(request.cluster) is str):
        raise TypeError(
            f'{_short(request)} holds a value that is not a string; pass Key(namespace, name), or Key("", name)'
        )
    if not key.name:
        raise ValueError(f"{_short(request)} has no name; pass Key(namespace, name)")
    return request


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:199]}…"
