"""LimitRanges: which are stored, and what they fill in and refuse."""

from __future__ import annotations

from typing import Any

from conformance.bodies import CORE, POD, PVC, claim, container, merged, named, pod
from conformance.scenario import Step, Until, delete, get, patch, post, put, scenario

LIMITS = f"{CORE}/limitranges"
ROWS = "Quotas, Status errors"


def limit_range(*limits: Any, name: str = "a", **metadata: Any) -> dict[str, Any]:
    """A LimitRange."""
    return merged(named("v1", "LimitRange", name, spec={"limits": list(limits)}), {"metadata": metadata})


def item(type_: str = "Container", **fields: Any) -> dict[str, Any]:
    """One item of a LimitRange."""
    return {"type": type_, **fields}


def limited(*limits: Any) -> Step:
    """Create a LimitRange."""
    return post(LIMITS, limit_range(*limits))


def asking(name: str = "main", *, requests: Any = None, limits: Any = None, **fields: Any) -> dict[str, Any]:
    """A container with resources."""
    given = {"requests": requests, "limits": limits}
    return container(**({"name": name, "resources": {key: value for key, value in given.items() if value}} | fields))


def pods(*containers: Any, **spec: Any) -> dict[str, Any]:
    """A Pod of some containers."""
    return pod(containers=list(containers) or [container()], **spec)


CPU = {"cpu": "500m"}
BOTH = {"cpu": "500m", "memory": "1Gi"}
AMOUNTS = [
    item(max=CPU),
    item(min=CPU),
    item(default=CPU),
    item(defaultRequest=CPU),
    item(max={"cpu": "1"}, min={"cpu": "100m"}),
    item(max={"cpu": "1"}, default={"cpu": "500m"}, min={"cpu": "100m"}),
    item(max=BOTH, defaultRequest={"memory": "1Mi"}),
    item("Pod", max=CPU, min={"memory": "1Mi"}),
    item("PersistentVolumeClaim", max={"storage": "1Gi"}),
    item("example.com/own", default={"example.com/x": "1"}),
    item(max={"cpu": "1.5"}, min={"cpu": "0.0001"}),
    item(),
]

#: LimitRanges that are created for trial, by theme.
TRIALS = {
    "filled": AMOUNTS,
    "types": [item(type_, max=CPU) for type_ in ("", "Node", "pod", "example.com/own", "a b", "a/b/c")],
    "names": [
        item(type_, max={name: "1"})
        for type_ in ("Container", "Pod", "PersistentVolumeClaim", "example.com/own")
        for name in (
            "storage",
            "example.com/gpu",
            "pods",
            "x",
            "requests.cpu",
            "hugepages-2Mi",
            "kubernetes.io/x",
            "a b",
        )
    ],
    "order": [
        item(min={"cpu": "2"}, max={"cpu": "1"}),
        item("Pod", min={"cpu": "2"}, max={"cpu": "1"}),
        item(min={"cpu": "2"}, default={"cpu": "1"}),
        item(max={"cpu": "1"}, default={"cpu": "2"}),
        item(max={"cpu": "1"}, defaultRequest={"cpu": "2"}),
        item(min={"cpu": "1"}, defaultRequest={"cpu": "500m"}),
        item(default={"cpu": "1"}, defaultRequest={"cpu": "2"}),
        item("PersistentVolumeClaim", min={"storage": "2Gi"}, max={"storage": "1Gi"}),
        item("PersistentVolumeClaim", min={"cpu": "1"}),
        item("PersistentVolumeClaim"),
        item("PersistentVolumeClaim", max={"storage": "1Gi"}, default={"storage": "2Gi"}),
        item("Pod", default=CPU),
        item("Pod", defaultRequest=CPU, default=CPU),
        item(default={"hugepages-2Mi": "4Mi"}, defaultRequest={"hugepages-2Mi": "2Mi"}),
        item(default={"example.com/gpu": "2"}, defaultRequest={"example.com/gpu": "1"}),
    ],
    "ratio": [
        item(maxLimitRequestRatio={"cpu": "2"}),
        item(maxLimitRequestRatio={"cpu": "500m"}),
        item(maxLimitRequestRatio={"cpu": "4"}, min={"cpu": "1"}, max={"cpu": "3"}),
        item(maxLimitRequestRatio={"cpu": "3"}, min={"cpu": "1"}, max={"cpu": "3"}),
        item(maxLimitRequestRatio={"cpu": "2.5"}, min={"cpu": "2"}, max={"cpu": "3"}),
        item(maxLimitRequestRatio={"cpu": "4"}, min={"cpu": "0"}, max={"cpu": "3"}),
        item(maxLimitRequestRatio={"memory": "4"}, min={"memory": "1Gi"}, max={"memory": "8Ei"}),
    ],
    "quantities": [
        item(max={"cpu": "-1"}),
        item(max={"cpu": ""}),
        item(max={"cpu": "x"}),
        item(max={"cpu": None}),
        item(max={"cpu": 2, "memory": "1e3"}),
    ],
}

