"""What a custom resource may not be: what its schema refuses, and numbers of replicas that are none.

Guarantee: in kube-apiserver's words and order, CEL rules aside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec.structs import replace

from steersman.apiserver.registry.definition import ScalePaths, Tree
from steersman.patches.go_values import printed, type_name
from steersman.schemas import FieldProblem, validate_tree
from steersman.schemas.field_problems import problem

_INT32_MAX: Final = 2**31 - 1
#: How problems begin that kube-apiserver places nowhere: those of several schemas at once, and of formats of numbers.
_PLACELESS: Final = ('Invalid value: "": "', 'Invalid value: "": Checked value')


def object_problems(schema: Tree, obj: Tree, scale: ScalePaths | None) -> list[FieldProblem]:
    """What is wrong with an object."""
    found = [_placed(each) for each in validate_tree(schema, obj)]
    return found + (_replicas(obj, scale.spec_replicas) if scale is not None else [])


def status_problems(schema: Tree, obj: Tree, scale: ScalePaths | None) -> list[FieldProblem]:
    """What is wrong with the status of an object; the words call its fields as if it were all there is."""
    properties: Mapping[str, Tree] = schema.get("properties") or {}
    found: list[FieldProblem] = []
    if "status" in properties and "status" in obj:
        for each in validate_tree(properties["status"], obj["status"]):
            joint = "" if not each.path or each.path.startswith("[") else "."
            found.append(_placed(replace(each, path=f"status{joint}{each.path}")))
    if scale is not None:
        found += _replicas(obj, scale.status_replicas) + _selector(obj, scale.selector)
    return found


def _placed(found: FieldProblem) -> FieldProblem:
    return replace(found, path="<nil>") if found.message.startswith(_PLACELESS) else found


def _replicas(obj: Tree, path: tuple[str, ...]) -> list[FieldProblem]:
    where = f".{'.'.join(path)}"
    value, wrong = _at(obj, path, int, "int64")
    if wrong:
        return [problem(where, "FieldValueInvalid", 0, wrong)]
    if value is not None and value < 0:
        return [problem(where, "FieldValueInvalid", value, "should be a non-negative integer")]
    if value is not None and value > _INT32_MAX:
        return [problem(where, "FieldValueInvalid", value, f"should be less than or equal to {_INT32_MAX}")]
    return []


def _selector(obj: Tree, path: tuple[str, ...] | None) -> list[FieldProblem]:
    if path is None:
        return []
    _, wrong = _at(obj, path, str, "string")
    return [problem(f".{'.'.join(path)}", "FieldValueInvalid", "", wrong)] if wrong else []


def _at(obj: Tree, path: tuple[str, ...], expected: type, called: str) -> tuple[Any, str]:
    """The value at a path, None if there is none; and what is wrong with it, in words."""
    value: Any = obj
    for depth, name in enumerate(path):
        if value is None:
            return None, ""
        if not isinstance(value, dict):
            where = ".".join(path[: depth + 1])
            return None, f".{where} accessor error: {_shown(value)}, expected map[string]interface{{}}"
        members = cast("Tree", value)
        if name not in members:
            return None, ""
        value = members[name]
    if type(value) is not expected:
        return None, f".{'.'.join(path)} accessor error: {_shown(value)}, expected {called}"
    return value, ""


def _shown(value: Any) -> str:
    return f"{printed(value)} is of the type {type_name(value)}"
