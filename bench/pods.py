"""Realistic Pods for measurements."""

from __future__ import annotations

from typing import Any

import msgspec


def _owned_fields(count: int) -> dict[str, Any]:
    return {"f:spec": {f"f:field{number}": {".": {}, "f:name": {}, "f:value": {}} for number in range(count)}}


def _container(number: int) -> dict[str, Any]:
    return {
        "name": f"container-{number}",
        "image": "registry.example.com/team/service:1.27.3",
        "env": [{"name": f"VARIABLE_{index}", "value": f"value-{index}"} for index in range(8)],
        "ports": [{"name": "http", "containerPort": 8080 + number, "protocol": "TCP"}],
        "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "token", "readOnly": True, "mountPath": "/var/run/secrets/token"},
        ],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
            "timeoutSeconds": 1,
            "periodSeconds": 10,
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def pod(number: int) -> dict[str, Any]:
    """One pod of about 6 KB."""
    time = "2026-01-01T00:00:00Z"
    return {
        "metadata": {
            "name": f"service-7d9c5b8f6d-{number:05d}",
            "generateName": "service-7d9c5b8f6d-",
            "namespace": f"team-{number % 20}",
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "resourceVersion": str(100_000 + number),
            "creationTimestamp": time,
            "labels": {
                "app": "service",
                "pod-template-hash": "7d9c5b8f6d",
                "team": f"team-{number % 20}",
                "tier": "front",
            },
            "annotations": {f"example.com/annotation-{index}": "x" * 48 for index in range(4)},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "service-7d9c5b8f6d",
                    "uid": "11111111-0000-4000-8000-000000000000",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [
                {
                    "manager": manager,
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": time,
                    "fieldsType": "FieldsV1",
                    "fieldsV1": _owned_fields(20),
                }
                for manager in ("kube-controller-manager", "kubelet")
            ],
        },
        "spec": {
            "containers": [_container(index) for index in range(2)],
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "token", "emptyDir": {"medium": "Memory"}}],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "nodeName": f"node-{number % 100}",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{what}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for what in ("not-ready", "unreachable")
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": what, "status": "True", "lastProbeTime": None, "lastTransitionTime": time}
                for what in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "hostIP": "10.0.0.1",
            "podIP": "10.1.0.1",
            "podIPs": [{"ip": "10.1.0.1"}],
            "startTime": time,
            "containerStatuses": [
                {
                    "name": f"container-{index}",
                    "state": {"running": {"startedAt": time}},
                    "lastState": {},
                    "ready": True,
                    "restartCount": 0,
                    "image": "registry.example.com/team/service:1.27.3",
                    "imageID": "sha256:" + "0" * 64,
                    "containerID": "containerd://" + "0" * 64,
                    "started": True,
                }
                for index in range(2)
            ],
            "qosClass": "Burstable",
        },
    }


def pod_list(count: int) -> bytes:
    """A PodList as the server sends it: its items carry no kind."""
    items = [pod(number) for number in range(count)]
    return msgspec.json.encode(
        {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "200000"}, "items": items}
    )
