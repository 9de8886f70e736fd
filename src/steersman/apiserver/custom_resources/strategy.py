"""The strategy of custom resources, determined by the schema of their version."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from steersman.apiserver.custom_resources.conversion import DEFAULTS_MAX
from steersman.apiserver.custom_resources.extensions import Validator
from steersman.apiserver.custom_resources.rules import Judge
from steersman.apiserver.custom_resources.schema_cost import cost_of
from steersman.apiserver.errors import too_large
from steersman.apiserver.registry.definition import ScalePaths, Tree
from steersman.apiserver.registry.metadata import finalizer_warnings
from steersman.apiserver.registry.strategy import Strategy
from steersman.apiserver.workers import LARGE
from steersman.objects import GroupVersionKind
from steersman.objects.field_problems import FieldProblem, problem
from steersman.schemas import DefaultsTooLarge, ObjectForm, admitted, form_of

#: The minimum size of a value in bytes, and the number of validation steps to run at once: they take a tenth of a
#: second.
_VALUE_MIN: Final = 3
_STEPS_MAX: Final = 20_000
#: Bytes of defaults below list items and map entries that an object may get before it counts as large: what 64 bytes for
#: each item make of the largest body that is not large.
_ADDED_MAX: Final = 64 * LARGE // _VALUE_MIN


class CustomStrategy(Strategy):
    """The rules of a custom resource: those of its schema and of its validator."""

    unconditional_update = False
    counts_generations = True
    not_counted = frozenset({"metadata"})

    def __init__(
        self, kind: GroupVersionKind, schema: Tree, scale: ScalePaths | None, validator: Validator | None = None
    ) -> None:
        self._validator = validator
        self._kind = kind.kind
        self._api_version = kind.api_version
        self._schema = schema
        self._judge = Judge(schema, scale)
        self._cost = cost_of(schema)

    def counts_as(self, size: int) -> int:
        """The size that a body counts as: large if its defaults, or its validation by the schema, may take long."""
        if size >= LARGE:
            return size
        steps = size // _VALUE_MIN * self._cost.steps
        # A loop iterates over a part of the object, or over a literal in its rule.
        steps += sum((size + length) ** min(loops, 4) for length, loops in self._cost.rules if loops)
        added = size // _VALUE_MIN * self._cost.item_defaults
        return LARGE if added > _ADDED_MAX or steps > _STEPS_MAX else size

    @cached_property
    def _form(self) -> ObjectForm:
        return form_of(self._schema)

    def has_form(self, obj: Tree) -> bool:
        """Whether an object has the fields and types of the schema, and no others; False means undecided."""
        return self._form.has_form(obj)

    def default(self, obj: Tree) -> None:
        """Prune unknown fields and fill in defaults; another kind is rejected unchanged."""
        if obj["kind"] != self._kind:
            return
        filled = self._form.fill_defaults(obj) if self._form.has_form(obj) else None
        if filled is not None:
            if filled > DEFAULTS_MAX:
                raise too_large("etcdserver: request is too large")
            return
        try:
            made: Tree = admitted(self._schema, obj, root=True, defaults_max=DEFAULTS_MAX, in_place=True)
        except DefaultsTooLarge:
            # No store accepts an object of that size, and building it would take as much memory.
            raise too_large("etcdserver: request is too large") from None
        if made is not obj:
            obj.clear()
            obj.update(made)

    def prepare_status(self, obj: Tree, old: Tree) -> None:
        """Normalize a status that was sent as part of another kind, which is ignored."""
        del old
        if obj["kind"] == self._kind or "status" not in obj:
            return
        try:
            made: Tree = admitted(self._schema, {"status": obj["status"]}, defaults_max=DEFAULTS_MAX)
        except DefaultsTooLarge:
            raise too_large("etcdserver: request is too large") from None
        obj.pop("status")
        if "status" in made:
            obj["status"] = made["status"]

    def validate_type(self, obj: Tree, old: Tree | None = None) -> list[FieldProblem]:
        """The problems of another kind or version. Then the schema is not checked, but lists and rules are."""
        expected = (("kind", self._kind), ("apiVersion", self._api_version))
        found = [
            problem(name, "FieldValueInvalid", obj[name], f"must be {value}")
            for name, value in expected
            if obj[name] != value
        ]
        return self._judge.beyond_schema(obj, old, found) if found else []

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        """The problems that the schema finds, else those that the validator finds."""
        return self._judge.object(obj, None) or self._own_problems(None, obj)

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """The new problems that the schema finds, else those that the validator finds."""
        return self._judge.object(obj, old) or self._own_problems(old, obj)

    def _own_problems(self, old: Tree | None, obj: Tree) -> list[FieldProblem]:
        return [] if self._validator is None else list(self._validator(old, obj))

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        return self._judge.status(obj, old)

    def tolerated(self, obj: Tree, old: Tree) -> list[str]:
        """Rules that were violated before."""
        return self._judge.warnings(obj, old)

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings about finalizers that may collide."""
        return finalizer_warnings(obj["metadata"], {} if old is None else old["metadata"])
