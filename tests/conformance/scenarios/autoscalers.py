"""HorizontalPodAutoscalers in both versions: defaults, refusals, changes and conversion."""

from __future__ import annotations

import json
from typing import Any

from conformance.bodies import Tree, merged, named
from conformance.scenario import delete, frames, get, patch, post, put, scenario, watch
from conformance.trials import Changes, Trials, change_scenarios, status_scenarios, trial_scenarios

V1 = "/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers"
V2 = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
ALPHA = "autoscaling.alpha.kubernetes.io"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
OBJECT = {"apiVersion": "v1", "kind": "Service", "name": "s"}
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


def v1(**spec: Any) -> Tree:
    given = {"scaleTargetRef": TARGET, "maxReplicas": 3}
    return named("autoscaling/v1", "HorizontalPodAutoscaler", "a", spec=merged(given, spec))


def v2(**spec: Any) -> Tree:
    given = {"scaleTargetRef": TARGET, "maxReplicas": 3}
    return named("autoscaling/v2", "HorizontalPodAutoscaler", "a", spec=merged(given, spec))


def metric(type_: str, **fields: Any) -> Tree:
    field = type_[:1].lower() + type_[1:]
    return {"type": type_, field: fields}


def target(type_: str = "Utilization", **fields: Any) -> Tree:
    return {"type": type_, **fields}


RESOURCE = metric("Resource", name="memory", target=target(averageUtilization=50))
CONTAINER = metric("ContainerResource", name="cpu", container="c", target=target("AverageValue", averageValue="100m"))
PODS = metric("Pods", metric={"name": "m"}, target=target("AverageValue", averageValue="5"))
EXTERNAL = metric(
    "External", metric={"name": "m", "selector": {"matchLabels": {"a": "b"}}}, target=target("Value", value="7")
)
OBJECTS = metric("Object", metric={"name": "m"}, describedObject=OBJECT, target=target("Value", value="9"))
ALL = [RESOURCE, CONTAINER, PODS, EXTERNAL, OBJECTS]


def annotated(body: Tree, **annotations: Any) -> Tree:
    texts = {
        f"{ALPHA}/{name.replace('_', '-')}": value if isinstance(value, str) else json.dumps(value)
        for name, value in annotations.items()
    }
    return merged(body, {"metadata": {"annotations": texts}})