#: A LimitRange's items, and Pods that are created under it for trial.
PODS = {
    "defaults": (
        [item(default=BOTH, defaultRequest={"cpu": "100m"})],
        [
            pods(),
            pods(asking(requests={"cpu": "1m"})),
            pods(asking(limits={"cpu": "2"})),
            pods(asking("a"), asking("b", requests=CPU, limits=BOTH)),
            pods(container(), initContainers=[asking("first"), asking("second", restartPolicy="Always")]),
            merged(pods(), {"metadata": {"annotations": {"own": "x", "kubernetes.io/limit-ranger": "mine"}}}),
            pods(asking(requests={"cpu": "2"})),
            pods(asking(limits={"memory": "1Mi"})),
        ],
    ),
    "min": (
        [item(min={"cpu": "100m"})],
        [
            pods(),
            pods(asking(requests={"cpu": "99m"})),
            pods(asking(requests={"cpu": "100m"})),
            pods(asking(requests={"cpu": "0.0999"}, limits={"cpu": "1"})),
            pods(asking(requests=CPU), initContainers=[asking("first", requests={"cpu": "1m"})]),
        ],
    ),
    "max": (
        [item(max={"memory": "1Gi"})],
        [
            pods(),
            pods(asking(limits={"memory": "1Gi"})),
            pods(asking(limits={"memory": "1025Mi"})),
            pods(asking(requests={"memory": "2Gi"})),
            pods(asking("a", limits={"memory": "2Gi"}), asking("b", limits={"memory": "2Gi"})),
            pods(asking("a", limits={"memory": "2Gi"}), asking("b", limits={"memory": "3Gi"})),
        ],
    ),
    "ratio": (
        [item(maxLimitRequestRatio={"cpu": "2"})],
        [
            pods(),
            pods(asking(requests={"cpu": "1"})),
            pods(asking(requests={"cpu": "0"}, limits={"cpu": "1"})),
            pods(asking(requests={"cpu": "1"}, limits={"cpu": "2"})),
            pods(asking(requests={"cpu": "1"}, limits={"cpu": "2001m"})),
            pods(asking(requests={"cpu": "300m"}, limits={"cpu": "1"})),
        ],
    ),
    "several": (
        [item(min={"cpu": "1"}, max={"memory": "1Gi"}, default={"cpu": "4"}, maxLimitRequestRatio={"cpu": "2"})],
        [
            pods(asking(requests={"cpu": "500m"}, limits={"cpu": "2", "memory": "2Gi"})),
            pods(asking(requests={"cpu": "1"}, limits={"cpu": "2", "memory": "2Gi"})),
        ],
    ),
    "whole-pods": (
        [item("Pod", min={"cpu": "200m"}, max={"memory": "1Gi"})],
        [
            pods(),
            pods(asking(requests={"cpu": "100m"}, limits={"memory": "1Gi"})),
            pods(asking("a", requests={"cpu": "100m"}), asking("b", requests={"cpu": "100m"}, limits={"memory": "1Gi"})),
            pods(asking("a", requests=CPU, limits=BOTH), asking("b", limits=BOTH)),
            pods(asking(requests=CPU, limits=BOTH), initContainers=[asking("first", limits={"memory": "2Gi"})]),
            pods(asking(requests=CPU, limits=BOTH), initContainers=[asking("side", limits={"memory": "1Mi"}, restartPolicy="Always")]),
            pods(container(), resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "2Gi"}}),
            pods(container(), resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "1Gi"}}),
        ],
    ),
    "ratio-of-pods": (
        [item("Pod", maxLimitRequestRatio={"memory": "1.5"})],
        [
            pods(),
            pods(asking(requests={"memory": "1Gi"}, limits={"memory": "2Gi"})),
            pods(asking(requests={"memory": "2Gi"}, limits={"memory": "3Gi"})),
        ],
    ),
    "nothing": ([item(), item("Pod"), item("PersistentVolumeClaim", max={"storage": "1Gi"})], [pods(), pods(asking(limits=BOTH))]),
}  # fmt: skip

CLAIMS = [claim(resources={"requests": {"storage": size}}) for size in ("1Gi", "2Gi", "3Gi", "512Mi", "1.5Gi")]


def _tried(path: str, bodies: list[Any]) -> list[Step]:
    return [post(path, body, dryRun="All") for body in bodies]


