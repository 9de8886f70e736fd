"""How custom resources behave: by the schema of their version."""

from __future__ import annotations

from steersman.apiserver.custom_resources.rules import Judge
from steersman.apiserver.registry.definition import ScalePaths, Strategy, Tree
from steersman.apiserver.registry.metadata import finalizer_warnings
from steersman.objects import GroupVersionKind
from steersman.schemas import FieldProblem, admitted
from steersman.schemas.field_problems import problem


class CustomStrategy(Strategy):
    """The rules of a custom resource: those of its schema."""

    unconditional_update = False
    counts_generations = True
    not_counted = frozenset({"metadata"})

    def __init__(self, kind: GroupVersionKind, schema: Tree, scale: ScalePaths | None) -> None:
        self._kind = kind.kind
        self._api_version = kind.api_version
        self._schema = schema
        self._judge = Judge(schema, scale)

    def default(self, obj: Tree) -> None:
        """Drop what the schema does not know, and fill in its defaults; another kind is refused as it is."""
        if obj["kind"] != self._kind:
            return
        made: Tree = admitted(self._schema, obj, root=True)
        obj.clear()
        obj.update(made)

    def prepare_status(self, obj: Tree, old: Tree) -> None:
        """Bring a status that came as part of another kind into form: that kind is not looked at."""
        del old
        if obj["kind"] == self._kind or "status" not in obj:
            return
        made: Tree = admitted(self._schema, {"status": obj["status"]})
        obj.pop("status")
        if "status" in made:
            obj["status"] = made["status"]

    def validate_type(self, obj: Tree, old: Tree | None = None) -> list[FieldProblem]:
        """Another kind, or another version; the schema does not count then, but its lists and rules do."""
        expected = (("kind", self._kind), ("apiVersion", self._api_version))
        found = [
            problem(name, "FieldValueInvalid", obj[name], f"must be {value}")
            for name, value in expected
            if obj[name] != value
        ]
        return self._judge.beyond_schema(obj, old, found) if found else []

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        """What the schema refuses."""
        return self._judge.object(obj, None)

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """What the schema refuses, unless it is what it was."""
        return self._judge.object(obj, old)

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """What the schema refuses, unless it is what it was."""
        return self._judge.status(obj, old)

    def tolerated(self, obj: Tree, old: Tree) -> list[str]:
        """Rules that were broken before."""
        return self._judge.warnings(obj, old)

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Finalizers that others may have too."""
        return finalizer_warnings(obj["metadata"], {} if old is None else old["metadata"])
