"""Fields that a body holds twice: what each type of Go keeps of the first value if the second is null."""

from __future__ import annotations

import json
from typing import Any

from conformance.bodies import (
    DEPLOYMENT,
    EVENT,
    LEASE,
    POD,
    SECRET,
    SERVICE,
    deployment,
    event,
    lease,
    pod,
    secret,
    service,
)
from conformance.scenario import post, scenario

#: Where a field stands, and its two values.
TWICE: list[tuple[str, dict[str, Any], str, str, str]] = [
    (DEPLOYMENT, deployment(), "spec", '"replicas":3', '"replicas":null'),
    (DEPLOYMENT, deployment(), "spec", '"minReadySeconds":3', '"minReadySeconds":null'),
    (DEPLOYMENT, deployment(), "spec", '"paused":true', '"paused":null'),
    (DEPLOYMENT, deployment(), "spec", '"strategy":{"type":"Recreate"}', '"strategy":null'),
    (DEPLOYMENT, deployment(), "spec", '"strategy":{"rollingUpdate":{"maxSurge":3,"maxSurge":null}}', '"progressDeadlineSeconds":7'),
    (DEPLOYMENT, deployment(), "spec", '"strategy":{"rollingUpdate":{"maxSurge":3}}', '"strategy":{"rollingUpdate":null}'),
    (DEPLOYMENT, deployment(), "metadata", '"labels":{"a":"b"}', '"labels":null'),
    (DEPLOYMENT, deployment(), "metadata", '"labels":{"a":"b"}', '"labels":{"a":null}'),
    (DEPLOYMENT, deployment(), "metadata", '"finalizers":["a.b/c"]', '"finalizers":null'),
    (DEPLOYMENT, deployment(), "metadata", '"finalizers":["a.b/c"]', '"finalizers":[null]'),
    (DEPLOYMENT, deployment(), "metadata", '"finalizers":["a.b/c"]', '"finalizers":[null,"a.b/d"]'),
    (DEPLOYMENT, deployment(), "metadata", '"ownerReferences":[{"apiVersion":"v1","kind":"A","name":"a","uid":"a","controller":true}]', '"ownerReferences":[{"controller":null}]'),
    (DEPLOYMENT, deployment(), "metadata", '"ownerReferences":[{"apiVersion":"v1","kind":"A","name":"a","uid":"a","controller":true}]', '"ownerReferences":[null]'),
    (POD, pod(), "spec", '"securityContext":{"runAsUser":1}', '"securityContext":null'),
    (POD, pod(), "spec", '"securityContext":{"runAsUser":1}', '"securityContext":{"runAsUser":null}'),
    (POD, pod(), "spec", '"securityContext":{"supplementalGroups":[1,2]}', '"securityContext":{"supplementalGroups":[null,3]}'),
    (POD, pod(), "spec", '"hostNetwork":true', '"hostNetwork":null'),
    (POD, pod(), "spec", '"automountServiceAccountToken":false', '"automountServiceAccountToken":null'),
    (POD, pod(), "spec", '"nodeName":"a"', '"nodeName":null'),
    (POD, pod(), "spec", '"priorityClassName":"system-node-critical"', '"priorityClassName":null'),
    (POD, pod(), "spec", '"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Gi"}}]', '"volumes":[{"emptyDir":{"sizeLimit":null}}]'),
    (POD, pod(), "spec", '"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Gi"}}]', '"volumes":[{"emptyDir":null}]'),
    (POD, pod(), "spec", '"volumes":[{"name":"v","downwardAPI":{"items":[{"path":"p","mode":7,"resourceFieldRef":{"containerName":"a","resource":"limits.cpu","divisor":"1m"}}]}}]', '"volumes":[{"downwardAPI":{"items":[{"mode":null,"resourceFieldRef":{"divisor":null}}]}}]'),
    (POD, pod(), "spec", '"overhead":{"cpu":"1"}', '"overhead":{"cpu":null}'),
    (POD, pod(), "spec", '"tolerations":[{"key":"a","operator":"Exists"},{"key":"b","operator":"Exists"}]', '"tolerations":[null,null]'),
    (SERVICE, service(), "spec", '"ports":[{"port":80,"targetPort":81}]', '"ports":[{"targetPort":null}]'),
    (SERVICE, service(), "spec", '"ports":[{"port":80,"appProtocol":"http"}]', '"ports":[{"appProtocol":null}]'),
    (SECRET, secret(), "", '"data":{"a":"YQ=="}', '"data":{"a":null}'),
    (SECRET, secret(), "", '"data":{"a":"YQ=="}', '"data":null'),
    (SECRET, secret(), "", '"immutable":true', '"immutable":null'),
    (LEASE, lease(), "spec", '"renewTime":"2020-01-01T00:00:00.000000Z"', '"renewTime":null'),
    (LEASE, lease(), "spec", '"holderIdentity":"a"', '"holderIdentity":null'),
    (EVENT, event(), "", '"firstTimestamp":"2020-01-01T00:00:00Z"', '"firstTimestamp":null'),
    (EVENT, event(), "", '"eventTime":"2020-01-01T00:00:00.000000Z"', '"eventTime":null'),
    (EVENT, event(), "", '"count":3', '"count":null'),
    (EVENT, event(), "", '"series":{"count":3}', '"series":null'),
]  # fmt: skip


def doubled(tree: dict[str, Any], inside: str, both: str) -> str:
    """A body with these fields at the end of an object."""
    rest = {name: value for name, value in tree.items() if name != inside}
    held = tree[inside] if inside else rest
    text = f"{json.dumps(held)[:-1]}, {both}}}"
    return f'{json.dumps(rest)[:-1]}, "{inside}": {text}}}' if inside else text


SCENARIOS = [
    scenario(
        "null",
        "fieldValidation",
        *(
            post(path, doubled(tree, inside, f"{first}, {second}"), dryRun="All")
            for path, tree, inside, first, second in TWICE
        ),
    ),
]
