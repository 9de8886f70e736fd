"""The objects of the API server's benchmark: 2.7 KB each as sent, and slightly more as returned."""

from __future__ import annotations

from typing import Any

import msgspec

from bench.pods import pod

NAMESPACE, MANY = "bench", "many"
_GIVEN_BY_SERVER = ("resourceVersion", "uid", "creationTimestamp", "managedFields", "ownerReferences", "generateName")
_TIME = "2026-01-01T00:00:00Z"


def config_map(namespace: str, number: int, *, revision: int = 0, padding: int = 0) -> bytes:
    """A ConfigMap; ``revision`` changes its content, ``padding`` adds this many bytes."""
    data = {f"key-{index:02d}": f"{number:06d}-{revision:06d} " + "value " * 20 for index in range(17)}
    data["key-00"] += "x" * padding
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": config_map_name(number),
                "namespace": namespace,
                "labels": {"app": f"service-{number % 200}", "team": f"team-{number % 20}", "tier": "front"},
                "annotations": {"example.com/owner": f"operator-{number}"},
            },
            "data": data,
        }
    )


def config_map_name(number: int) -> str:
    return f"settings-{number:06d}"


def new_pod(number: int) -> bytes:
    """A Pod with two containers, as a controller creates it."""
    tree = pod(number)
    for name in _GIVEN_BY_SERVER:
        del tree["metadata"][name]
    del tree["status"], tree["spec"]["nodeName"]
    tree["metadata"] |= {"name": pod_name(number), "namespace": NAMESPACE}
    second = tree["spec"]["containers"][1]
    second["ports"][0]["name"] = second["livenessProbe"]["httpGet"]["port"] = "metrics"
    # A few bytes less than in bench/pods.py: 2.7 KB.
    for index in range(2):
        del tree["metadata"]["annotations"][f"example.com/annotation-{index}"]
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Pod"} | tree)


def deployment(namespace: str, number: int, *, revision: int = 0) -> bytes:
    """A Deployment of the same Pods as a controller applies it; ``revision`` changes an image."""
    tree = msgspec.json.decode(new_pod(number))
    labels = tree["metadata"]["labels"]
    tree["spec"]["containers"][0]["image"] += f"-{revision}"
    return msgspec.json.encode(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": deployment_name(number), "namespace": namespace, "labels": labels},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": labels["app"]}},
                "template": {"metadata": {"labels": labels}, "spec": tree["spec"]},
            },
        }
    )


def deployment_name(number: int) -> str:
    return f"service-{number:06d}"


def pod_name(number: int) -> str:
    return f"service-7d9c5b8f6d-{number:06d}"


def pod_status(number: int, revision: int) -> bytes:
    """A merge patch for the status of a running Pod, different each time."""
    ready: dict[str, Any] = {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": _TIME}
    conditions = [ready | {"type": name} for name in ("PodScheduled", "Initialized", "ContainersReady")]
    conditions.append(ready | {"message": f"checked for the {revision}th time"})
    address = f"10.1.{number // 250 % 250}.{number % 250 + 1}"
    return msgspec.json.encode(
        {
            "status": {
                "phase": "Running",
                "conditions": conditions,
                "podIP": address,
                "podIPs": [{"ip": address}],
                "startTime": _TIME,
            }
        }
    )
