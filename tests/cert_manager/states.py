"""What an installation of cert-manager leaves on a server, in a form that two servers share.

Guarantees
- Every field is kept, including managed fields unless several controllers race for them, except uids, versions and the addresses of Pods and Services.
- Times, keys, certificates and generated suffixes are replaced by a word.
- Objects and lists without an order are sorted.
"""

from __future__ import annotations

import json
import re
from typing import Any

from samples.raw_api import RawApi

_HIDDEN = frozenset({"uid", "resourceVersion", "clusterIP", "podIP", "modifiedAt"})
#: Lists whose order says nothing.
_UNORDERED = frozenset({"conditions", "managedFields", "ownerReferences"})
_WORDS = (
    (re.compile(r"(?<![0-9a-f])[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uid>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"\bX509SHA256=[0-9a-f]{64}\b"), "<certificate>"),
    (re.compile(r"^[A-Za-z0-9+/]{100,}=*$"), "<data>"),
    (re.compile(r"\b10\.\d{1,3}\.\d{1,3}\.\d{1,3}\b"), "<address>"),
    # What the server and the controllers append to a prefix; a leader appends its own to the name of its Pod.
    (re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}(?=-external|_<uid>|(?![\w-]))"), "-<suffix>"),
)
_RACES = "/apis/cert-manager.io/"
_LABELED = "?labelSelector=app.kubernetes.io/instance%3Dcert-manager"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"

#: All that the chart, its programs and the workload controllers make.
INSTALLED = (
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    f"{_RBAC}/clusterroles{_LABELED}",
    f"{_RBAC}/clusterroles?labelSelector=kubernetes.io/bootstrapping%3Drbac-defaults",
    f"{_RBAC}/clusterrolebindings{_LABELED}",
    f"{_RBAC}/namespaces/kube-system/roles{_LABELED}",
    f"{_RBAC}/namespaces/kube-system/rolebindings{_LABELED}",
    # kube-apiserver has a Lease of its own.
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?labelSelector=apiserver.kubernetes.io/identity%21%3Dkube-apiserver",
    "/api/v1/namespaces/cert-manager/configmaps",
    "/api/v1/namespaces/cert-manager/pods",
    "/api/v1/namespaces/cert-manager/secrets",
    "/api/v1/namespaces/cert-manager/serviceaccounts",
    "/api/v1/namespaces/cert-manager/services",
    "/apis/apps/v1/namespaces/cert-manager/deployments",
    "/apis/apps/v1/namespaces/cert-manager/replicasets",
    "/apis/batch/v1/namespaces/cert-manager/jobs",
    "/apis/networking.k8s.io/v1/namespaces/cert-manager/networkpolicies",
    "/apis/policy/v1/namespaces/cert-manager/poddisruptionbudgets",
    f"{_RBAC}/namespaces/cert-manager/roles",
    f"{_RBAC}/namespaces/cert-manager/rolebindings",
)


def issued(namespace: str) -> tuple[str, ...]:
    """All that cert-manager makes for its users in a namespace."""
    kinds = ("issuers", "certificates", "certificaterequests")
    return (
        *(f"/apis/cert-manager.io/v1/namespaces/{namespace}/{kind}" for kind in kinds),
        f"/api/v1/namespaces/{namespace}/secrets",
    )


async def objects_at(api: RawApi, paths: tuple[str, ...]) -> dict[str, Any]:
    """The objects at these paths, by path and name."""
    found: dict[str, Any] = {}
    for path in paths:
        for tree in (await api.made("GET", path))["items"]:
            shared = steady(tree)
            if path.startswith(_RACES):
                # Its controllers write the same fields in an order of their own.
                shared["metadata"].pop("managedFields", None)
            found[f"{path.partition('?')[0]}/{shared['metadata']['name']}"] = shared
    return found


async def events_in(api: RawApi, namespace: str, prefixes: tuple[str, ...]) -> list[str]:
    """What events say about objects with these prefixes, each text once."""
    events = (await api.made("GET", f"/api/v1/namespaces/{namespace}/events"))["items"]
    told = {
        f"{each['involvedObject']['kind']} {each['involvedObject']['name']}: {each['reason']}: {each['message']}"
        for each in events
        if each["involvedObject"]["name"].startswith(prefixes)
    }
    return sorted(map(_text, told))


def steady(value: Any, name: str = "") -> Any:
    """A value without what every server makes up."""
    match value:
        case dict():
            return {_text(key): steady(each, key) for key, each in value.items() if key not in _HIDDEN}
        case list():
            found = [steady(each) for each in value]
            return sorted(found, key=lambda each: json.dumps(each, sort_keys=True)) if name in _UNORDERED else found
        case str():
            return _text(value)
        case _:
            return value


def _text(text: str) -> str:
    for pattern, word in _WORDS:
        text = pattern.sub(word, text)
    return text
