"""Bodies with as many values as their size allows take memory that a sender could not multiply."""

import gc
import json
import tracemalloc

import pytest

from samples.embedded import Raw
from samples.site import GROUP, Site
from steersman.apiserver import ApiServer
from steersman.wire import HttpRequest

NAMESPACE = "/api/v1/namespaces/default"
MAPS, PODS, ROLES = f"{NAMESPACE}/configmaps", f"{NAMESPACE}/pods", "/apis/rbac.authorization.k8s.io/v1/clusterroles"
SITES = f"/apis/{GROUP}/v1/namespaces/default/sites"
JSON, MERGE, STRATEGIC = "application/json", "application/merge-patch+json", "application/strategic-merge-patch+json"
APPLY, JSON_PATCH = "application/apply-patch+yaml", "application/json-patch+json"

MAP = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"unknown":@}'
DATA = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":@}'
POD = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":@}}'
ENV = POD.replace("@", '[{"name":"c","image":"i","env":@}]')
ROLE = '{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"x"},"rules":@}'
SITE = f'{{"apiVersion":"{GROUP}/v1","kind":"Site","metadata":{{"name":"x"}},"spec":{{"image":"i","settings":@}}}}'
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = (
    '{"metadata":{"name":"xs.e.io"},"spec":{"group":"e.io","scope":"Cluster",'
    '"names":{"plural":"xs","kind":"X"},"versions":@}}'
)
#: A small object of each kind, to be patched.
PLAIN = {
    MAPS: DATA.replace("@", "{}"),
    PODS: ENV.replace("@", "[]"),
    ROLES: ROLE.replace("@", "[]"),
    SITES: SITE.replace("@", "{}"),
    CRDS: CRD.replace("@", '[{"name":"a"}]'),
}


def many(item: str, count: int) -> str:
    return f"[{','.join([item] * count)}]"


def entries(item: str, count: int) -> str:
    return "{" + ",".join(f'"{number}":{item}' for number in range(count)) + "}"


async def ratio(server: ApiServer, path: str, form: str, text: str) -> tuple[int, float]:
    """The status of the answer to a body, and how many times its size it takes in memory."""
    raw, request = Raw(server.handler), text.encode("utf-8", "surrogateescape")
    headers = (("Content-Type", form),)
    wire = HttpRequest("POST", path, (), headers, request)
    if form != JSON:
        assert (await raw.post(path, json.loads(PLAIN[path]))).code == 201
        query = (("fieldManager", "m"), ("force", "true")) if form == APPLY else ()
        wire = HttpRequest("PATCH", f"{path}/x", query, headers, request)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        status = (await server.handler(wire)).status
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return status, (peak - before) / len(request)


DEEP = '{"a":' * 30 + "1" + "}" * 30


@pytest.mark.parametrize(
    ("path", "form", "text", "status", "most"),
    [
        pytest.param(PODS, JSON, POD.replace("@", many("null", 30_000)), 422, 30, id="null containers"),
        pytest.param(PODS, JSON, POD.replace("@", many("{}", 30_000)), 422, 50, id="empty containers"),
        pytest.param(
            CRDS, JSON, CRD.replace("@", many('{"name":"a"}', 30_000)), 413, 40, id="versions of a definition"
        ),
        pytest.param(PODS, JSON, POD.replace("@", many("1", 50_000)), 400, 20, id="numbers in place of objects"),
        pytest.param(MAPS, JSON, MAP.replace("@", many('"\udcff"', 30_000)), 201, 40, id="no UTF-8"),
        pytest.param(MAPS, JSON, MAP.replace("@", many('"\\ud800"', 30_000)), 201, 16, id="halves of pairs"),
        pytest.param(SITES, JSON, SITE.replace("@", entries('{"a":1,"a":2}', 10_000)), 201, 32, id="fields twice"),
        pytest.param(MAPS, MERGE, MAP.replace("@", many('{"a":1}', 20_000)), 200, 40, id="merge: objects"),
        pytest.param(MAPS, MERGE, MAP.replace("@", entries(DEEP, 600)), 200, 45, id="merge: deep objects"),
        pytest.param(PODS, MERGE, ENV.replace("@", many("{}", 20_000)), 422, 60, id="merge: empty items"),
        pytest.param(MAPS, STRATEGIC, MAP.replace("@", entries(DEEP, 600)), 200, 45, id="strategic: deep objects"),
        pytest.param(MAPS, STRATEGIC, DATA.replace("@", entries('{"a":1}', 10_000)), 422, 32, id="strategic: message"),
        pytest.param(ROLES, APPLY, ROLE.replace("@", many("1", 30_000)), 500, 30, id="apply: wrong types"),
        pytest.param(
            SITES, APPLY, SITE.replace("@", entries('{"a":1}', 10_000)), 200, 45, id="apply: objects in a map"
        ),
        pytest.param(SITES, APPLY, SITE.replace("@", entries(DEEP, 600)), 200, 60, id="apply: deep objects in a map"),
        pytest.param(
            SITES, APPLY, SITE.replace("@", entries("{}", 20_000)), 200, 33, id="apply: empty objects in a map"
        ),
        pytest.param(SITES, APPLY, SITE.replace("@", entries("1", 100_000)), 413, 26, id="apply: a wide map"),
        pytest.param(
            SITES, APPLY, SITE.replace("@", entries("null", 90_000)), 413, 26, id="apply: a wide map of nulls"
        ),
        pytest.param(
            MAPS, JSON_PATCH, f'[{{"op":"add","path":"/unknown","value":{many(DEEP, 600)}}}]', 200, 45, id="JSON patch"
        ),
    ],
)
async def test_a_dense_body_takes_a_bounded_multiple_of_its_size(path, form, text, status, most):
    """The server keeps one tree of a body, shares what repeats, and makes no long list of problems."""
    async with ApiServer(resources=[Site]) as server:
        # What is loaded on first use is not counted.
        await Raw(server.handler).post(path, json.loads(PLAIN[path].replace('"x"', '"first"')) | {"unknown": 1})
        found, times = await ratio(server, path, form, text)
    assert found == status
    assert times < most, f"{times:.0f} times the body"


async def test_the_collector_does_not_scan_the_values_of_a_large_body_while_they_are_made():
    """Each scan of a growing tree would hold up other clients."""
    body = b'{"metadata":{"name":"x"},"unknown":[' + b",".join([b"[]"] * 60_000) + b"]}"
    started: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            started.append(info["generation"])

    async with ApiServer() as server:
        request = HttpRequest("POST", MAPS, (), (("Content-Type", JSON),), body)
        gc.collect()
        gc.callbacks.append(note)
        try:
            assert (await server.handler(request)).status == 201
        finally:
            gc.callbacks.remove(note)
    assert len(started) < 20, "60,000 lists would be 85 scans"
