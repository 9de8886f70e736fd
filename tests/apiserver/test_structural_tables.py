"""Tables of kinds beside those that most operators use, and the warnings about deprecated kinds."""

import pytest

from samples.embedded import TABLE, Raw
from steersman.apiserver import ApiServer

NODE = {
    "metadata": {"name": "one", "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge"}},
    "spec": {"podCIDR": "172.16.0.0/24", "unschedulable": True},
    "status": {
        "addresses": [{"type": "InternalIP", "address": "192.168.1.5"}],
        "conditions": [{"type": "Ready", "status": "False"}],
        "nodeInfo": {"kubeletVersion": "v1.36.3", "kernelVersion": "6.1.0", "architecture": "amd64"},
    },
}
SCALER = {
    "metadata": {"name": "scaler"},
    "spec": {
        "maxReplicas": 5,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
            },
            {
                "type": "Resource",
                "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "200Mi"}},
            },
            {
                "type": "Pods",
                "pods": {"metric": {"name": "hits"}, "target": {"type": "AverageValue", "averageValue": "10"}},
            },
        ],
    },
}
SLICE = {
    "metadata": {"name": "slice"},
    "addressType": "IPv4",
    "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}],
    "endpoints": [{"addresses": [f"172.16.0.{number}"]} for number in range(1, 6)],
}
INGRESS = {
    "metadata": {"name": "door"},
    "spec": {"tls": [{}], "rules": [{"host": f"{letter}.example.com"} for letter in "abcd"]},
}
ENDPOINTS = {
    "metadata": {"name": "old"},
    "subsets": [{"addresses": [{"ip": "172.16.0.1"}], "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}],
}
VOLUME = {
    "metadata": {"name": "volume"},
    "spec": {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadOnlyMany", "ReadWriteOnce"],
        "storageClassName": "slow",
        "hostPath": {"path": "/data"},
    },
}


@pytest.fixture
async def raw():
    async with ApiServer() as server:
        yield Raw(server.handler)


@pytest.mark.parametrize(
    ("path", "obj", "cells"),
    [
        (
            "/api/v1/nodes",
            NODE,
            "one|NotReady,SchedulingDisabled|edge,worker|AGE|v1.36.3|192.168.1.5|<none>|<unknown>|6.1.0 (amd64)|<unknown>",
        ),
        (
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            SCALER,
            "scaler|Deployment/web|cpu: <unknown>/70%, memory: <unknown>/200Mi + 1 more...|1|5|0|AGE",
        ),
        (
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            SLICE,
            "slice|IPv4|80,81|172.16.0.1,172.16.0.2,172.16.0.3 + 2 more...|AGE",
        ),
        (
            "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
            INGRESS,
            "door|<none>|a.example.com,b.example.com,c.example.com + 1 more...||80, 443|AGE",
        ),
        ("/api/v1/namespaces/default/endpoints", ENDPOINTS, "old|172.16.0.1:80,172.16.0.1:81|AGE"),
        ("/api/v1/persistentvolumes", VOLUME, "volume|5Gi|RWO,ROX|Retain|Pending||slow|<unset>||AGE|Filesystem"),
    ],
    ids=["nodes", "autoscalers", "slices", "ingresses", "endpoints", "volumes"],
)
async def test_cells_are_those_that_kubectl_shows_on_the_engine(raw, path, obj, cells):
    assert (await raw.post(path, obj)).code == 201
    table = (await raw.get(f"{path}/{obj['metadata']['name']}", accept=TABLE)).body
    age = next(i for i, column in enumerate(table["columnDefinitions"]) if column["name"] == "Age")
    shown = [str(cell) for cell in table["rows"][0]["cells"]]
    assert shown[age].endswith("s")
    shown[age] = "AGE"
    assert "|".join(shown) == cells


async def test_a_node_has_all_its_ranges_and_the_first_of_them(raw):
    assert (await raw.post("/api/v1/nodes", NODE)).body["spec"]["podCIDRs"] == ["172.16.0.0/24"]


async def test_a_request_for_endpoints_gets_a_deprecation_warning(raw):
    answer = await raw.get("/api/v1/namespaces/default/endpoints")
    assert "v1 Endpoints is deprecated in v1.33+" in answer.headers["Warning"]
    assert "Warning" not in (await raw.get("/api/v1/namespaces/default/services")).headers
