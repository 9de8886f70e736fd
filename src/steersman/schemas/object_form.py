"""A schema as msgspec types, for a fast check of an object's structure and fast defaults.

Guarantees
- If `has_form` is true for a tree, it has every required field, no unknown field and no null that its schema forbids.
  Its values have the declared types, and its strings the declared lengths. Pruning would not change it. The metadata of
  a whole object is not checked.
- False means undecided: rare and intricate schemas are left to the full validation.
- For a tree that has the form, `fill_defaults` gives the same result as `admitted`.

The types are made once for a schema; msgspec compares a tree with them in C.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, cast

import msgspec

from steersman.schemas.admission import sized_default

Schema = Mapping[str, Any]
#: Fills in the defaults of a value, and returns their size in bytes of JSON.
Filler = Callable[[Any], int]

_NEVER: Final = Annotated[int, msgspec.Meta(ge=1, le=0)]
_ANYTHING: Final = bool | int | float | str | list[Any] | dict[str, Any]
_LENGTH_MAX: Final = 2**62
#: Characters that msgspec does not allow in the name of a field.
_UNNAMEABLE: Final = re.compile(r'[\x00-\x1f"\\]')
_PRESERVES: Final = "x-kubernetes-preserve-unknown-fields"
_OF_EVERY_OBJECT: Final[Mapping[str, Any]] = {"apiVersion": str, "kind": str, "metadata": dict[str, Any]}
_SCALARS: Final[Mapping[str, Any]] = {"boolean": bool, "integer": int, "number": int | float, "string": str}


class ObjectForm:
    """The structure of a schema's objects: fields, types and defaults."""

    def __init__(self, schema: Schema) -> None:
        try:
            self._type = _object_type(schema, root=True)
        except RecursionError:
            self._type = _NEVER
        self._fill, self._can_fill = _filler(schema, root=True)

    def has_form(self, tree: Any) -> bool:
        """Whether a tree has the form; False means undecided."""
        try:
            msgspec.convert(tree, self._type)
        except (msgspec.ValidationError, RecursionError):
            return False
        return True

    def fill_defaults(self, tree: Any) -> int | None:
        """Fill in the defaults of a tree that has the form, in place. Returns their size; None if undecided."""
        if not self._can_fill:
            return None
        return self._fill(tree) if self._fill is not None else 0


def form_of(schema: Schema) -> ObjectForm:
    """The form of a schema; equal schemas share one."""
    return _form_of(msgspec.json.encode(schema))


@lru_cache(maxsize=256)
def _form_of(schema: bytes) -> ObjectForm:
    return ObjectForm(msgspec.json.decode(schema))


# types


def _type(schema: Any, keys: tuple[str, ...] = ()) -> Any:
    """The type of a value; ``keys`` are fields that it must have."""
    if not isinstance(schema, Mapping) or cast("Schema", schema).get("x-kubernetes-embedded-resource"):
        return _NEVER
    known = cast("Schema", schema)
    made = _bare_type(known, keys)
    return made | None if known.get("nullable") and made is not _NEVER else made


def _bare_type(schema: Schema, keys: tuple[str, ...]) -> Any:
    kind = schema.get("type")
    if kind is None:
        if schema.get("x-kubernetes-int-or-string"):
            return int | str
        return _ANYTHING if schema.get(_PRESERVES) and not schema.get("properties") else _NEVER
    if kind == "string":
        return _text_type(schema)
    if kind == "array":
        return _list_type(schema)
    return _object_type(schema, keys) if kind == "object" else _SCALARS.get(kind, _NEVER)


def _text_type(schema: Schema) -> Any:
    if schema.get("enum"):
        allowed = tuple(each for each in schema["enum"] if isinstance(each, str))
        return Literal[allowed] if allowed else _NEVER  # type: ignore[valid-type]
    fewest, most = schema.get("minLength") or None, schema.get("maxLength")
    if not all(each is None or (isinstance(each, int) and 0 <= each < _LENGTH_MAX) for each in (fewest, most)):
        return _NEVER
    return str if fewest is most is None else Annotated[str, msgspec.Meta(min_length=fewest, max_length=most)]


