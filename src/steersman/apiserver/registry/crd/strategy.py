"""The strategy of CustomResourceDefinitions as objects; their custom resources are served elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.trees import Tree, items
from steersman.apiserver.registry.crd.conditions import mark_for_deletion
from steersman.apiserver.registry.crd.defaults import default_crd, storage_version
from steersman.apiserver.registry.crd.internal_version import internal_spec, schemas_of
from steersman.apiserver.registry.crd.validation import validate_crd, validate_crd_status, validate_crd_update
from steersman.apiserver.registry.strategy import CHANGED
from steersman.cel import enforced_format
from steersman.golang import quoted
from steersman.objects.field_problems import FieldProblem
from steersman.schemas import is_schema

_JUNCTORS: Final = ("allOf", "anyOf", "oneOf")


class CustomResourceDefinitionStrategy(BuiltinStrategy):
    """How CustomResourceDefinitions behave."""

    unconditional_update = False
    counts_generations = True
    #: Metadata is validated together with the rest, because the name depends on it.
    judges_metadata = False
    knows_finalizers = False

    def fill(self, obj: Tree) -> None:
        """Convert the definition into the server's form, and fill in defaults."""
        default_crd(obj)

    def prepare_create(self, obj: Tree) -> None:
        """Clear the status, and record the storage version as the first stored version."""
        stored = storage_version(obj["spec"])
        obj["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": None if stored is None else [stored],
        }

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        """Restore the status, and record a new storage version."""
        super().prepare_update(obj, old)
        stored = storage_version(obj["spec"])
        before = items(obj["status"], "storedVersions")
        if stored is not None and stored not in before:
            obj["status"] = obj["status"] | {"storedVersions": [*before, stored]}

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        return validate_crd(obj)

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        return [CHANGED, *validate_crd_update(obj, old)]

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        del old
        return validate_crd_status(obj)

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings about new formats without an effect, and about new sets of objects or lists."""
        unknown, sets = _unknown_formats(obj), _odd_sets(obj)
        known: list[str] = [] if old is None or not unknown else _unknown_formats(old)
        before: list[str] = [] if old is None or not sets else _odd_sets(old)
        formats = [f"unrecognized format {quoted(name)}" for name in unknown if name not in known]
        return formats + [warning for warning in sets if warning not in before]

    def begin_deletion(self, obj: Tree) -> bool:
        """Wait for the deletion of the instances."""
        mark_for_deletion(obj)
        return True


def _unknown_formats(crd: Tree) -> list[str]:
    formats = (
        part["format"]
        for part in _parts(crd)
        if part.get("format") and not enforced_format((part.get("type", ""),), part["format"])
    )
    return list(dict.fromkeys(formats))


def _odd_sets(crd: Tree) -> list[str]:
    """Warnings about sets whose items are no scalars."""
    types = {
        part["items"]["type"]
        for part in _parts(crd)
        if part.get("x-kubernetes-list-type") == "set"
        and is_schema(part.get("items"))
        and part["items"].get("type") in {"array", "object"}
    }
    detail = "is not supported by server-side apply or CEL validation rules"
    return [f'x-kubernetes-list-type: set for items of type "{type_}" {detail}' for type_ in sorted(types)]


def _parts(crd: Tree) -> Iterator[Mapping[str, Any]]:
    """Every schema of a definition, and all of its parts."""
    for schema in schemas_of(internal_spec(crd["spec"])):
        yield from _parts_of(schema)


def _parts_of(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield schema
    for name in ("items", "additionalProperties", "not"):
        if is_schema(schema.get(name)):
            yield from _parts_of(schema[name])
    for name in _JUNCTORS:
        for part in schema.get(name) or ():
            yield from _parts_of(part)
    properties: Mapping[str, Any] | None = schema.get("properties")
    if properties:
        for name in sorted(properties):
            yield from _parts_of(properties[name])
