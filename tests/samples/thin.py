"""Types that know less than the server: derived by chance from whole ones."""

from __future__ import annotations

import types
from itertools import count
from random import Random  # noqa: TID251 - seeded by the test, which says with what
from typing import Annotated, Any, Union, get_args, get_origin

from steersman.markers import ListMap
from steersman.objects import Object, Struct
from steersman.objects.hints import declared_hints, is_struct, wire_names
from steersman.objects.metadata import ObjectMeta
from steersman.objects.struct import StructMeta, field

_numbers = count()


class Thinner:
    """Makes of a class one that knows some of its fields, all the way down. Keys of list maps are always known."""

    def __init__(self, rng: Random, *, share: float = 0.5) -> None:
        self._rng = rng
        self._share = share
        self._keys: set[str] = set()
        self._made: dict[type[Struct], Any] = {ObjectMeta: ObjectMeta}

    def thin(self, cls: type[Object]) -> type[Any]:
        """A thinner class of the same kind."""
        self._keys |= keys_of(cls)
        options = cls.__resource__
        keywords: dict[str, Any] = {
            "group": options.group,
            "version": options.version,
            "kind": options.kind,
            "plural": options.plural,
            "scope": options.scope,
        }
        return self._make(cls, (Object,), keywords, skip={"api_version", "kind", "metadata"})

    def _struct(self, cls: type[Struct]) -> Any:
        if cls not in self._made:
            self._made[cls] = Any  # what a recursive type holds of itself is free-form here
            self._made[cls] = self._make(cls, (Struct,), {}, skip=set())
        return self._made[cls]

    def _make(self, cls: type[Any], bases: tuple[type, ...], keywords: dict[str, Any], *, skip: set[str]) -> type[Any]:
        wires = wire_names(cls)
        annotations: dict[str, Any] = {}
        body: dict[str, Any] = {}
        for name, hint in declared_hints(cls).items():
            if name not in skip and (wires[name] in self._keys or self._rng.random() < self._share):
                annotations[name] = self._hint(hint)
                required = name in cls.__required__
                body[name] = field(name=wires[name]) if required else field(default=None, name=wires[name])
        unique = f"Thin{cls.__name__}{next(_numbers)}"
        body |= {"__annotations__": annotations, "__module__": __name__, "__qualname__": unique}
        made: Any = StructMeta(unique, bases, body, **keywords)
        globals()[unique] = made  # where pickle looks for it
        return made

    def _hint(self, hint: Any) -> Any:
        if is_struct(hint):
            return self._struct(hint)
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            inner, *markers = arguments
            return Annotated[(self._hint(inner), *markers)]
        if origin in {Union, types.UnionType}:
            return Union[tuple(self._hint(argument) for argument in arguments)]  # noqa: UP007 - made at run time
        if origin in {list, dict}:
            return origin[tuple(self._hint(argument) for argument in arguments)]
        return hint


def keys_of(cls: type[Struct], seen: set[type[Struct]] | None = None) -> set[str]:
    """All keys of list maps that a class holds somewhere."""
    seen = set() if seen is None else seen
    if cls in seen:
        return set()
    seen.add(cls)
    found: set[str] = set()
    waiting = list(declared_hints(cls).values())
    while waiting:
        hint = waiting.pop()
        if is_struct(hint):
            found |= keys_of(hint, seen)
        if get_origin(hint) is Annotated:
            found.update(key for marker in get_args(hint)[1:] if isinstance(marker, ListMap) for key in marker.keys)
        waiting.extend(argument for argument in get_args(hint) if not isinstance(argument, ListMap))
    return found
