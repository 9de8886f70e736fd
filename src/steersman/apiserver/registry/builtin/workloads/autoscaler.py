"""HorizontalPodAutoscalers: their replicas, metrics and behavior, with the rules of ``autoscaling/v2`` for both versions."""

from __future__ import annotations

import re
from typing import NamedTuple

from steersman.apiserver.registry.builtin.pods.resources import container_name
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.references import path_segment_problems
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, subtree
from steersman.apiserver.registry.builtin.workloads.autoscaler_versions import (
    V1,
    cpu_metric,
    drop_annotations,
    fill_behavior,
    to_v1,
    to_v2,
)
from steersman.objects import Quantity
from steersman.objects.field_problems import (
    NEGATIVE,
    NOT_POSITIVE,
    FieldProblem,
    each,
    forbidden,
    invalid,
    not_negative,
    required,
    unsupported,
    until_enough,
)
from steersman.schemas.names import dns_label, path_segment

_POLICIES = ("Percent", "Pods")
_SELECTIONS = ("Disabled", "Max", "Min")
_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_TARGETS = ("Utilization", "Value", "AverageValue")
_PERIOD_MAX, _WINDOW_MAX = 1800, 3600
_CPU = 80


class _Tolerated(NamedTuple):
    """Problems that an update may keep, because the stored object has them."""

    target_version: bool = False
    object_versions: bool = False