SCENARIOS = [
    *[
        scenario(
            f"stored-{name}", "Quotas, Kinds, Status errors", *_tried(LIMITS, [limit_range(each) for each in tried])
        )
        for name, tried in TRIALS.items()
    ],
    scenario(
        "stored-several",
        "Quotas, Kinds, Status errors",
        *_tried(
            LIMITS,
            [
                limit_range(),
                limit_range(item(max=CPU), item(max=CPU)),
                limit_range(item(max=CPU), item("Pod", max=CPU), item("Pod", min=CPU)),
                named("v1", "LimitRange", "a"),
                named("v1", "LimitRange", "a", spec=None),
                limit_range(item(max=CPU), name="A_b"),
            ],
        ),
    ),
    scenario(
        "life",
        "Quotas, Kinds, Update, Table",
        put(f"{LIMITS}/a", limit_range(item(max=CPU))),
        put(f"{LIMITS}/a", limit_range(item(max={"cpu": "1"}), labels={"a": "b"})),
        put(f"{LIMITS}/a", limit_range(item(min={"cpu": "2"}, max={"cpu": "1"}), labels={"a b": "c"})),
        patch(f"{LIMITS}/a", {"metadata": {"finalizers": ["odd"]}}),
        patch(f"{LIMITS}/a", {"metadata": {"labels": {"x": "y"}}}),
        get(f"{LIMITS}/a"),
        get(LIMITS, accept="application/json;as=Table;v=v1;g=meta.k8s.io"),
        delete(f"{LIMITS}/a"),
    ),
    scenario(
        "without-a-name",
        "Quotas, Metadata",
        post(
            LIMITS, {"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": []}}, focus=lambda tree: tree["kind"]
        ),
    ),
    *[scenario(f"pods-{name}", ROWS, limited(*limits), *_tried(POD, tried)) for name, (limits, tried) in PODS.items()],
    scenario(
        "pod-is-stored",
        ROWS,
        limited(item(default=BOTH)),
        post(POD, pods(container(), initContainers=[asking("first")])),
        get(f"{POD}/a"),
        put(f"{POD}/a", pods(container(), initContainers=[asking("first")])),
        patch(f"{POD}/a", {"metadata": {"labels": {"a": "b"}}}),
    ),
    scenario(
        "pod-updates",
        ROWS,
        post(POD, pods()),
        limited(item(min={"cpu": "1"}, max={"memory": "1Gi"})),
        Until(post(POD, merged(pods(asking(requests=CPU)), {"metadata": {"name": "b"}}), dryRun="All"), 403),
        patch(f"{POD}/a", {"metadata": {"labels": {"a": "b"}}}),
        patch(f"{POD}/a/status", {"status": {"phase": "Running"}}),
        delete(f"{POD}/a", gracePeriodSeconds=0),
    ),
    scenario(
        "pod-applied",
        "Quotas, Apply",
        limited(item(default=CPU)),
        patch(f"{POD}/a", pods(), "apply", fieldManager="m"),
        patch(f"{POD}/a", pods(), "apply", fieldManager="m"),
    ),
    scenario(
        "pod-of-a-collection",
        ROWS,
        limited(item(default=CPU, max={"cpu": "1"})),
        post(POD, pods(asking(limits={"cpu": "2"}))),
        post(POD, pods(asking(limits={"cpu": "1"}))),
        post(POD, pods(asking(limits={"cpu": "1"}))),
    ),
    *[
        scenario(f"claims-{name}", ROWS, limited(item("PersistentVolumeClaim", **bounds)), *_tried(PVC, CLAIMS))
        for name, bounds in {
            "max": {"max": {"storage": "1Gi"}},
            "min": {"min": {"storage": "2Gi"}},
            "both": {"min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}},
            "other": {"max": {"storage": "4Gi", "cpu": "1"}},
        }.items()
    ],
    scenario(
        "claim-updates",
        ROWS,
        post(PVC, claim()),
        limited(item("PersistentVolumeClaim", max={"storage": "512Mi"})),
        Until(patch(f"{PVC}/a", {"metadata": {"labels": {"a": "b"}}}, dryRun="All"), 403),
        patch(f"{PVC}/a", {"metadata": {"labels": {"a": "b"}}}),
        patch(f"{PVC}/a/status", {"status": {"phase": "Bound"}}),
        delete(f"{PVC}/a"),
        patch(f"{PVC}/a", {"metadata": {"labels": {"a": "b"}}}),
        patch(f"{PVC}/a", {"metadata": {"finalizers": None}}),
    ),
    scenario(
        "two",
        ROWS,
        post(LIMITS, limit_range(item(default=CPU), name="a")),
        post(LIMITS, limit_range(item("Pod", max={"cpu": "1"}), name="b")),
        Until(post(POD, pods(asking(limits={"cpu": "2"})), dryRun="All"), 403),
        post(POD, pods()),
        post(POD, merged(pods(asking("a"), asking("b"), asking("c")), {"metadata": {"name": "b"}})),
    ),
]
