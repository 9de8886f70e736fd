"""HorizontalPodAutoscalers in the form of ``autoscaling/v1``, which has annotations where ``autoscaling/v2`` has fields.

Guarantees
- The server stores objects in the form of v2.
- An object that is read as v1 and written back as v1 keeps the fields that v1 does not have.
- As in kube-apiserver, the server ignores and drops an annotation with invalid JSON or wrong types.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, cast

from steersman.apiserver.go_types.reader import Unreadable, read_tree
from steersman.apiserver.go_types.shapes import referred
from steersman.apiserver.registry.builtin.types.canonical_form import canonical
from steersman.apiserver.registry.builtin.types.internal_form import internal
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata, subtree
from steersman.apiserver.registry.conversion import Conversion
from steersman.golang import escape_html

V1, V2 = "autoscaling/v1", "autoscaling/v2"
_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS, _BEHAVIOR = f"{_PREFIX}metrics", f"{_PREFIX}behavior"
_CURRENT_METRICS, _CONDITIONS = f"{_PREFIX}current-metrics", f"{_PREFIX}conditions"
#: Annotations that stand for fields; v2 objects never have them.
FIELD_ANNOTATIONS = frozenset(
    {
        _METRICS,
        _BEHAVIOR,
        _CURRENT_METRICS,
        _CONDITIONS,
        f"{_PREFIX}scale-down-tolerance",
        f"{_PREFIX}scale-up-tolerance",
    }
)
_CPU = 80
_BEHAVIOR_TYPE = "autoscaling.HorizontalPodAutoscalerBehavior"
_MAX = {"selectPolicy": "Max"}
_PERCENT = {"type": "Percent", "value": 100, "periodSeconds": 15}


def fill_behavior(spec: Tree) -> None:
    """Default the rules of a behavior."""
    behavior: Tree | None = spec.get("behavior")
    if behavior is None:
        return
    pods = {"type": "Pods", "value": 4, "periodSeconds": 15}
    up = {"stabilizationWindowSeconds": 0, **_MAX, "policies": [pods, dict(_PERCENT)]}
    down = {**_MAX, "policies": [dict(_PERCENT)]}
    for name, rules in (("scaleUp", up), ("scaleDown", down)):
        behavior[name] = rules | {key: value for key, value in inner(behavior, name).items() if value is not None}


def cpu_metric(utilization: int) -> Tree:
    """The metric that stands for v1's target."""
    target = {"type": "Utilization", "averageUtilization": utilization}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


#: The type of the field for which each annotation stands.
_TYPES = {
    _METRICS: "MetricSpec",
    _BEHAVIOR: "HorizontalPodAutoscalerBehavior",
    _CURRENT_METRICS: "MetricStatus",
    _CONDITIONS: "HorizontalPodAutoscalerCondition",
}


def drop_annotations(obj: Tree) -> dict[str, str]:
    """Drop the annotations that stand for fields. Returns them."""
    meta = metadata(obj)
    given: dict[str, str] = inner(meta, "annotations")
    dropped = {name: given[name] for name in FIELD_ANNOTATIONS if name in given}
    if dropped:
        kept = {name: text for name, text in given.items() if name not in dropped}
        meta.pop("annotations")
        if kept:
            meta["annotations"] = kept
    return dropped


def to_v2(obj: Tree) -> Tree:
    """A copy in the form of v2, without its defaults."""
    converted = {**obj, "apiVersion": V2, "metadata": dict(metadata(obj))}
    dropped = drop_annotations(converted)
    if obj.get("apiVersion") != V1:
        return converted
    spec, status = dict(subtree(obj, "spec")), dict(subtree(obj, "status"))
    target, current = (
        spec.pop("targetCPUUtilizationPercentage", None),
        status.pop("currentCPUUtilizationPercentage", None),
    )
    metrics = [] if target is None else [cpu_metric(target)]
    others = _decoded(dropped, _METRICS, lambda trees: [_metric(tree, _SOURCES, "target") for tree in trees])
    spec["metrics"] = (others or []) + metrics or [cpu_metric(_CPU)]
    behavior = _decoded(dropped, _BEHAVIOR, _behavior)
    if behavior:
        spec["behavior"] = behavior
    current_metrics = _decoded(
        dropped, _CURRENT_METRICS, lambda trees: [_metric(tree, _STATUSES, "current") for tree in trees]
    )
    if current_metrics is not None:
        status["currentMetrics"] = current_metrics
    elif current is not None:
        resource = {"name": "cpu", "current": {"averageUtilization": current}}
        status["currentMetrics"] = [{"type": "Resource", "resource": resource}]
    conditions = _decoded(dropped, _CONDITIONS, list)
    if conditions:
        status["conditions"] = conditions
    return canonical({**converted, "spec": spec, "status": status}, "autoscaling.v2.HorizontalPodAutoscaler")


