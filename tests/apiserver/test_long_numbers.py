"""Numbers of thousands of digits, and intervals of billions, get an answer like any other mistake."""

from __future__ import annotations

from typing import Any

import pytest

from samples.embedded import Raw
from samples.eventually import eventually
from steersman.apiserver import ApiServer

#: Python converts no text of so many digits.
NINES = "9" * 5_000
LABELS = {"app": "a"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
ENDPOINTS = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
PODS = "/api/v1/namespaces/default/pods"
SETS = "/apis/apps/v1/namespaces/default/daemonsets"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def endpoint_slice(address: str) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": [{"addresses": [address]}]}


def deployment(share: str) -> dict[str, Any]:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": share}}
    spec = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE, "strategy": strategy}
    return {"metadata": {"name": "a"}, "spec": spec}


def job(**more: Any) -> dict[str, Any]:
    template = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    spec = {"completionMode": "Indexed", "completions": 10, "parallelism": 1, "template": template, **more}
    return {"metadata": {"name": "a"}, "spec": spec}


#: A path, a body with a long number, and the code of the answer.
BODIES: dict[str, tuple[str, dict[str, Any], int]] = {
    "an address": (ENDPOINTS, endpoint_slice(f"1{NINES}.1.1.1"), 422),
    "zeros before an address": (ENDPOINTS, endpoint_slice(f"{'0' * 5_000}1.1.1.1"), 422),
    "a deletion cost": (
        PODS,
        {"metadata": {"name": "a", "annotations": {"controller.kubernetes.io/pod-deletion-cost": NINES}}, "spec": TEMPLATE["spec"]},
        422,
    ),
    "a generation": (
        SETS,
        {
            "metadata": {"name": "a", "annotations": {"deprecated.daemonset.template.generation": NINES}},
            "spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE},
        },
        400,
    ),
    "a percentage": (DEPLOYMENTS, deployment(f"{NINES}%"), 422),
    "a percentage of a budget": (
        BUDGETS,
        {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": LABELS}, "maxUnavailable": f"{NINES}%"}},
        422,
    ),
    "an index": (JOBS, job(successPolicy={"rules": [{"succeededIndexes": f"0-{NINES}"}]}), 422),
    "a version of pod security": (
        "/api/v1/namespaces",
        {"metadata": {"name": "a", "labels": {"pod-security.kubernetes.io/enforce-version": f"v1.{NINES}"}}},
        422,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
async def test_a_long_number_is_answered(name: str):
    """A client would get a 500, and the log a trace."""
    path, body, code = BODIES[name]
    body = {**body, "metadata": {**body["metadata"], "labels": {**LABELS, **body["metadata"].get("labels", {})}}}
    async with ApiServer() as server:
        answer = await Raw(server.handler).post(path, body)
    assert answer.code == code, answer.body.get("message", "")[:500]


@pytest.mark.parametrize(
    ("replicas", "said"),
    [
        (NINES, f"cannot unmarshal number {NINES} into Go struct field DeploymentSpec.spec.replicas of type int32"),
        (f"[{NINES}]", "cannot unmarshal array into Go struct field DeploymentSpec.spec.replicas of type int32"),
    ],
    ids=["an integer", "a list of it"],
)
async def test_an_integer_of_many_digits_is_named_with_its_field(replicas: str, said: str):
    """A client would read that its valid JSON ends too early."""
    body = b'{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"a"},"spec":{"replicas":%b}}'
    async with ApiServer() as server:
        answer = await Raw(server.handler).post(DEPLOYMENTS, body % replicas.encode())
    assert answer.code == 400
    assert said in answer.body["message"]


async def test_a_column_with_a_long_index_is_empty():
    """`kubectl get` would fail for all objects of the kind."""
    column = {"name": "X", "type": "string", "jsonPath": f".spec.list[{NINES}]"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    version["additionalPrinterColumns"] = [column]
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    async with ApiServer() as server:
        raw = Raw(server.handler)
        assert (await raw.post(CRDS, {"metadata": {"name": "things.example.com"}, "spec": spec})).code == 201
        await eventually(lambda: server.registry.find("example.com", "v1", "things"))
        path = "/apis/example.com/v1/things"
        thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"list": [1]}}
        assert (await raw.post(path, thing)).code == 201
        answer = await raw.get(path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert answer.code == 200
    assert answer.body["rows"][0]["cells"][0] == "a"


async def test_billions_of_indexes_take_no_memory():
    """One short write of a Job's status would fill the memory of the server."""
    async with ApiServer() as server:
        raw = Raw(server.handler)
        assert (await raw.post(JOBS, job())).code == 201
        status = {"completedIndexes": "0-99999999999", "failedIndexes": "1"}
        answer = await raw.patch(f"{JOBS}/a/status", {"status": status})
    assert answer.code == 422
    assert "too large index" in answer.body["message"]
