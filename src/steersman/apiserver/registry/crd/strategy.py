"""The strategy of CustomResourceDefinitions as objects; their custom resources are served elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
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
        """Warnings about new formats without an effect."""
        unknown = _unknown_formats(obj)
        known: list[str] = [] if old is None or not unknown else _unknown_formats(old)
        return [f"unrecognized format {quoted(name)}" for name in unknown if name not in known]

    def begin_deletion(self, obj: Tree) -> bool:
        """Wait for the deletion of the instances."""
        mark_for_deletion(obj)
        return True


def _unknown_formats(crd: Tree) -> list[str]:
    found: dict[str, None] = {}
    for schema in schemas_of(internal_spec(crd["spec"])):
        _note_formats(schema, found)
    return list(found)


def _note_formats(schema: Mapping[str, Any], found: dict[str, None]) -> None:
    """Collect the formats without an effect, in a schema and all of its parts."""
    format_ = schema.get("format")
    if format_ and not enforced_format((schema.get("type", ""),), format_):
        found[format_] = None
    for name in ("items", "additionalProperties", "not"):
        if is_schema(schema.get(name)):
            _note_formats(schema[name], found)
    for name in _JUNCTORS:
        for part in schema.get(name) or ():
            _note_formats(part, found)
    properties: Mapping[str, Any] | None = schema.get("properties")
    if properties:
        for name in sorted(properties):
            _note_formats(properties[name], found)