class AutoscalerStrategy(BuiltinStrategy):
    """How HorizontalPodAutoscalers behave."""

    declared_fields = re.compile(r"spec\.(minReplicas|maxReplicas)")

    counts_generations = True

    def counted_form(self, obj: Tree) -> Tree:
        """Its form in v2: v1 has some fields as annotations."""
        return to_v2(obj)

    def default(self, obj: Tree) -> None:
        """Normalize the object to the form of its type. Keep empty policies: they are invalid, absent ones are not."""
        behavior = subtree(obj, "spec", "behavior")
        empty = [name for name in ("scaleUp", "scaleDown") if inner(behavior, name).get("policies") == []]
        super().default(obj)
        for name in empty:
            obj["spec"]["behavior"][name]["policies"] = []

    def fill(self, obj: Tree) -> None:
        spec: Tree = obj["spec"]
        spec.setdefault("minReplicas", 1)
        if obj.get("apiVersion") == V1:
            # v1 has its own defaults, and annotations for the fields of v2.
            self._become(obj, to_v2(obj))
            return
        drop_annotations(obj)
        if not spec.get("metrics"):
            spec["metrics"] = [cpu_metric(_CPU)]
        fill_behavior(spec)

    @staticmethod
    def _become(obj: Tree, made: Tree) -> None:
        """Replace the content of an object with that of another form, in the object's version."""
        content = to_v1(made) if obj.get("apiVersion") == V1 else made
        meta = obj["metadata"]
        inside = dict(content["metadata"])
        meta.clear()
        meta.update(inside)
        obj.clear()
        obj.update(content | {"metadata": meta})

    def prepare_create(self, obj: Tree) -> None:
        made = to_v2(obj)
        made["status"] = {"desiredReplicas": 0, "currentMetrics": None}
        self._become(obj, made)

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        made = to_v2(obj)
        made["status"] = to_v2(old)["status"]
        self._become(obj, made)

    def prepare_status(self, obj: Tree, old: Tree) -> None:
        made = to_v2(obj)
        made["spec"] = to_v2(old)["spec"]
        self._become(obj, made)

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        return _spec(to_v2(obj)["spec"], _Tolerated())

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Accept references without a group, if the stored object has them."""
        new, before = to_v2(obj)["spec"], to_v2(old)["spec"]
        targets = [inner(one, "scaleTargetRef") for one in (new, before)]
        same = all(targets[0].get(name) == targets[1].get(name) for name in ("apiVersion", "kind"))
        objects = [
            inner(inner(one, "object"), "describedObject") for one in items(before, "metrics") if "object" in one
        ]
        odd = any(_version(one, needs_group=False) for one in objects)
        return _spec(new, _Tolerated(same, odd))

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        del old
        status = subtree(obj, "status")
        problems: list[FieldProblem] = []
        for index, one in until_enough(items(status, "conditions"), problems):
            problems += not_negative(f"status.conditions[{index}].observedGeneration", one.get("observedGeneration"))
        for name in ("currentReplicas", "desiredReplicas"):
            problems += not_negative(f"status.{name}", status.get(name))
        return problems


def _spec(spec: Tree, tolerated: _Tolerated) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if least is not None and least < 0:
        problems.append(invalid("spec.minReplicas", least, NEGATIVE))
    if most == 0:
        problems.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif most < 0:
        problems.append(invalid("spec.maxReplicas", most, "must be greater than or equal to 1"))
    if least is not None and most < least:
        problems.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    target = inner(spec, "scaleTargetRef")
    needs_group = target.get("kind") != "ReplicationController"
    problems += path_segment_problems("spec.scaleTargetRef", target, "kind", "name")
    wrong = [] if tolerated.target_version else _version(target, needs_group=needs_group)
    problems += each("spec.scaleTargetRef.apiVersion", target.get("apiVersion", ""), wrong)
    metrics = items(spec, "metrics")
    for index, metric in until_enough(metrics, problems):
        problems += _metric(f"spec.metrics[{index}]", metric, any_version=tolerated.object_versions)
    if least == 0 and not any(metric.get("type") in {"Object", "External"} for metric in metrics):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        problems.append(forbidden("spec.metrics", detail))
    behavior = inner(spec, "behavior")
    for name in ("scaleUp", "scaleDown"):
        if behavior.get(name) is not None:
            problems += _rules(f"spec.behavior.{name}", behavior[name])
    return problems


def _version(reference: Tree, *, needs_group: bool) -> list[str]:
    version = reference.get("apiVersion", "")
    if version.count("/") > 1:
        return [f"unexpected GroupVersion string: {version}"]
    is_bare = "/" not in version or version.startswith("/")
    return ["apiVersion must specify API group"] if needs_group and is_bare else []


def _rules(path: str, rules: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    window, selection = rules.get("stabilizationWindowSeconds"), rules.get("selectPolicy")
    where = f"{path}.stabilizationWindowSeconds"
    if window is not None and window < 0:
        problems.append(invalid(where, window, "must be greater than or equal to zero"))
    if window is not None and window > _WINDOW_MAX:
        problems.append(invalid(where, window, f"must be less than or equal to {_WINDOW_MAX}"))
    if selection is not None and selection not in _SELECTIONS:
        problems.append(unsupported(f"{path}.selectPolicy", selection, _SELECTIONS))
    policies = items(rules, "policies")
    if not policies:
        problems.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in until_enough(policies, problems):
        problems += _policy(f"{path}.policies[{index}]", policy)
    tolerance = rules.get("tolerance")
    if tolerance is not None and Quantity(tolerance) < 0:
        problems.append(invalid(f"{path}.tolerance", Quantity(tolerance).printed(), NEGATIVE))
    return problems


def _policy(path: str, policy: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    type_, value, period = policy.get("type", ""), policy.get("value", 0), policy.get("periodSeconds", 0)
    if type_ not in _POLICIES:
        problems.append(unsupported(f"{path}.type", type_, _POLICIES))
    if value <= 0:
        problems.append(invalid(f"{path}.value", value, NOT_POSITIVE))
    if period <= 0:
        problems.append(invalid(f"{path}.periodSeconds", period, NOT_POSITIVE))
    if period > _PERIOD_MAX:
        problems.append(invalid(f"{path}.periodSeconds", period, f"must be less than or equal to {_PERIOD_MAX}"))
    return problems


#: The order in which sources are checked, and the type that each belongs to.
_FIELDS = {
    "object": "Object",
    "external": "External",
    "pods": "Pods",
    "resource": "Resource",
    "containerResource": "ContainerResource",
}


def _metric(path: str, metric: Tree, *, any_version: bool) -> list[FieldProblem]:
    type_: str = metric.get("type", "")
    problems = [] if type_ else [required(f"{path}.type", "must specify a metric source type")]
    if type_ not in _TYPES:
        problems.append(unsupported(f"{path}.type", type_, _TYPES))
    given = [name for name in _FIELDS if metric.get(name) is not None]
    if given:
        problems += _source(f"{path}.{given[0]}", given[0], metric[given[0]], any_version=any_version)
    expected = next((name for name, of in _FIELDS.items() if of == type_), "")
    if not expected:
        problems.append(unsupported(f"{path}.type", type_, _TYPES))
    elif expected not in given:
        problems.append(required(f"{path}.{expected}", "must populate information for the given metric source"))
    if len(given) != 1:
        detail = "must populate the given metric source only"
        problems += [forbidden(f"{path}.{name}", detail) for name in given if name != expected]
    return problems


def _source(path: str, name: str, source: Tree, *, any_version: bool) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    target = inner(source, "target")
    if name == "object":
        reference, where = inner(source, "describedObject"), f"{path}.describedObject"
        problems += path_segment_problems(where, reference, "kind", "name")
        wrong = [] if any_version else _version(reference, needs_group=False)
        problems += each(f"{where}.apiVersion", reference.get("apiVersion", ""), wrong)
    if name in {"object", "external", "pods"}:
        problems += _identifier(f"{path}.metric", inner(source, "metric"))
    else:
        problems += _resource(path, source, contained=name == "containerResource")
    return problems + _target(f"{path}.target", target) + _amounts(f"{path}.target", name, target)


def _identifier(path: str, metric: Tree) -> list[FieldProblem]:
    name = metric.get("name", "")
    if not name:
        return [required(f"{path}.name", "must specify a metric name")]
    return each(f"{path}.name", name, path_segment(name))


def _resource(path: str, source: Tree, *, contained: bool) -> list[FieldProblem]:
    name = source.get("name", "")
    problems = [] if name else [required(f"{path}.name", "must specify a resource name")]
    if not contained:
        return problems
    problems += container_name(f"{path}.name", name) if name else []
    container = source.get("container", "")
    if not container:
        return [*problems, required(f"{path}.container", "must specify a container")]
    return problems + each(f"{path}.container", container, dns_label(container))


def _target(path: str, target: Tree) -> list[FieldProblem]:
    type_ = target.get("type", "")
    problems = [] if type_ else [required(f"{path}.type", "must specify a metric target type")]
    if type_ not in _TARGETS:
        problems.append(invalid(f"{path}.type", type_, "must be either Utilization, Value, or AverageValue"))
    for name in ("value", "averageValue"):
        amount = target.get(name)
        if amount is not None and Quantity(amount) <= 0:
            problems.append(invalid(f"{path}.{name}", Quantity(amount).printed(), "must be positive"))
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        problems.append(invalid(f"{path}.averageUtilization", share, "must be greater than 0"))
    return problems


def _amounts(path: str, name: str, target: Tree) -> list[FieldProblem]:
    """Check which amounts a target has."""
    value, average, share = (target.get(one) for one in ("value", "averageValue", "averageUtilization"))
    if name == "pods":
        detail = "must specify a positive target averageValue"
        return [] if average is not None else [required(f"{path}.averageValue", detail)]
    if name in {"resource", "containerResource"}:
        if share is None and average is None:
            detail = "must set either a target raw value or a target utilization"
            return [required(f"{path}.averageUtilization", detail)]
        detail = "may not set both a target raw value and a target utilization"
        return [] if share is None or average is None else [forbidden(f"{path}.averageValue", detail)]
    if value is None and average is None:
        detail = (
            "a target value or averageValue" if name == "object" else "a target value for metric or a per-pod target"
        )
        return [required(f"{path}.averageValue", f"must set either {detail}")]
    if name == "external" and value is not None and average is not None:
        detail = "may not set both a target value for metric and a per-pod target"
        return [forbidden(f"{path}.value", detail)]
    return []