def to_v1(obj: Tree) -> Tree:
    """A copy in the form of v1."""
    if obj.get("apiVersion") == V1:
        return obj
    converted: Tree = {**obj, "apiVersion": V1, "metadata": dict(metadata(obj))}
    drop_annotations(converted)
    spec, status = dict(subtree(obj, "spec")), dict(subtree(obj, "status"))
    metrics, current = items(spec, "metrics"), items(status, "currentMetrics")
    said: dict[str, Any] = {}
    targets = [_utilization(metric, "target") for metric in metrics]
    known = [target for target in targets if target is not None]
    if known:
        spec["targetCPUUtilizationPercentage"] = known[0]
    said[_METRICS] = [
        _as_v1(metric, _SOURCES) for metric, target in zip(metrics, targets, strict=True) if target is None
    ]
    said[_CURRENT_METRICS] = [_as_v1(metric, _STATUSES) for metric in current]
    used = [percent for metric in current if (percent := _utilization(metric, "current")) is not None]
    if used:
        status["currentCPUUtilizationPercentage"] = used[-1]
    said[_BEHAVIOR] = internal(spec["behavior"], _BEHAVIOR_TYPE) if spec.get("behavior") is not None else None
    said[_CONDITIONS] = items(status, "conditions")
    written = {name: _encoded(value) for name, value in said.items() if value}
    if written:
        meta: Tree = converted["metadata"]
        meta["annotations"] = dict(sorted({**inner(meta, "annotations"), **written}.items()))
    return canonical({**converted, "spec": spec, "status": status}, "autoscaling.v1.HorizontalPodAutoscaler")


def _encoded(value: Any) -> str:
    return escape_html(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def _decoded(annotations: dict[str, str], name: str, convert: Callable[[Any], Any]) -> Any:
    """The value of an annotation; None if it is absent, or has invalid JSON or wrong types."""
    try:
        value = json.loads(annotations.get(name, "null"))
        if value is None:
            return None
        converted, shape = convert(value), referred(f"io.k8s.api.autoscaling.v2.{_TYPES[name]}")
        many = cast("list[Any]", converted if isinstance(converted, list) else [converted])
        read = [read_tree(tree, shape).tree for tree in many]
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError, Unreadable):
        return None
    return read if isinstance(converted, list) else read[0]


def _utilization(metric: Tree, part: str) -> int | None:
    """The CPU utilization, for which v1 has a field."""
    resource = inner(metric, "resource")
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    return inner(resource, part).get("averageUtilization")


def _named(tree: Tree | None, names: Iterable[str]) -> Tree:
    """The fields with these names, whose case Go ignores; null is an empty value."""
    folded = {name.lower(): name for name in names}
    return {folded[name.lower()]: value for name, value in (tree or {}).items() if name.lower() in folded}


def _behavior(tree: Tree) -> Tree:
    """A behavior from an annotation, which uses internal field names."""
    return {name: _rules(rules) for name, rules in _named(tree, ("scaleUp", "scaleDown")).items() if rules is not None}


def _rules(tree: Tree) -> Tree:
    rules = {name: value for name, value in _named(tree, _RULES).items() if value is not None}
    if "policies" in rules:
        rules["policies"] = [_named(policy, _POLICY) for policy in rules["policies"]]
    return rules


