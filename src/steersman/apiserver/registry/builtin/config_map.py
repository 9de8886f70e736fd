"""ConfigMaps: keys, size and immutability."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.formats import config_key
from steersman.apiserver.registry.builtin.types.trees import Tree, inner
from steersman.apiserver.registry.strategy import CHANGED, WHOLE
from steersman.objects.field_problems import FieldProblem, each, forbidden, invalid, too_long

MAX_SIZE = 1024 * 1024
LOCKED = "field is immutable when `immutable` is set"


class ConfigMapStrategy(BuiltinStrategy):
    """How ConfigMaps behave."""

    def default(self, obj: Tree) -> None:
        with_empty(obj, "binaryData", super().default)

    def prepare_create(self, obj: Tree) -> None:
        """Drop empty fields."""
        super().prepare_create(obj)
        drop_empty(obj, "binaryData")

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        """Keys must be file names, and the total size at most one mebibyte."""
        problems: list[FieldProblem] = []
        data, binary = inner(obj, "data"), inner(obj, "binaryData")
        for key in data:
            problems += each(f"data[{key}]", key, config_key(key))
            if key in binary:
                problems.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        for key in binary:
            problems += each(f"binaryData[{key}]", key, config_key(key))
        size = sum(len(value.encode()) for value in data.values()) + sum(map(decoded_size, binary.values()))
        if size > MAX_SIZE:
            problems.append(too_long("[]", MAX_SIZE))
        return problems

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """An immutable ConfigMap does not change."""
        stays = locked(obj, old, ("data", "binaryData"))
        drop_empty(obj, "binaryData")
        return [CHANGED, *stays, WHOLE, *self.validate_create(obj)]


def locked(obj: Tree, old: Tree, fields: tuple[str, ...]) -> list[FieldProblem]:
    """Validate a change of an immutable object."""
    if not old.get("immutable"):
        return []
    problems = [] if obj.get("immutable") else [forbidden("immutable", LOCKED)]
    return problems + [
        forbidden(field, LOCKED)
        for field in fields
        if inner(obj, field) != inner(old, field) or (obj.get(field) == {} and field not in old)
    ]


def with_empty(obj: Tree, field: str, default: Callable[[Tree], None]) -> None:
    """Fill in defaults but keep an empty field, which differs from an absent one in an immutable object."""
    is_empty = obj.get(field) == {}
    default(obj)
    if is_empty:
        obj.setdefault(field, {})


def drop_empty(obj: Tree, field: str) -> None:
    """Drop a field if it is empty."""
    if obj.get(field) == {}:
        del obj[field]


def decoded_size(value: str) -> int:
    """The decoded size of a base64 value in bytes."""
    return len(b64decode(value))
