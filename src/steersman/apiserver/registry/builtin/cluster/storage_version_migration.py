"""StorageVersionMigrations: the resource that a migration rewrites, and how far it is."""

from __future__ import annotations

import msgspec

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.conditions import conditions, is_true, printed_conditions
from steersman.apiserver.registry.builtin.types.trees import Tree, items, subtree
from steersman.apiserver.registry.strategy import CHANGED, WHOLE
from steersman.objects.field_problems import IMMUTABLE, FieldProblem, Printed, invalid, required
from steersman.schemas.names import dns_1035_label, dns_subdomain

_RESOURCE, _VERSION, _CONDITIONS = "spec.resource", "status.resourceVersion", "status.conditions"
_DIGITS = frozenset("0123456789")


class StorageVersionMigrationStrategy(BuiltinStrategy):
    """How StorageVersionMigrations behave."""

    status_keeps_metadata = True

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        wanted = subtree(obj, "spec", "resource")
        name, group = wanted.get("resource", ""), wanted.get("group", "")
        problems: list[FieldProblem] = []
        if not name:
            problems.append(required(f"{_RESOURCE}.resource", "resource is required to be set"))
        elif wrong := dns_1035_label(name):
            problems.append(invalid(f"{_RESOURCE}.resource", name, ",".join(wrong)))
        if group and (wrong := dns_subdomain(group)):
            problems.append(invalid(f"{_RESOURCE}.group", group, ",".join(wrong)))
        return problems

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that the spec does not change."""
        problems = [WHOLE, *self.validate_create(obj), CHANGED]
        if obj["spec"] != old["spec"]:
            wanted = subtree(obj, "spec", "resource")
            shown = {"Resource": {name: wanted.get(name, "") for name in ("group", "resource")}}
            problems.append(invalid("spec", Printed(msgspec.json.encode(shown).decode()), IMMUTABLE))
        return problems

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check the progress of a migration, which only goes forward."""
        new, before = subtree(obj, "status"), subtree(old, "status")
        version, known = new.get("resourceVersion", ""), before.get("resourceVersion", "")
        problems: list[FieldProblem] = []
        if version and (version[0] == "0" or not _DIGITS.issuperset(version)):
            problems.append(invalid(_VERSION, version, f"resource version is not well formed: {version}"))
        given, earlier = items(new, "conditions"), items(before, "conditions")
        problems += conditions(_CONDITIONS, given)
        if known and version != known:
            problems.append(invalid(_VERSION, version, IMMUTABLE))
        return problems + [invalid(_CONDITIONS, printed_conditions(given), said) for said in _course(given, earlier)]


def _course(given: list[Tree], earlier: list[Tree]) -> list[str]:
    """What is wrong with the end of a migration."""
    problems: list[str] = []
    if is_true(given, "Succeeded") and is_true(given, "Failed"):
        problems.append("Both success and failed conditions cannot be true at the same time")
    for type_, words in (("Succeeded", "Success"), ("Failed", "Failed")):
        if is_true(earlier, type_) and not is_true(given, type_):
            problems.append(f"{words} condition cannot be set to false once it is true")
    return problems