TRIALS: Trials = {
    "autoscaler-defaults": (
        V2,
        [
            v2(),
            v2(minReplicas=2, metrics=[]),
            v2(behavior={}),
            v2(behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 5}]}}),
            v2(behavior={"scaleDown": {"stabilizationWindowSeconds": 60, "selectPolicy": "Min", "tolerance": "0.05"}}),
            merged(v2(), {"status": {"desiredReplicas": 5}}),
        ],
    ),
    "old-autoscaler-defaults": (
        V1,
        [
            v1(),
            v1(targetCPUUtilizationPercentage=50),
            v1(minReplicas=2),
            merged(v1(), {"status": {"currentReplicas": 5}}),
        ],
    ),
    "autoscaler-replicas": (
        V2,
        [
            v2(maxReplicas=None),
            v2(maxReplicas=0),
            v2(maxReplicas=-1),
            v2(minReplicas=0),
            v2(minReplicas=4),
            v2(minReplicas=-1, maxReplicas=-2),
            v2(minReplicas=0, metrics=[OBJECTS]),
        ],
    ),
    "old-autoscaler-fields": (
        V1,
        [
            v1(maxReplicas=0, minReplicas=0),
            v1(targetCPUUtilizationPercentage=0),
            v1(scaleTargetRef={"kind": "", "name": "a/b", "apiVersion": None}),
            v1(targetCPUUtilizationPercentage=-5, maxReplicas=-1),
        ],
    ),
    "autoscaler-targets": (
        V2,
        [
            v2(scaleTargetRef=given)
            for given in (
                {"kind": "", "name": ""},
                {"kind": "a/b", "name": "a%b"},
                {"apiVersion": None},
                {"apiVersion": "v1"},
                {"apiVersion": "a/b/c"},
                {"apiVersion": "/v1"},
                {"kind": "ReplicationController", "apiVersion": "v1"},
            )
        ],
    ),
    "autoscaler-metrics": (V2, [v2(metrics=[one]) for one in ALL] + [v2(metrics=ALL)]),
    "autoscaler-metric-types": (
        V2,
        [
            v2(metrics=[one])
            for one in (
                {},
                {"type": "Odd"},
                {"type": "Resource"},
                {"type": "Pods", "resource": RESOURCE["resource"]},
                {"type": "Object", "pods": PODS["pods"]},
                RESOURCE | {"pods": PODS["pods"]},
            )
        ],
    ),
    "autoscaler-metric-targets": (
        V2,
        [
            v2(metrics=[metric("Resource", name="cpu", target=given)])
            for given in (
                {},
                {"type": "Odd"},
                target(),
                target(averageUtilization=0),
                target(averageUtilization=50, averageValue="1"),
                target("AverageValue", averageValue="-1"),
                target("Value", value="0"),
            )
        ]
        + [v2(metrics=[metric("Resource", name="", target=target(averageUtilization=5))])],
    ),
    "autoscaler-other-metrics": (
        V2,
        [
            v2(metrics=[one])
            for one in (
                metric("Pods", metric={"name": ""}, target=target("Value", value="5")),
                metric("Pods", metric={"name": "a/b"}, target={}),
                metric("External", metric={"name": "m"}, target=target("Value")),
                metric("External", metric={"name": "m"}, target=target("Value", value="5", averageValue="5")),
                metric("Object", metric={"name": "m"}, describedObject={}, target=target("Value")),
                metric(
                    "Object",
                    metric={"name": ".."},
                    describedObject={"kind": "a/b", "name": "n", "apiVersion": "a/b/c"},
                    target=target("Value", value="5"),
                ),
                metric("ContainerResource", name="", container="", target=target(averageUtilization=5)),
                metric("ContainerResource", name="odd", container="A.b", target=target()),
            )
        ],
    ),
    "autoscaler-behaviors": (
        V2,
        [
            v2(behavior={"scaleUp": given})
            for given in (
                {"stabilizationWindowSeconds": -1},
                {"stabilizationWindowSeconds": 3601, "selectPolicy": "Odd"},
                {"policies": [{}]},
                {"policies": [{"type": "Odd", "value": -1, "periodSeconds": 1801}]},
                {"policies": []},
                {"tolerance": "-0.1"},
                {"selectPolicy": "Disabled"},
            )
        ],
    ),
    "old-autoscaler-annotations": (
        V1,
        [
            annotated(v1(), metrics=[{"type": "Pods", "pods": {"metricName": "m", "targetAverageValue": "5"}}]),
            annotated(
                v1(targetCPUUtilizationPercentage=50),
                metrics=[{"type": "Resource", "resource": {"name": "memory", "targetAverageUtilization": 5}}],
            ),
            annotated(v1(), metrics="no json"),
            annotated(v1(), metrics=[]),
            annotated(
                v1(),
                metrics=[
                    {
                        "type": "Object",
                        "object": {"target": OBJECT, "metricName": "m", "targetValue": "0", "averageValue": "5"},
                    }
                ],
            ),
            annotated(v1(), behavior={"ScaleUp": {"Policies": [{"Type": "Pods", "Value": 1, "PeriodSeconds": 5}]}}),
            annotated(v1(), behavior={"ScaleUp": {"StabilizationWindowSeconds": 5}}),
            annotated(v1(), behavior={}),
            annotated(
                v1(), current_metrics=[{"type": "Pods", "pods": {"metricName": "m", "currentAverageValue": "5"}}]
            ),
            annotated(v1(), conditions=[{"type": "AbleToScale", "status": "True"}]),
            annotated(v1(), scale_up_tolerance="0.1"),
            annotated(v2(), metrics=[]),
        ],
    ),
}

CHANGES: Changes = {
    "an-autoscaler": (
        V2,
        v2(metrics=[RESOURCE]),
        [
            {"spec": {"maxReplicas": 5}},
            {"spec": {"metrics": [PODS, OBJECTS]}},
            {"spec": {"metrics": None}},
            {"spec": {"behavior": {"scaleDown": {"selectPolicy": "Disabled"}}}},
            {"spec": {"behavior": {"scaleDown": {"policies": []}}}},
            {"spec": {"scaleTargetRef": {"apiVersion": "v1"}}},
            {"metadata": {"labels": {"a": "b c"}}},
            {"status": {"desiredReplicas": 5}},
        ],
    ),
    "an-old-autoscaler": (
        V1,
        v1(),
        [
            {"spec": {"targetCPUUtilizationPercentage": 30}},
            {"spec": {"targetCPUUtilizationPercentage": None}},
            {"spec": {"maxReplicas": 0}},
            {
                "metadata": {
                    "annotations": {
                        f"{ALPHA}/metrics": json.dumps(
                            [{"type": "Pods", "pods": {"metricName": "m", "targetAverageValue": "5"}}]
                        )
                    }
                }
            },
            {"metadata": {"annotations": {f"{ALPHA}/conditions": json.dumps([{"type": "X", "status": "True"}])}}},
            {"metadata": {"annotations": None}},
            {"spec": {"minReplicas": None}},
        ],
    ),
}

