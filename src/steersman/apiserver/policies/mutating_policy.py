"""One MutatingAdmissionPolicy: applies its mutations to an object.

Guarantees
- Mutations are applied in order; each gets the result of the one before.
- An ApplyConfiguration merges like server-side apply, and may not change atomic lists and maps.
- A JSON patch with a failed test operation changes nothing.
"""

from __future__ import annotations

from typing import Any, Final, cast

from steersman.apiserver.documents import copied
from steersman.apiserver.field_managers import Managed
from steersman.apiserver.field_managers.typed_problems import typed_problems
from steersman.apiserver.policies.policy import Policy
from steersman.apiserver.registry.admission_expressions import EXHAUSTED, EXPRESSIONS_MAX, evaluated
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.webhooks.json_patches import apply_patch, completed
from steersman.cel import (
    Budget,
    BudgetExceeded,
    CelError,
    CompiledExpression,
    MadeObject,
    TypedList,
    TypedObject,
    untyped,
)
from steersman.golang import quoted
from steersman.patches import JsonPatchTestFailed, MergeSchema, PatchError, growth_of, merge_applied

_WANTED: Final = {"ApplyConfiguration": "Object", "JSONPatch": "list(JSONPatch)"}
#: The subresources whose kinds kube-apiserver cannot merge.
_UNTYPED: Final = {("autoscaling/v1", "Scale"), ("policy/v1", "Eviction")}
_FIELDS: Final = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}


class MutationFailed(Exception):
    """A mutation failed; the text is kube-apiserver's."""


class MutatingPolicy(Policy):
    """A compiled policy."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree, patches=True)
        spec: Tree = tree.get("spec") or {}
        self.reinvoked = spec.get("reinvocationPolicy") == "IfNeeded"
        #: Patch type, expression, and the most bytes that copies in a JSON patch can add.
        self.mutations: list[tuple[str, CompiledExpression, int]] = []
        for mutation in spec.get("mutations") or ():
            sort: str = mutation["patchType"]
            expression: str = mutation[_FIELDS[sort]]["expression"].strip()
            growth = growth_of(expression.encode()) if sort == "JSONPatch" else 0
            self.mutations.append((sort, self.environment.compiled(expression, _WANTED[sort]), growth))

    def mutated(self, number: int, values: dict[str, Any], managed: Managed) -> Any:
        """The object after one mutation. Raises `MutationFailed`."""
        sort, expression, _ = self.mutations[number]
        budget = Budget(EXPRESSIONS_MAX)
        try:
            made = evaluated(self.environment, expression, self.with_variables(values, budget), budget)
        except BudgetExceeded:
            raise MutationFailed(EXHAUSTED) from None
        if isinstance(made, CelError):
            raise MutationFailed(str(made))
        obj: Tree = untyped(values["object"])
        return _json_patched(obj, made) if sort == "JSONPatch" else _applied(obj, made, managed)


def _json_patched(obj: Tree, operations: Any) -> Any:
    for operation in cast("list[Tree]", operations):
        _check_value(operation.get("value"))
    given = [copied(untyped(operation)) for operation in cast("list[Any]", operations)]
    try:
        return apply_patch(copied(obj), completed(given))
    except JsonPatchTestFailed:
        return copied(obj)
    except PatchError as error:
        raise MutationFailed(f"JSON Patch: {error}") from None


def _check_value(value: Any) -> None:
    """Check that kube-apiserver can write a value as JSON: it cannot for lists and maps with types."""
    if isinstance(value, TypedList | TypedObject):
        names = {"list": "'list(dyn)'", "map": "'map(dyn, dyn)'"}
        kind = names.get(value.shape.kind, f"struct type {value.shape.go}")
        to = "*structpb.Value" if value.shape.kind == "struct" else "'*structpb.Value'"
        why = f"type conversion error from {kind} to {to}"
        raise MutationFailed(f"JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}")
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            _check_value(item)
    elif isinstance(value, dict) and not isinstance(value, MadeObject):
        for item in cast("Tree", value).values():
            _check_value(item)


def _applied(obj: Tree, made: Any, managed: Managed) -> Any:
    _check_names(made, "Object")
    made = untyped(made)
    if (obj["apiVersion"], obj["kind"]) in _UNTYPED:
        why = f"no corresponding type for {obj['apiVersion']}, Kind={obj['kind']}"
        raise MutationFailed(f"error applying patch: failed to convert patch object to typed object: {why}")
    patch: Tree = copied(made) | {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    if problems := typed_problems(patch, managed.schema):
        raise MutationFailed(f"error applying patch: failed to convert patch object to typed object: {problems}")
    if atomics := _atomics(patch, managed.schema, ""):
        words = f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
        raise MutationFailed(f"error applying patch: invalid ApplyConfiguration: {words}")
    # Objects of built-in kinds have their types.
    if managed.definition.custom and (problems := typed_problems(obj, managed.schema, duplicates=True)):
        raise MutationFailed(f"error applying patch: failed to convert original object to typed object: {problems}")
    return copied(merge_applied(obj, patch, managed.schema))


def _check_names(made: Any, expected: str) -> None:
    """Check that the type name of each object is the path of its field. Raises `MutationFailed`."""
    if isinstance(made, list):
        for each in cast("list[Any]", made):
            _check_names(each, expected)
    elif isinstance(made, MadeObject):
        if made.kind != expected:
            mismatch = f"unexpected type name {quoted(made.kind)}, expected {quoted(expected)}"
            raise MutationFailed(f"type mismatch: {mismatch}, which matches field name path from root Object type")
        for name, value in made.items():
            _check_names(value, f"{expected}.{name}")


def _atomics(value: Any, schema: MergeSchema, path: str) -> list[str]:
    """The paths of the atomic lists and maps in an applied object."""
    found: list[str] = []
    if isinstance(value, dict):
        if schema.is_atomic_map:
            found.append(path)
        for name, inner in cast("Tree", value).items():
            place = schema.places[name]
            if place is not None:
                found += _atomics(inner, place, f"{path}.{name}")
    elif isinstance(value, list):
        if schema.list_type == "atomic":
            found.append(path)
        for at, inner in enumerate(cast("list[Any]", value)):
            found += _atomics(inner, schema.items, f"{path}[{at}]")
    return found
