"""The default roles and bindings: discovery, self-review, and view, edit and admin.

Guarantee: stored objects stay unchanged; only missing ones are created.
"""

from __future__ import annotations

from typing import Any

from steersman.apiserver.bootstrap.rbac_roles import AGGREGATED, BOUND_TO, PART_OF, ROLES
from steersman.apiserver.context import Backend
from steersman.apiserver.documents import copied
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.verbs.create import create_object
from steersman.apiserver.verbs.options import WriteOptions
from steersman.wire import Request

_GROUP, _VERSION = "rbac.authorization.k8s.io", "v1"
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"


def _metadata(name: str) -> dict[str, Any]:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    if name in PART_OF:
        labels[f"{_AGGREGATE}{PART_OF[name]}"] = "true"
    return {
        "name": name,
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        "labels": labels,
    }


async def create_policy(backend: Backend) -> None:
    """Create the missing ones, if the server serves them."""
    for name, rules in AGGREGATED.items():
        selector = {"matchLabels": {f"{_AGGREGATE}{name}": "true"}}
        rule = {"clusterRoleSelectors": [selector]}
        # A controller keeps the rules up to date; without it they stay at their initial state.
        role = {"kind": "ClusterRole", "metadata": _metadata(name), "aggregationRule": rule, "rules": rules}
        await _create(backend, "clusterroles", role)
    for name, rules in ROLES.items():
        await _create(backend, "clusterroles", {"kind": "ClusterRole", "metadata": _metadata(name), "rules": rules})
        if name not in BOUND_TO:
            continue
        subjects = [{"kind": "Group", "apiGroup": _GROUP, "name": group} for group in BOUND_TO[name]]
        ref = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": name}
        binding = {"kind": "ClusterRoleBinding", "metadata": _metadata(name), "subjects": subjects, "roleRef": ref}
        await _create(backend, "clusterrolebindings", binding)


async def _create(backend: Backend, resource: str, tree: dict[str, Any]) -> None:
    definition = backend.registry.find(_GROUP, _VERSION, resource)
    if definition is None:
        return
    record, _ = await backend.storage.get(definition.storage_key("", tree["metadata"]["name"]))
    if record is not None:
        return
    tree["apiVersion"] = f"{_GROUP}/{_VERSION}"
    # The rules are constants, and the default form is made in place.
    tree = copied(tree)
    definition.strategy.default(tree)
    path, agent = f"/apis/{_GROUP}/{_VERSION}/{resource}", ("User-Agent", "kube-apiserver")
    request = ServerRequest(Request("POST", path, headers=(agent,)))
    await create_object(backend.context(definition), request, tree, WriteOptions())