CURRENT = {
    "observedGeneration": 1,
    "currentReplicas": 1,
    "desiredReplicas": 2,
    "currentMetrics": [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 5, "averageValue": "1"}}},
        {"type": "Pods", "pods": {"metric": {"name": "m"}, "current": {"averageValue": "5"}}},
    ],
    "conditions": [
        {"type": "AbleToScale", "status": "True", "reason": "R", "lastTransitionTime": "2024-01-02T03:04:05Z"}
    ],
}
STATUSES: Changes = {
    "an-autoscaler": (
        V2,
        v2(),
        [{"status": CURRENT, "spec": {"maxReplicas": 9}}, {"status": {"desiredReplicas": -1, "currentReplicas": -1}}],
    ),
    "an-old-autoscaler": (
        V1,
        v1(),
        [
            {"status": {"currentReplicas": 1, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 50}},
            {"status": {"desiredReplicas": -1}},
            {"metadata": {"annotations": {f"{ALPHA}/conditions": json.dumps([{"type": "X", "status": "True"}])}}},
        ],
    ),
}

BEHAVIOR = {
    "scaleUp": {
        "selectPolicy": "Min",
        "policies": [{"type": "Pods", "value": 1, "periodSeconds": 5}],
        "tolerance": "0.1",
    }
}

SCENARIOS = [
    *trial_scenarios(TRIALS),
    *change_scenarios(CHANGES),
    *status_scenarios(STATUSES),
    scenario("new-read-as-old", "Kinds, Table", post(V2, v2(metrics=ALL, behavior=BEHAVIOR)), get(f"{V1}/a"), get(V1), get(V1, accept=TABLE), get(V2, accept=TABLE)),
    scenario("old-read-as-new", "Kinds", post(V1, v1(targetCPUUtilizationPercentage=40)), get(f"{V2}/a"), get(V2)),
    scenario("status-in-both-versions", "Kinds, Subresources", post(V2, v2()), patch(f"{V2}/a/status", {"status": CURRENT}), get(f"{V1}/a"), put(f"{V1}/a/status", "${x..}"), get(f"{V1}/a", as_="x"), put(f"{V1}/a", "${x..}"), get(f"{V2}/a")),
    scenario("old-keeps-new-fields", "Kinds, Update", post(V2, v2(metrics=ALL, behavior=BEHAVIOR)), patch(f"{V1}/a", {"spec": {"maxReplicas": 7}}), get(f"{V2}/a"), patch(f"{V1}/a", {"metadata": {"annotations": {f"{ALPHA}/behavior": None}}}), get(f"{V2}/a")),
    *[
        scenario(f"annotation-{name}", "Kinds, Status errors", post(V1, merged(v1(), {"metadata": {"annotations": {f"{ALPHA}/{annotation}": text}}})), get(f"{V1}/a"), get(f"{V2}/a"))
        for name, annotation, text in [
            ("behavior-in-lower-case", "behavior", '{"scaleup":{"stabilizationwindowseconds":5,"Policies":[{"type":"Pods","VALUE":1,"periodSeconds":5}]},"other":1}'),
            ("behavior-invalid", "behavior", '{"scaleUp":{"stabilizationWindowSeconds":-5}}'),
            ("metrics-in-other-case", "metrics", '[{"Type":"Resource","RESOURCE":{"Name":"memory","targetaveragevalue":"5"}}]'),
            ("metrics-null", "metrics", "[null]"),
            ("current-metrics-null", "current-metrics", "[null,{}]"),
        ]
    ],
    scenario("watched-in-both-versions", "Kinds, Watch stream", watch("old", V1), watch("new", V2), post(V1, v1()), patch(f"{V2}/a", {"spec": {"metrics": [PODS]}}), delete(f"{V2}/a"), frames("old", 3), frames("new", 3)),
    scenario("applied-in-both-versions", "Kinds, Apply", patch(f"{V2}/a", v2(metrics=[PODS]), "apply", fieldManager="x"), patch(f"{V1}/a", v1(maxReplicas=5), "apply", fieldManager="y", force="true"), get(f"{V2}/a"), get(f"{V1}/a")),
]  # fmt: skip
