"""Paths and the smallest good bodies of the kinds that scenarios use."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

CORE = "/api/v1/namespaces/{ns}"
CM = f"{CORE}/configmaps"
SECRET = f"{CORE}/secrets"
SERVICE = f"{CORE}/services"
SERVICE_ACCOUNT = f"{CORE}/serviceaccounts"
POD = f"{CORE}/pods"
EVENT = f"{CORE}/events"
PVC = f"{CORE}/persistentvolumeclaims"
NAMESPACE = "/api/v1/namespaces"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
NEW_EVENT = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
APPS = "/apis/apps/v1/namespaces/{ns}"
DEPLOYMENT = f"{APPS}/deployments"
REPLICA_SET = f"{APPS}/replicasets"
STATEFUL_SET = f"{APPS}/statefulsets"
DAEMON_SET = f"{APPS}/daemonsets"
JOB = "/apis/batch/v1/namespaces/{ns}/jobs"
CRON_JOB = "/apis/batch/v1/namespaces/{ns}/cronjobs"
PDB = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLE = f"{RBAC}/namespaces/{{ns}}/roles"
ROLE_BINDING = f"{RBAC}/namespaces/{{ns}}/rolebindings"
CLUSTER_ROLE = f"{RBAC}/clusterroles"
CLUSTER_ROLE_BINDING = f"{RBAC}/clusterrolebindings"

Tree = dict[str, Any]


def merged(tree: Tree, more: Tree) -> Tree:
    """A tree with another laid over it; None removes, lists replace."""
    result = deepcopy(tree)
    for key, value in more.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = deepcopy(value)
    return result


def named(api_version: str, kind: str, name: str, **fields: Any) -> Tree:
    """An object with a name."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def configmap(name: str = "a", data: dict[str, str] | None = None, **metadata: Any) -> Tree:
    tree = named("v1", "ConfigMap", name, data={"key": "value"} if data is None else data)
    tree["metadata"].update(metadata)
    return tree


def secret(name: str = "a", **fields: Any) -> Tree:
    return named("v1", "Secret", name, **(fields or {"data": {"key": "dmFsdWU="}}))


def namespace(name: str = "{free}", **metadata: Any) -> Tree:
    tree = named("v1", "Namespace", name)
    tree["metadata"].update(metadata)
    return tree


def service(name: str = "a", **spec: Any) -> Tree:
    return named("v1", "Service", name, spec=merged({"selector": {"app": "a"}, "ports": [{"port": 80}]}, spec))


def service_account(name: str = "a", **fields: Any) -> Tree:
    return named("v1", "ServiceAccount", name, **fields)


def container(**fields: Any) -> Tree:
    return {"name": "main", "image": "example.com/main:1", **fields}


def pod_spec(**fields: Any) -> Tree:
    return merged({"containers": [container()]}, fields)


def pod(name: str = "a", **spec: Any) -> Tree:
    return named("v1", "Pod", name, spec=pod_spec(**spec))


def template(**spec: Any) -> Tree:
    return {"metadata": {"labels": {"app": "a"}}, "spec": pod_spec(**spec)}


SELECTOR = {"matchLabels": {"app": "a"}}


def deployment(name: str = "a", **spec: Any) -> Tree:
    return named("apps/v1", "Deployment", name, spec=merged({"selector": SELECTOR, "template": template()}, spec))


def replica_set(name: str = "a", **spec: Any) -> Tree:
    return named("apps/v1", "ReplicaSet", name, spec=merged({"selector": SELECTOR, "template": template()}, spec))


def stateful_set(name: str = "a", **spec: Any) -> Tree:
    smallest = {"selector": SELECTOR, "serviceName": "a", "template": template()}
    return named("apps/v1", "StatefulSet", name, spec=merged(smallest, spec))


def daemon_set(name: str = "a", **spec: Any) -> Tree:
    return named("apps/v1", "DaemonSet", name, spec=merged({"selector": SELECTOR, "template": template()}, spec))


def job_spec(**spec: Any) -> Tree:
    return merged({"template": {"spec": pod_spec(restartPolicy="Never")}}, spec)


def job(name: str = "a", **spec: Any) -> Tree:
    return named("batch/v1", "Job", name, spec=job_spec(**spec))


def cron_job(name: str = "a", **spec: Any) -> Tree:
    smallest = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": job_spec()}}
    return named("batch/v1", "CronJob", name, spec=merged(smallest, spec))


def claim(name: str = "a", **spec: Any) -> Tree:
    smallest = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return named("v1", "PersistentVolumeClaim", name, spec=merged(smallest, spec))


def budget(name: str = "a", **spec: Any) -> Tree:
    return named("policy/v1", "PodDisruptionBudget", name, spec=merged({"minAvailable": 1, "selector": SELECTOR}, spec))


def lease(name: str = "a", **spec: Any) -> Tree:
    return named("coordination.k8s.io/v1", "Lease", name, spec=spec or {"holderIdentity": "me"})


def event(name: str = "a", **fields: Any) -> Tree:
    about = {"kind": "Pod", "namespace": "{ns}", "name": "web", "uid": "11111111-2222-3333-4444-555555555555"}
    smallest = {"involvedObject": about, "reason": "Started", "message": "it started", "type": "Normal"}
    return named("v1", "Event", name, **merged(smallest, fields))


def new_event(name: str = "a", **fields: Any) -> Tree:
    smallest = {
        "eventTime": "2024-01-02T03:04:05.000006Z",
        "reportingController": "example.com/tester",
        "reportingInstance": "tester-1",
        "action": "Starting",
        "reason": "Started",
        "regarding": {"kind": "Pod", "namespace": "{ns}", "name": "web"},
        "note": "it started",
        "type": "Normal",
    }
    return named("events.k8s.io/v1", "Event", name, **merged(smallest, fields))


RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]


def role(name: str = "a", kind: str = "Role", **fields: Any) -> Tree:
    return named("rbac.authorization.k8s.io/v1", kind, name, **merged({"rules": RULES}, fields))


def binding(name: str = "a", kind: str = "RoleBinding", **fields: Any) -> Tree:
    smallest = {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "{ns}"}],
    }
    return named("rbac.authorization.k8s.io/v1", kind, name, **merged(smallest, fields))


#: Every namespaced kind with its path and its smallest good body.
KINDS: dict[str, tuple[str, Tree]] = {
    "configmap": (CM, configmap()),
    "secret": (SECRET, secret()),
    "service": (SERVICE, service()),
    "serviceaccount": (SERVICE_ACCOUNT, service_account()),
    "pod": (POD, pod()),
    "lease": (LEASE, lease()),
    "event": (EVENT, event()),
    "event-of-its-group": (NEW_EVENT, new_event()),
    "deployment": (DEPLOYMENT, deployment()),
    "replicaset": (REPLICA_SET, replica_set()),
    "statefulset": (STATEFUL_SET, stateful_set()),
    "daemonset": (DAEMON_SET, daemon_set()),
    "job": (JOB, job()),
    "cronjob": (CRON_JOB, cron_job()),
    "claim": (PVC, claim()),
    "budget": (PDB, budget()),
    "role": (ROLE, role()),
    "rolebinding": (ROLE_BINDING, binding()),
}

#: Every kind without a namespace, under a name that is free.
CLUSTER_KINDS: dict[str, tuple[str, Tree]] = {
    "namespace": (NAMESPACE, namespace("{free}")),
    "clusterrole": (CLUSTER_ROLE, role("{free}", "ClusterRole")),
    "clusterrolebinding": (CLUSTER_ROLE_BINDING, binding("{free}", "ClusterRoleBinding")),
}
