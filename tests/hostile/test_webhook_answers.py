"""Hostile answers of webhooks: the server that called them ends each in bounded time, and goes on answering others."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hostile.loop_gauge import LoopGauge

from samples.embedded import Raw
from samples.eventually import eventually
from steersman.apiserver import ApiServer, Authority
from steersman.apiserver.workers import LARGE
from steersman.transport import HttpListener, ServerResponse, ServerTls

MAPS = "/api/v1/namespaces/default/configmaps"
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
#: Seconds of CPU for which an answer may block other requests.
BLOCKED_MAX = 1.0
MIB = 1024 * 1024


def webhook(**client: Any) -> dict[str, Any]:
    rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    hook = {"name": "one.example.com", "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    hook |= {"clientConfig": client, "timeoutSeconds": 2}
    return {"metadata": {"name": "one"}, "webhooks": [hook]}


def copies(number: int, source: str = "/data", target: str = "/data/x{}") -> list[dict[str, str]]:
    return [{"op": "copy", "from": source, "path": target.format(at)} for at in range(number)]


NESTED = [{"op": "add", "path": "/data" + "/a" * depth, "value": {}} for depth in range(1, 150)]

#: The operations of a patch, and the words of the rejection.
PATCHES: dict[str, tuple[Any, str]] = {
    "copies that double": (copies(64), "Unable to complete the copy, the accumulated size increase of copy is"),
    "copies that double lists": (
        [{"op": "add", "path": "/data/x", "value": [[]]}, *copies(64, "/data/x", "/data/x/-")],
        "Unable to complete the copy",
    ),
    "copies of nothing": (
        [{"op": "add", "path": "/data/x", "value": [[]] * 1_000}, *copies(1_500, "/data/x", "/data/y{}")],
        "Unable to complete the copy",
    ),
    "copies up to the limit": (copies(16), ""),
    "copies into a copy": ([*NESTED, *copies(190, "/data/a", "/data" + "/a" * 150 + "/x{}")], ""),
    "many operations": ([{"op": "add", "path": f"/data/x{at}", "value": "y"} for at in range(40_000)], ""),
    "many operations and a mistake": (
        [*({"op": "add", "path": f"/data/x{at}", "value": "y"} for at in range(40_000)), {"op": "remove", "path": "/a"}],
        "Unable to remove nonexistent key: a",
    ),
    "tests of everything": ([{"op": "test", "path": "/data/key", "value": "value"}] * 30_000, ""),
    "moves to the front": (
        [
            {"op": "add", "path": "/metadata/finalizers", "value": ["a.b/c"] * 50_000},
            *[{"op": "move", "from": "/metadata/finalizers/49999", "path": "/metadata/finalizers/0"}] * 9_000,
        ],
        "",
    ),
    "a list as the operation": ([{"op": [], "path": "/a"}], "Unexpected kind: unknown"),
    "an object as the operation": ([{"op": {}, "path": "/a", "value": 1}], "Unexpected kind: unknown"),
    "a number as the path": ([{"op": "add", "path": 7, "value": 1}], ""),
}  # fmt: skip


@pytest.mark.parametrize("name", PATCHES)
async def test_a_patch_ends_in_time(name: str):
    """A short answer could make the server copy gigabytes, or the same bytes a thousand times."""
    operations, words = PATCHES[name]
    patch = base64.b64encode(json.dumps(operations).encode()).decode()

    async def call(_: Any, body: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109 - part of the call
        response = {
            "uid": json.loads(body)["request"]["uid"],
            "allowed": True,
            "patch": patch,
            "patchType": "JSONPatch",
        }
        return json.dumps(
            {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}
        ).encode()

    async with ApiServer(webhook_caller=call) as server:
        raw = Raw(server.handler)
        assert (await raw.post(HOOKS, webhook(url="https://127.0.0.1:1/"))).code == 201
        async with asyncio.timeout(60), LoopGauge() as gauge:
            answer = await raw.post(MAPS, {"metadata": {"name": "a"}, "data": {"key": "value"}})
        assert words in answer.body.get("message", ""), answer.body["message"][:500]
        assert gauge.blocked < BLOCKED_MAX
        assert gauge.memory < 300 * MIB
        assert (await raw.get(MAPS)).code == 200


async def test_a_patch_of_a_scale_ends_in_time():
    """The patch of a scale is short, as is the scale, but its copies are not."""
    operations = [{"op": "add", "path": "/spec/x", "value": [{}]}, *copies(64, "/spec/x", "/spec/x/-")]
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    deployment = {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    path = "/apis/apps/v1/namespaces/default/deployments"
    async with ApiServer() as server:
        raw = Raw(server.handler)
        assert (await raw.post(path, deployment)).code == 201
        turns = 0
        async with asyncio.TaskGroup() as group:
            patch = raw.patch(f"{path}/a/scale", operations, content_type="application/json-patch+json")
            patched = group.create_task(patch)
            while not patched.done():
                await asyncio.sleep(0)
                turns += 1
        assert patched.result().code == 422
        # without a worker thread, the copies take one turn, and the rest of the request about ten
        assert turns > 200


async def endless(piece: bytes, pause: float) -> AsyncIterator[bytes]:
    while True:
        yield piece
        await asyncio.sleep(pause)


ANSWERS: dict[str, tuple[Any, str]] = {
    "endless": (lambda: ServerResponse(status=200, body=endless(b" " * 65_536, 0)), "longer than"),
    "slow": (lambda: ServerResponse(status=200, body=endless(b" ", 0.01)), "context deadline exceeded"),
    "compressed": (
        lambda: ServerResponse(
            status=200, headers=(("Content-Encoding", "gzip"),), body=gzip.compress(b" " * (400 * MIB), 1)
        ),
        "failed to call webhook",
    ),
    "a redirect to itself": (lambda: ServerResponse(status=308, headers=(("Location", "/"),)), "the status code 308"),
    "a redirect without a place": (lambda: ServerResponse(status=301), "the status code 301"),
    "a long error": (
        lambda: ServerResponse(status=500, headers=(("Content-Type", "text/plain"),), body=b"x" * (2 * MIB)),
        "an error on the server",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_answer_ends_in_time(name: str, tmp_path: Any):
    make, words = ANSWERS[name]
    response = make()

    async def handle(_: Any) -> ServerResponse:
        return response

    authority = Authority(tmp_path / "authority")
    pair = authority.server("127.0.0.1")
    tls = ServerTls(certificate_data=pair.certificate, key_data=pair.key)
    async with HttpListener(handle, tls=tls, grace=0.1) as listener, ApiServer() as server:
        raw = Raw(server.handler)
        bundle = base64.b64encode(authority.certificate).decode()
        configuration = webhook(url=f"{listener.address}/", caBundle=bundle)
        assert (await raw.post(HOOKS, configuration)).code == 201
        async with asyncio.timeout(20), LoopGauge() as gauge:
            answer = await raw.post(MAPS, {"metadata": {"name": "a"}})
        assert answer.code == 500
        assert words in answer.body["message"], answer.body["message"][:500]
        assert len(answer.text) < 10_000
        assert gauge.blocked < BLOCKED_MAX
        assert gauge.memory < 300 * MIB
        assert (await raw.get(MAPS)).code == 200


#: Answers in YAML that are long, or whose tree would be large.
YAML_ANSWERS = {
    "long": b"a:\n" + b"- {a: b}\n" * 320_000,
    "dense": b"a: [" + b"[[[[[[[[[[]]]]]]]]]]," * 12_000 + b"]",
    "aliases": b"a: &a [" + b"x," * 90 + b"]\nb: &b [" + b"*a," * 90 + b"]\nc: &c [" + b"*b," * 90 + b"]\nd: [*c]\n",
}


@pytest.mark.parametrize("name", YAML_ANSWERS)
@pytest.mark.parametrize("policy", ["Ignore", "Fail"])
async def test_an_answer_in_yaml_that_cannot_be_read_is_a_failed_call(name: str, policy: str):
    """Its failurePolicy decides about the write, and others are answered meanwhile."""

    async def call(_: Any, body: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109 - part of the call
        return YAML_ANSWERS[name]

    configuration = webhook(url="https://127.0.0.1:1/")
    configuration["webhooks"][0]["failurePolicy"] = policy
    async with ApiServer(webhook_caller=call) as server:
        raw = Raw(server.handler)
        assert (await raw.post(HOOKS, configuration)).code == 201
        async with asyncio.timeout(60), LoopGauge() as gauge:
            answer = await raw.post(MAPS, {"metadata": {"name": "a"}})
        assert answer.code == (201 if policy == "Ignore" else 500), answer.body
        assert gauge.blocked < BLOCKED_MAX
        assert gauge.memory < 100 * MIB


async def test_reading_an_answer_is_part_of_the_time_of_a_webhook():
    """The worker threads may be busy: a write that ignores the webhook does not wait for them."""
    free, busy = threading.Event(), []

    def wait() -> None:
        busy.append(True)
        free.wait()

    async def call(_: Any, body: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109 - part of the call
        return b"a: " + b"x" * 40_000

    configuration = webhook(url="https://127.0.0.1:1/")
    configuration["webhooks"][0] |= {"failurePolicy": "Ignore", "timeoutSeconds": 1}
    async with ApiServer(webhook_caller=call) as server, asyncio.TaskGroup() as group:
        raw = Raw(server.handler)
        assert (await raw.post(HOOKS, configuration)).code == 201
        for _ in range(2):
            group.create_task(server.backend.workers.run(wait, size=LARGE))
        try:
            await eventually(lambda: len(busy) == 2)
            async with asyncio.timeout(20):
                answer = await raw.post(MAPS, {"metadata": {"name": "a"}})
        finally:
            free.set()
        assert answer.code == 201
