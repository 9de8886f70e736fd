"""The rules of kube-apiserver's default roles, as far as they apply here.

``view``, ``edit`` and ``admin`` are aggregated by label, so that new kinds can add to them.
"""

from __future__ import annotations

from typing import Any, Final

Rule = dict[str, Any]

_PUBLIC: Final = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY: Final = ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", *_PUBLIC[2:]]
_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "delete", "deletecollection", "patch", "update")
_BOTH: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def _rule(verbs: tuple[str, ...], groups: str, resources: str) -> Rule:
    """A rule; groups and resources are separated by spaces, the core group is ``core``."""
    named = ["" if group == "core" else group for group in groups.split()]
    return {"verbs": list(verbs), "apiGroups": named, "resources": resources.split()}


def _of_urls(verbs: list[str], urls: list[str]) -> Rule:
    return {"verbs": verbs, "nonResourceURLs": urls}


_TO_ADMIN: Final = [
    _rule(("create",), "authorization.k8s.io", "localsubjectaccessreviews"),
    _rule(_BOTH, "rbac.authorization.k8s.io", "rolebindings roles"),
]
_TO_EDIT: Final = [
    _rule(_READ, "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    _rule(("impersonate",), "core", "serviceaccounts"),
    _rule(_WRITE, "core", "pods pods/attach pods/exec pods/portforward pods/proxy"),
    _rule(("create",), "core", "pods/eviction"),
    _rule(
        _WRITE,
        "core",
        "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts "
        "services services/proxy",
    ),
    _rule(("create",), "core", "serviceaccounts/token"),
    _rule(_WRITE, "core events.k8s.io", "events"),
    _rule(
        _WRITE,
        "apps",
        "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets "
        "statefulsets/scale",
    ),
    _rule(_WRITE, "autoscaling", "horizontalpodautoscalers"),
    _rule(_WRITE, "batch", "cronjobs jobs"),
    _rule(
        _WRITE,
        "extensions",
        "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets "
        "replicasets/scale replicationcontrollers/scale",
    ),
    _rule(_WRITE, "policy", "poddisruptionbudgets"),
    _rule(_WRITE, "networking.k8s.io", "ingresses networkpolicies"),
    _rule(_BOTH, "coordination.k8s.io", "leases"),
    _rule(_WRITE, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
]
_TO_VIEW: Final = [
    _rule(
        _READ,
        "core",
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers "
        "replicationcontrollers/scale serviceaccounts services services/status",
    ),
    _rule(
        _READ,
        "core",
        "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas "
        "resourcequotas/status",
    ),
    _rule(_READ, "core", "namespaces"),
    _rule(_READ, "core events.k8s.io", "events"),
    _rule(_READ, "discovery.k8s.io", "endpointslices"),
    _rule(
        _READ,
        "apps",
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets "
        "replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
    ),
    _rule(_READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    _rule(_READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    _rule(
        _READ,
        "extensions",
        "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status "
        "networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale",
    ),
    _rule(_READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    _rule(_READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
    _rule(_READ, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
]

#: The roles and their rules.
ROLES: Final[dict[str, list[Rule]]] = {
    "cluster-admin": [_rule(("*",), "*", "*"), _of_urls(["*"], ["*"])],
    "system:auth-delegator": [
        _rule(("create",), "authentication.k8s.io", "tokenreviews"),
        _rule(("create",), "authorization.k8s.io", "subjectaccessreviews"),
    ],
    "system:basic-user": [
        _rule(("create",), "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
        _rule(("create",), "authentication.k8s.io", "selfsubjectreviews"),
    ],
    "system:discovery": [_of_urls(["get"], _DISCOVERY)],
    "system:public-info-viewer": [_of_urls(["get"], _PUBLIC)],
    "system:aggregate-to-admin": _TO_ADMIN,
    "system:aggregate-to-edit": _TO_EDIT,
    "system:aggregate-to-view": _TO_VIEW,
}
#: Roles that aggregate all roles with their label, with their initial parts.
AGGREGATED: Final = {
    "view": _TO_VIEW,
    "edit": [*_TO_EDIT, *_TO_VIEW],
    "admin": [*_TO_EDIT, *_TO_VIEW, *_TO_ADMIN],
}
#: The aggregated role that a role is part of.
PART_OF: Final = {
    "system:aggregate-to-admin": "admin",
    "system:aggregate-to-edit": "edit",
    "system:aggregate-to-view": "view",
    "edit": "admin",
    "view": "edit",
}
#: The groups that a role is bound to.
BOUND_TO: Final = {
    "cluster-admin": ["system:masters"],
    "system:basic-user": ["system:authenticated"],
    "system:discovery": ["system:authenticated"],
    "system:public-info-viewer": ["system:authenticated", "system:unauthenticated"],
}
