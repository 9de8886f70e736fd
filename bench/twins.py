"""Bare twins: plain msgspec structs with the fields of ours, to measure what our structs cost."""

from __future__ import annotations

import types
from datetime import datetime
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from steersman.objects import MicroTime, Quantity, Struct
from steersman.objects.hints import declared_hints, is_struct, wire_names


class Twins:
    """Makes the bare twin of each class, once."""

    def __init__(self) -> None:
        self._made: dict[type[Struct], Any] = {}

    def of(self, cls: type[Struct]) -> Any:
        """The twin of ``cls``: every field optional, like a hand-written type for decoding."""
        if cls not in self._made:
            self._made[cls] = Any  # until it is made: for a recursive type
            fields = [self._field(name, hint) for name, hint in declared_hints(cls).items()]
            self._made[cls] = msgspec.defstruct(
                cls.__name__, fields, kw_only=True, omit_defaults=True, rename=wire_names(cls)
            )
        return self._made[cls]

    def _field(self, name: str, hint: Any) -> tuple[str, Any, Any]:
        bare = self._bare(hint)
        return (name, bare, msgspec.Raw(b"")) if bare is msgspec.Raw else (name, bare | None, None)

    def _bare(self, hint: Any) -> Any:
        origin = get_origin(hint)
        if origin is Annotated:
            return self._bare(get_args(hint)[0])
        if origin in {Union, types.UnionType}:
            return Union[tuple(self._bare(member) for member in get_args(hint))]  # noqa: UP007 - made at run time
        if origin in {list, dict}:
            return origin[tuple(self._bare(argument) for argument in get_args(hint))]
        if is_struct(hint):
            return self.of(hint)
        if hint is Quantity:
            return str
        return datetime if hint is MicroTime else hint
