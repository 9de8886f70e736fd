"""Objects that scenarios make."""

from __future__ import annotations

from typing import Any


def template(
    app: str, *, image: str = "example.com/web:1", restart: str = "Always", **annotations: str
) -> dict[str, Any]:
    """A template of Pods; the annotation ``outcome`` says how far they come."""
    return {
        "metadata": {"labels": {"app": app}, "annotations": annotations},
        "spec": {
            "restartPolicy": restart,
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": image, "ports": [{"name": "http", "containerPort": 8080}]}],
        },
    }


def deployment(app: str, replicas: int = 3, **more: Any) -> dict[str, Any]:
    """A Deployment of Pods that run."""
    return {
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": app}},
            "template": template(app),
            **more,
        }
    }


def job(app: str, outcome: str = "succeeds", **more: Any) -> dict[str, Any]:
    """A Job, whose Pods end."""
    return {"spec": {"template": template(app, restart="Never", outcome=outcome), **more}}


def stateful_set(app: str, replicas: int = 3, **more: Any) -> dict[str, Any]:
    """A StatefulSet with a claim for each Pod."""
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    return {
        "spec": {
            "replicas": replicas,
            "serviceName": app,
            "selector": {"matchLabels": {"app": app}},
            "template": template(app),
            "volumeClaimTemplates": [claim],
            **more,
        }
    }


def owned_by(owner: dict[str, Any], api_version: str, kind: str, **more: Any) -> dict[str, Any]:
    """An object that belongs to another."""
    metadata = owner["metadata"]
    reference = {"apiVersion": api_version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"], **more}
    return {"metadata": {"ownerReferences": [reference]}}
