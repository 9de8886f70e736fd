"""What kubectl does with subresources that change a part of an object: approve, debug and resize."""

import json
import os

import pytest
from conformance.scenarios.certificates import request

from samples.embedded import Raw
from steersman.apiserver import ApiServer
from steersman.apiserver.chain import single_user
from steersman.testing.engine.environment import Environment
from steersman.testing.engine.existing_cluster import find_kubectl
from steersman.testing.engine.kubectl import run_kubectl
from steersman.transport.listener import HttpListener

PODS = "/api/v1/namespaces/default/pods"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SMALL = {"requests": {"cpu": "100m", "memory": "64Mi"}}
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i", "resources": SMALL}]}}


@pytest.fixture
async def server():
    async with ApiServer(kinds=["v1", "certificates.k8s.io/v1"], chain=[single_user()]) as running:
        yield running


@pytest.fixture
def raw(server):
    return Raw(server.handler)


@pytest.fixture
async def kubectl(server, tmp_path):
    program = find_kubectl(Environment.read())
    variables = {"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none"), "PATH": os.environ["PATH"]}
    async with HttpListener(server.handler) as listener:

        async def run(*arguments):
            options = (f"--server=http://127.0.0.1:{listener.port}", *arguments)
            return await run_kubectl(program, options, variables=variables)

        yield run


async def test_certificate_approve_and_deny(raw, kubectl):
    for name, verb, condition in (("a", "approve", "Approved"), ("b", "deny", "Denied")):
        made = await raw.post(REQUESTS, request() | {"metadata": {"name": name}})
        assert made.code == 201, made.text
        assert made.body["spec"]["username"] == "system:admin"
        await kubectl("certificate", verb, name)
        stored = (await raw.get(f"{REQUESTS}/{name}")).body
        assert [one["type"] for one in stored["status"]["conditions"]] == [condition]


async def test_debug_adds_a_container(raw, kubectl):
    assert (await raw.post(PODS, POD)).code == 201
    await kubectl("debug", "p", "--image=example.com/debug", "--container=d", "--target=c")
    stored = (await raw.get(f"{PODS}/p")).body
    assert [(one["name"], one["targetContainerName"]) for one in stored["spec"]["ephemeralContainers"]] == [("d", "c")]
    assert stored["metadata"]["generation"] == 2


async def test_patch_of_resize_changes_resources(raw, kubectl):
    assert (await raw.post(PODS, POD)).code == 201
    change = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "200m"}}}]}}
    await kubectl("patch", "pod", "p", "--subresource=resize", "-p", json.dumps(change))
    stored = (await raw.get(f"{PODS}/p")).body
    assert stored["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "200m", "memory": "64Mi"}
