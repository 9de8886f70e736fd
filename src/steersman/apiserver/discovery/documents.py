"""The documents of discovery, as kube-apiserver prints them.

Guarantees
- The order of fields, and the omissions for built-in and custom resources, are kube-apiserver's.
"""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.apiserver.discovery.catalog import Snapshot, subresources_of, verbs_of
from steersman.apiserver.registry import Definition, Tree
from steersman.objects import GroupVersion, GroupVersionKind

_encode = msgspec.json.Encoder().encode


def api_versions(snapshot: Snapshot, address: str) -> bytes:
    """The plain answer of ``/api``; `address` is the server's address as the client sees it."""
    return _encode(
        {
            "kind": "APIVersions",
            "versions": list(snapshot.groups.get("", ())),
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
        }
    )


def group_list(snapshot: Snapshot) -> bytes:
    """The plain answer of ``/apis``."""
    groups = [_group(snapshot, group) for group in snapshot.groups if group]
    return _encode({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})


def group_document(snapshot: Snapshot, group: str) -> bytes:
    """The answer of ``/apis/GROUP``."""
    return _encode({"kind": "APIGroup", "apiVersion": "v1", **_group(snapshot, group)})


def _group(snapshot: Snapshot, group: str) -> Tree:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version} for version in snapshot.groups.get(group, ())
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def resource_list(snapshot: Snapshot, group_version: GroupVersion) -> bytes:
    """The answer of ``/apis/GROUP/VERSION``: each resource, followed by its subresources."""
    resources: list[Tree] = []
    for definition in snapshot.of(group_version) or ():
        resources.append(_listed(snapshot, definition))
        for sub in subresources_of(definition):
            entry: Tree = {
                "name": f"{definition.resource}/{sub.name}",
                "singularName": "",
                "namespaced": definition.namespaced,
            }
            if sub.gvk.group_version != group_version:
                entry |= {"group": sub.gvk.group, "version": sub.gvk.version}
            resources.append(entry | {"kind": sub.gvk.kind, "verbs": sub.verbs})
    # The list of the core group predates the rule that every object names its version.
    head = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if group_version.group else {})
    return _encode({**head, "groupVersion": group_version.api_version, "resources": resources})


def _listed(snapshot: Snapshot, definition: Definition) -> Tree:
    entry: Tree = {
        "name": definition.resource,
        "singularName": definition.singular,
        "namespaced": definition.namespaced,
        "kind": definition.gvk.kind,
        "verbs": verbs_of(definition),
    }
    stored = snapshot.storage_version_hash(definition)
    return entry | _names(definition) | ({"storageVersionHash": stored} if stored else {})


def aggregated(snapshot: Snapshot, *, core: bool) -> bytes:
    """The aggregated answer of ``/api`` (`core`) or ``/apis``."""
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {
                    "version": version,
                    "resources": [_aggregated_resource(definition) for definition in definitions],
                    "freshness": "Current",
                }
                for version, definitions in versions.items()
            ],
        }
        for group, versions in snapshot.groups.items()
        if (group == "") == core
    ]
    return _encode(
        {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
    )


def _aggregated_resource(definition: Definition) -> Tree:
    entry: Tree = {
        "resource": definition.resource,
        "responseKind": _response_kind(definition, definition.gvk),
        "scope": "Namespaced" if definition.namespaced else "Cluster",
        "singularResource": definition.singular,
        "verbs": verbs_of(definition),
        **_names(definition),
    }
    subresources = [
        {"subresource": sub.name, "responseKind": _response_kind(definition, sub.gvk), "verbs": sub.verbs}
        for sub in subresources_of(definition)
    ]
    return entry | ({"subresources": subresources} if subresources else {})


def _response_kind(definition: Definition, gvk: GroupVersionKind) -> Tree:
    """The kind of a response; a built-in kind of the resource's own group-version is not repeated."""
    own = not definition.custom and gvk.group_version == definition.gvk.group_version
    return {"group": "" if own else gvk.group, "version": "" if own else gvk.version, "kind": gvk.kind}


def _names(definition: Definition) -> dict[str, Any]:
    names = {"shortNames": definition.short_names, "categories": definition.categories}
    return {name: value for name, value in names.items() if value}
