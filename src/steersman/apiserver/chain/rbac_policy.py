"""The roles and bindings that everybody relies on: discovery, questions about oneself, and the administrator.

Guarantee: what is stored already stays as it is; only what is missing is created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steersman.apiserver.request import ServerRequest
from steersman.apiserver.verbs.create import create_object
from steersman.apiserver.verbs.options import WriteOptions
from steersman.wire import Request

if TYPE_CHECKING:
    from steersman.apiserver.server import ApiServer

_GROUP, _VERSION = "rbac.authorization.k8s.io", "v1"
_PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", *_PUBLIC[2:]]

_ROLES: dict[str, list[dict[str, Any]]] = {
    "cluster-admin": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
        {"verbs": ["*"], "nonResourceURLs": ["*"]},
    ],
    "system:auth-delegator": [
        {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"]},
        {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"]},
    ],
    "system:basic-user": [
        {
            "verbs": ["create"],
            "apiGroups": ["authorization.k8s.io"],
            "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        },
        {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
    ],
    "system:discovery": [{"verbs": ["get"], "nonResourceURLs": _DISCOVERY}],
    "system:public-info-viewer": [{"verbs": ["get"], "nonResourceURLs": _PUBLIC}],
}
_BOUND_TO = {
    "cluster-admin": ["system:masters"],
    "system:basic-user": ["system:authenticated"],
    "system:discovery": ["system:authenticated"],
    "system:public-info-viewer": ["system:authenticated", "system:unauthenticated"],
}


def _metadata(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    }


async def create_policy(server: ApiServer) -> None:
    """Create those that are not there, if the server serves them."""
    for name, rules in _ROLES.items():
        await _create(server, "clusterroles", {"kind": "ClusterRole", "metadata": _metadata(name), "rules": rules})
        if name not in _BOUND_TO:
            continue
        subjects = [{"kind": "Group", "apiGroup": _GROUP, "name": group} for group in _BOUND_TO[name]]
        ref = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": name}
        binding = {"kind": "ClusterRoleBinding", "metadata": _metadata(name), "subjects": subjects, "roleRef": ref}
        await _create(server, "clusterrolebindings", binding)


async def _create(server: ApiServer, resource: str, tree: dict[str, Any]) -> None:
    definition = server.registry.find(_GROUP, _VERSION, resource)
    if definition is None:
        return
    record, _ = await server.storage.get(definition.storage_key("", tree["metadata"]["name"]))
    if record is not None:
        return
    tree["apiVersion"] = f"{_GROUP}/{_VERSION}"
    definition.strategy.default(tree)
    path, agent = f"/apis/{_GROUP}/{_VERSION}/{resource}", ("User-Agent", "kube-apiserver")
    request = ServerRequest(Request("POST", path, headers=(agent,)))
    await create_object(server.context(definition), request, tree, WriteOptions())