_RULES = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_POLICY = ("type", "value", "periodSeconds")
#: Pairs of field names in v1 and paths in v2, by source, in the order of v1.
_Names = tuple[tuple[str, str], ...]
_SOURCES: dict[str, _Names] = {
    "object": (
        ("target", "describedObject"), ("metricName", "metric.name"), ("targetValue", "target.value!"),
        ("selector", "metric.selector"), ("averageValue", "target.averageValue"),
    ),
    "pods": (
        ("metricName", "metric.name"), ("targetAverageValue", "target.averageValue!"), ("selector", "metric.selector"),
    ),
    "resource": (
        ("name", "name"), ("targetAverageUtilization", "target.averageUtilization"),
        ("targetAverageValue", "target.averageValue"),
    ),
    "containerResource": (
        ("name", "name"), ("targetAverageUtilization", "target.averageUtilization"),
        ("targetAverageValue", "target.averageValue"), ("container", "container"),
    ),
    "external": (
        ("metricName", "metric.name"), ("metricSelector", "metric.selector"), ("targetValue", "target.value"),
        ("targetAverageValue", "target.averageValue"),
    ),
}  # fmt: skip
_STATUSES: dict[str, _Names] = {
    "object": (
        ("target", "describedObject"), ("metricName", "metric.name"), ("currentValue", "current.value!"),
        ("selector", "metric.selector"), ("averageValue", "current.averageValue"),
    ),
    "pods": (
        ("metricName", "metric.name"), ("currentAverageValue", "current.averageValue!"), ("selector", "metric.selector"),
    ),
    "resource": (
        ("name", "name"), ("currentAverageUtilization", "current.averageUtilization"),
        ("currentAverageValue", "current.averageValue!"),
    ),
    "containerResource": (
        ("name", "name"), ("currentAverageUtilization", "current.averageUtilization"),
        ("currentAverageValue", "current.averageValue!"), ("container", "container"),
    ),
    "external": (
        ("metricName", "metric.name"), ("metricSelector", "metric.selector"), ("currentValue", "current.value!"),
        ("currentAverageValue", "current.averageValue"),
    ),
}  # fmt: skip


def _as_v1(metric: Tree, sources: dict[str, _Names]) -> Tree:
    """A metric with the names of v1. An exclamation mark in a path marks a quantity that v1 always writes."""
    renamed: Tree = {"type": metric.get("type", "")}
    for source, names in sources.items():
        if metric.get(source) is None:
            continue
        part: Tree = {}
        for old, new in names:
            value: Any = metric[source]
            for step in new.removesuffix("!").split("."):
                value = cast("Tree", value).get(step) if value else None
            if value is not None or new.endswith("!"):
                part[old] = "0" if value is None else value
        renamed[source] = part
    return renamed


def _metric(metric: Tree | None, sources: dict[str, _Names], part: str) -> Tree:
    """A metric with the names of v2."""
    metric = _named(metric, ("type", *sources))
    renamed: Tree = {"type": metric.get("type") or ""}
    for source, names in sources.items():
        if metric.get(source) is None:
            continue
        given = _named(metric[source], [old for old, _ in names])
        converted: Tree = {part: {}}
        for old, new in names:
            value = given.get(old)
            if value is None and new.endswith("!"):
                value = "0"
            if value is not None:
                *above, last = new.removesuffix("!").split(".")
                holder = converted
                for step in above:
                    holder = holder.setdefault(step, {})
                holder[last] = value
        if part == "target":
            _set_type(source, converted["target"])
        renamed[source] = converted
    return renamed


def _set_type(source: str, target: Tree) -> None:
    """Set the type of a target, which v1 implies."""
    if source in {"resource", "containerResource"}:
        target["type"] = "AverageValue" if target.get("averageUtilization") is None else "Utilization"
    elif source == "pods":
        target["type"] = "AverageValue"
    elif source == "external":
        target["type"] = "AverageValue" if target.get("value") is None else "Value"
    elif target.get("averageValue") is None:
        target["type"] = "Value"
    else:
        target["type"] = "AverageValue"
        if target.get("value") == "0":
            del target["value"]


def _in_place(convert: Callable[[Tree], Tree]) -> Callable[[Tree], None]:
    def converted(obj: Tree) -> None:
        result = dict(convert(obj))
        obj.clear()
        obj.update(result)

    return converted


def _stored(obj: Tree) -> Tree:
    stored = to_v2(obj)
    fill_behavior(stored["spec"])
    return stored


#: Between autoscaling/v1 and the stored form.
AUTOSCALER_CONVERSION = Conversion(to_stored=_in_place(_stored), from_stored=_in_place(to_v1))