def _list_type(schema: Schema) -> Any:
    items: Any = schema.get("items")
    if not isinstance(items, Mapping):
        return _NEVER
    known, sort = cast("Schema", items), schema.get("x-kubernetes-list-type")
    if sort in {"map", "set"} and known.get("nullable"):
        return _NEVER
    return list[_type(known, tuple(schema.get("x-kubernetes-list-map-keys") or ()) if sort == "map" else ())]


def _object_type(schema: Schema, keys: tuple[str, ...] = (), *, root: bool = False) -> Any:
    properties: Schema = schema.get("properties") or {}
    additional: Any = schema.get("additionalProperties")
    if additional is not None:
        is_map = isinstance(additional, Mapping) and not (properties or root or schema.get("required"))
        return dict[str, _type(additional)] if is_map else _NEVER
    if any(map(_UNNAMEABLE.search, properties)):
        return _NEVER
    places = {name: _type(inner) for name, inner in properties.items()}
    if root:
        places |= _OF_EVERY_OBJECT
    required = {*(schema.get("required") or ()), *keys}
    fields: list[Any] = []
    for number, (name, made) in enumerate(places.items()):
        if name in required and properties.get(name, {}).get("default") is None:
            fields.append((f"f{number}", made))
        else:
            fields.append((f"f{number}", made | msgspec.UnsetType, msgspec.UNSET))
    return msgspec.defstruct(
        "Form",
        fields,
        rename={f"f{number}": name for number, name in enumerate(places)},
        forbid_unknown_fields=not schema.get(_PRESERVES),
        kw_only=True,
        gc=False,
    )


# defaults


def _filler(schema: Any, *, root: bool = False, repeated: bool = False) -> tuple[Filler | None, bool]:
    """The function that fills in the defaults (None if there are none), and whether it handles all of them."""
    if not isinstance(schema, Mapping):
        return None, True
    known = cast("Schema", schema)
    properties: Schema = known.get("properties") or {}
    if properties:
        return _struct_filler(properties, root=root, repeated=repeated)
    for name in ("items", "additionalProperties"):
        inner, complete = _filler(known.get(name), repeated=True)
        if inner is not None or not complete:
            return inner and _each(inner, of_list=name == "items"), complete
    return None, True


def _each(fill: Filler, *, of_list: bool) -> Filler:
    if of_list:
        return lambda value: sum(map(fill, value)) if value is not None else 0
    return lambda value: sum(map(fill, value.values())) if value is not None else 0


def _struct_filler(properties: Schema, *, root: bool, repeated: bool) -> tuple[Filler | None, bool]:
    below: list[tuple[str, Filler]] = []
    own: list[tuple[str, Any, int]] = []
    for name, schema in properties.items():
        whole = root and name in _OF_EVERY_OBJECT
        default: Any = schema.get("default")
        # The slow path counts the bytes while it inserts: a large default in many items could exceed the limit.
        if default is not None and (whole or (repeated and isinstance(default, (dict, list)))):
            return None, False
        inner, complete = (None, True) if whole else _filler(schema, repeated=repeated)
        if not complete:
            return None, False
        own += [(name, *sized_default(schema))] if default is not None else []
        below += [(name, inner)] if inner is not None else []
    return (_filled_by(below, own), True) if below or own else (None, True)


def _filled_by(below: list[tuple[str, Filler]], own: list[tuple[str, Any, int]]) -> Filler:
    def fill(value: Any) -> int:
        if value is None:
            return 0
        size = 0
        for name, inner in below:
            if name in value:
                size += inner(value[name])
        for name, default, length in own:
            if name not in value:
                value[name] = copy.deepcopy(default)
                size += length
        return size

    return fill
