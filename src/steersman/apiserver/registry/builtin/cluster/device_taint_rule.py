"""DeviceTaintRules: taints for the devices that a selector names."""

from __future__ import annotations

from steersman.aio import utc_now
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.conditions import conditions
from steersman.apiserver.registry.builtin.types.labels import label_name
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, subtree
from steersman.apiserver.registry.builtin.types.volume_sources import driver_name
from steersman.objects import format_time
from steersman.objects.field_problems import FieldProblem, each, required, too_long, too_many, unsupported
from steersman.schemas.names import dns_label, dns_subdomain, label_value

_EFFECTS = ("NoExecute", "NoSchedule", "None")
_POOL_MAX, _CONDITIONS_MAX = 253, 8
_SELECTOR, _TAINT, _CONDITIONS = "spec.deviceSelector", "spec.taint", "status.conditions"


class DeviceTaintRuleStrategy(BuiltinStrategy):
    """How DeviceTaintRules behave."""

    unconditional_update = False
    counts_generations = True
    status_keeps_metadata = True

    def fill(self, obj: Tree) -> None:
        taint = subtree(obj, "spec").get("taint")
        if taint is not None:
            taint["timeAdded"] = taint.get("timeAdded") or format_time(utc_now())

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        """Restore the status, and set the time of a changed effect."""
        super().prepare_update(obj, old)
        new, before = subtree(obj, "spec", "taint"), subtree(old, "spec", "taint")
        if new.get("effect") != before.get("effect") and new.get("timeAdded") == before.get("timeAdded"):
            new["timeAdded"] = format_time(utc_now())

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        return _spec(obj, {})

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        return _spec(obj, old)

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        del old
        given = items(subtree(obj, "status"), "conditions")
        problems = conditions(_CONDITIONS, given)
        return problems + ([too_many(_CONDITIONS, len(given), _CONDITIONS_MAX)] if len(given) > _CONDITIONS_MAX else [])


def _spec(obj: Tree, old: Tree) -> list[FieldProblem]:
    spec = subtree(obj, "spec")
    selector, taint = inner(spec, "deviceSelector"), inner(spec, "taint")
    problems: list[FieldProblem] = []
    if "driver" in selector:
        problems += driver_name(f"{_SELECTOR}.driver", selector["driver"])
    if "pool" in selector:
        problems += _pool(f"{_SELECTOR}.pool", selector["pool"])
    if "device" in selector:
        problems += each(f"{_SELECTOR}.device", selector["device"], dns_label(selector["device"]))
    problems += label_name(f"{_TAINT}.key", taint.get("key", ""))
    value = taint.get("value", "")
    problems += each(f"{_TAINT}.value", value, label_value(value)) if value else []
    effect = taint.get("effect", "")
    if not old or effect != subtree(old, "spec", "taint").get("effect", ""):
        if not effect:
            problems.append(required(f"{_TAINT}.effect"))
        elif effect not in _EFFECTS:
            problems.append(unsupported(f"{_TAINT}.effect", effect, _EFFECTS))
    return problems


def _pool(path: str, name: str) -> list[FieldProblem]:
    if not name:
        return [required(path)]
    problems = [too_long(path, _POOL_MAX)] if len(name.encode()) > _POOL_MAX else []
    return problems + [one for part in name.split("/") for one in each(path, part, dns_subdomain(part))]
