"""The server calls webhooks: in this process, at a Service, or with a program's own function; and no answer can harm it."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from samples.embedded import Raw
from steersman.apiserver import ApiServer, Authority, CallFailed, WebhookTarget
from steersman.apiserver.webhooks.https_calls import NESTED_MAX, WebhookCalls
from steersman.transport import HttpListener, ServerResponse, ServerTls

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
MAPS = "/api/v1/namespaces/default/configmaps"
RULE = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}


def hook(path: str = "/", *, kind: str = "Validating", client: dict | None = None, **more) -> dict:
    told = {"name": "one.example.com", "rules": [RULE], "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    told["clientConfig"] = client or {"service": {"namespace": "default", "name": "hooks", "path": path}}
    return {
        "kind": f"{kind}WebhookConfiguration",
        "apiVersion": "admissionregistration.k8s.io/v1",
        "metadata": {"name": kind.lower()},
        "webhooks": [told | more],
    }


async def install(raw: Raw, configuration: dict) -> None:
    kind = configuration["kind"].removesuffix("WebhookConfiguration").lower()
    answer = await raw.post(CONFIGURATIONS.format(kind), configuration)
    assert answer.code == 201, answer.text


def review(body: bytes, **response) -> bytes:
    uid = json.loads(body)["request"]["uid"]
    told = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
    return json.dumps(told | {"response": {"uid": uid, "allowed": True} | response}).encode()


def configmap(name: str = "a") -> dict:
    return {"metadata": {"name": name}, "data": {"key": "value"}}


async def test_a_service_is_answered_in_this_process():
    async def answer(path: str, body: bytes) -> bytes:
        if path == "/deny":
            return review(body, allowed=False, status={"message": "not today"})
        patch = base64.b64encode(b'[{"op": "add", "path": "/data/more", "value": "x"}]').decode()
        return review(body, patch=patch, patchType="JSONPatch", warnings=["changed"])

    async with ApiServer() as server:
        raw = Raw(server.handler)
        server.webhooks.answer_in_process("default", "hooks", answer)
        await install(raw, hook("/patch", kind="Mutating"))
        made = await raw.post(MAPS, configmap())
        assert (made.code, made.body["data"]) == (201, {"key": "value", "more": "x"})
        assert "changed" in made.headers["Warning"]
        await install(raw, hook("/deny"))
        refused = await raw.post(MAPS, configmap("b"))
        message = 'admission webhook "one.example.com" denied the request: not today'
        assert (refused.code, refused.body["message"]) == (400, message)
        server.webhooks.answer_in_process("default", "hooks", None)
        assert (await raw.post(MAPS, configmap("b"))).code == 500


@pytest.mark.parametrize("failure", [CallFailed("it is closed"), RuntimeError("it is closed"), OSError("it is closed")])
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_a_caller_that_fails_counts_as_a_failed_call(failure, policy):
    async def call(target, body, *, timeout):  # noqa: ASYNC109
        assert (target.service.name, timeout) == ("hooks", 10)
        raise failure

    async with ApiServer(webhook_caller=call) as server:
        raw = Raw(server.handler)
        await install(raw, hook(failurePolicy=policy))
        answer = await raw.post(MAPS, configmap())
        assert answer.code == (500 if policy == "Fail" else 201)
        if policy == "Fail":
            told = 'failed calling webhook "one.example.com": failed to call webhook: it is closed'
            assert answer.body["message"] == f"Internal error occurred: {told}"


def patch(text: bytes) -> dict:
    return {"patch": base64.b64encode(text).decode(), "patchType": "JSONPatch"}


@pytest.mark.parametrize(
    ("response", "message"),
    [
        ({"warnings": ["a", 5]}, "cannot unmarshal number into Go struct field AdmissionResponse.response.warnings"),
        ({"auditAnnotations": {"a": {}}}, "AdmissionResponse.response.auditAnnotations of type string"),
        ({"allowed": False, "status": {"code": 2**70}}, "Status.response.status.code of type int32"),
        (patch(b"[" * 100_000), "received undecodable patch in webhook response"),
        (patch(b'[{"op":"add","path":"/data/x","value":' + b"[" * 5_000), "received undecodable patch"),
    ],
)
async def test_a_wrong_response_is_a_failed_call(response, message):
    """The failure policy decides about it."""

    async def call(target, body, *, timeout):  # noqa: ASYNC109
        return review(body, **response)

    async with ApiServer(webhook_caller=call) as server:
        raw = Raw(server.handler)
        await install(raw, hook(kind="Mutating"))
        answer = await raw.post(MAPS, configmap())
        assert answer.code == 500
        assert answer.body["message"].startswith('Internal error occurred: failed calling webhook "one.example.com": ')
        assert message in answer.body["message"]
        await raw.delete(CONFIGURATIONS.format("mutating") + "/mutating")
        await install(raw, hook(kind="Mutating", failurePolicy="Ignore"))
        assert (await raw.post(MAPS, configmap())).code == 201


@pytest.mark.parametrize("answered", [None, "text"])
async def test_a_caller_without_bytes_is_a_failed_call(answered):
    async def call(target, body, *, timeout):  # noqa: ASYNC109
        return answered

    async with ApiServer(webhook_caller=call) as server:
        raw = Raw(server.handler)
        await install(raw, hook(failurePolicy="Ignore"))
        assert (await raw.post(MAPS, configmap())).code == 201


async def test_odd_responses_have_an_answer():
    response = {"warnings": [None, "careful"], "auditAnnotations": {"a": None}}

    async def call(target, body, *, timeout):  # noqa: ASYNC109
        return review(body, **response)

    async with ApiServer(webhook_caller=call) as server:
        raw = Raw(server.handler)
        await install(raw, hook(kind="Mutating"))
        made = await raw.post(MAPS, configmap())
        assert made.code == 201
        assert "careful" in made.headers["Warning"]
        response = {"allowed": False, "status": {"code": 99999, "message": "no"}}
        assert (await raw.post(MAPS, configmap("b"))).code == 500
        added = b'{"op":"add","path":"/metadata/finalizers","value":[]}'
        for index in (b"9" * 5_000, "²".encode()):
            more = b'{"op":"add","path":"/metadata/finalizers/%b","value":"x"}' % index
            response = patch(b"[%b,%b]" % (added, more))
            answer = await raw.post(MAPS, configmap("b"))
            assert "error in add for path" in answer.body["message"]


async def test_a_webhook_that_calls_itself_fails():
    calls = 0

    async def answer(path: str, body: bytes) -> bytes:
        nonlocal calls
        calls += 1
        made = await raw.post(MAPS, configmap(f"copy-{calls}"))
        return review(body, allowed=made.code == 201, status={"message": made.body.get("message", "")})

    async with ApiServer() as server:
        raw = Raw(server.handler)
        server.webhooks.answer_in_process("default", "hooks", answer)
        await install(raw, hook(timeoutSeconds=30))
        refused = await raw.post(MAPS, configmap())
        assert refused.code == 400
        assert "does one call itself?" in refused.body["message"]
        assert calls == NESTED_MAX
        calls = 0
        await raw.post(MAPS, configmap())
        assert calls == NESTED_MAX


async def test_annotations_reach_the_audit():
    events = []

    async def call(target, body, *, timeout):  # noqa: ASYNC109
        return review(body, auditAnnotations={"seen": "yes"})

    async with ApiServer(webhook_caller=call, audit=events.append) as server:
        raw = Raw(server.handler)
        await install(raw, hook(kind="Mutating"))
        await raw.post(MAPS, configmap())
        told = events[-1]["annotations"]
        assert told["one.example.com/seen"] == "yes"
        mutated = {"configuration": "mutating", "webhook": "one.example.com", "mutated": False}
        assert json.loads(told["mutation.webhook.admission.k8s.io/round_0_index_0"]) == mutated


async def test_the_audit_lists_the_failures_of_all_policies():
    """The annotation of the first one alone would hide the others."""
    events, api = [], "admissionregistration.k8s.io/v1"
    async with ApiServer(audit=events.append) as server:
        raw = Raw(server.handler)
        for name in ("one", "two"):
            checks = [{"expression": "object.metadata.name != 'a'", "message": name}]
            spec = {"matchConstraints": {"resourceRules": [RULE]}, "validations": checks}
            policy = {"kind": "ValidatingAdmissionPolicy", "apiVersion": api, "metadata": {"name": name}, "spec": spec}
            bound = {"policyName": name, "validationActions": ["Audit"]}
            binding = {"kind": "ValidatingAdmissionPolicyBinding", "apiVersion": api, "metadata": {"name": name}}
            assert (await raw.post(f"/apis/{api}/validatingadmissionpolicies", policy)).code == 201
            assert (
                await raw.post(f"/apis/{api}/validatingadmissionpolicybindings", binding | {"spec": bound})
            ).code == 201
        assert (await raw.post(MAPS, configmap())).code == 201
    noted = json.loads(events[-1]["annotations"]["validation.policy.admission.k8s.io/validation_failure"])
    assert [(each["policy"], each["message"]) for each in noted] == [("one", "one"), ("two", "two")]


@asynccontextmanager
async def listening(tmp_path, handle, host: str = "127.0.0.1"):
    authority = Authority(tmp_path / "authority")
    pair = authority.server(host)
    tls = ServerTls(certificate_data=pair.certificate, key_data=pair.key)
    async with HttpListener(handle, tls=tls) as listener:
        yield listener.port, base64.b64encode(authority.certificate).decode()


async def test_a_service_is_found_by_a_resolver_or_by_its_endpoints(tmp_path):
    async def handle(request):
        return ServerResponse(status=200, body=review(request.body, allowed=False, status={"code": 418}))

    async def resolve(namespace: str, name: str, port: int) -> tuple[str, int]:
        assert (namespace, name, port) == ("default", "hooks", 443)
        return "127.0.0.1", served

    async with listening(tmp_path, handle, "hooks.default.svc") as (served, bundle):
        client = {"service": {"namespace": "default", "name": "hooks"}, "caBundle": bundle}
        async with ApiServer(webhook_resolver=resolve) as server:
            raw = Raw(server.handler)
            await install(raw, hook(client=client))
            assert (await raw.post(MAPS, configmap())).code == 418
        async with ApiServer() as server:
            raw = Raw(server.handler)
            await install(raw, hook(client=client))
            missing = await raw.post(MAPS, configmap())
            assert 'service "hooks" not found' in missing.body["message"]
            ports = [{"name": "https", "port": 443}]
            service = {"metadata": {"name": "hooks"}, "spec": {"ports": ports}}
            assert (await raw.post("/api/v1/namespaces/default/services", service)).code == 201
            assert "no endpoints available" in (await raw.post(MAPS, configmap())).body["message"]
            endpoints = {
                "metadata": {"name": "hooks-1", "labels": {"kubernetes.io/service-name": "hooks"}},
                "addressType": "IPv4",
                "endpoints": [{"addresses": ["10.0.0.1"]}],
                "ports": [{"name": "https", "port": served, "protocol": "TCP"}],
            }
            path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
            assert (await raw.post(path, endpoints)).code == 201
            # no slice may have an address of loopback, where the webhook of this test listens
            key = "discovery.k8s.io/endpointslices/default/hooks-1"
            stored, _ = await server.storage.get(key)
            value = stored.value.replace(b"10.0.0.1", b"127.0.0.1")
            await server.storage.put(key, value, expect=stored.modified)
            assert (await raw.post(MAPS, configmap())).code == 418


HOSTILE = {
    "/long": (ServerResponse(status=200, body=b" " * (4 * 1024 * 1024)), "longer than"),
    "/deep": (ServerResponse(status=200, body=b'{"response":' + b"[" * 200_000), "json parse error"),
    "/text": (ServerResponse(status=200, body=b'{"response": "\xff\xfe"}'), "failed to call webhook"),
    "/redirect": (ServerResponse(status=307, headers=(("Location", "https://127.0.0.1:1/"),)), "the status code 307"),
    "/names": (ServerResponse(status=200, body=b'{"response":{' + b'"a":1,' * 100_000 + b'"uid":1}}'), "unmarshal"),
}


@pytest.mark.parametrize("path", HOSTILE)
async def test_a_hostile_answer_is_a_failed_call(tmp_path, path):
    async def handle(request):
        await asyncio.sleep(0)
        return HOSTILE[request.path][0]

    async with listening(tmp_path, handle) as (port, bundle), ApiServer() as server:
        raw = Raw(server.handler)
        client = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
        await install(raw, hook(client=client))
        answer = await raw.post(MAPS, configmap())
        assert answer.code == 500
        assert HOSTILE[path][1] in answer.body["message"], answer.body["message"]
        await raw.delete(CONFIGURATIONS.format("validating") + "/validating")
        assert (await raw.post(MAPS, configmap())).code == 201


async def test_a_call_in_progress_survives_many_other_webhooks(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """Only the connections of some webhooks are kept; those of a call end after it."""
    monkeypatch.setattr("steersman.apiserver.webhooks.https_calls.CLIENTS_MAX", 1)
    begun, release = asyncio.Event(), asyncio.Event()

    async def handle(request):
        if request.path == "/slow":
            begun.set()
            await release.wait()
        return ServerResponse(status=200, body=b"answered")

    async with (
        listening(tmp_path / "a", handle) as (port, bundle),
        listening(tmp_path / "b", handle) as (other_port, other_bundle),
        AsyncExitStack() as stack,
    ):
        calls = WebhookCalls(resolver=None)  # type: ignore[arg-type]
        stack.push_async_callback(calls.close)
        slow = WebhookTarget(url=f"https://127.0.0.1:{port}/slow", ca_bundle=base64.b64decode(bundle))
        other = WebhookTarget(url=f"https://127.0.0.1:{other_port}/", ca_bundle=base64.b64decode(other_bundle))
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(calls(slow, b"{}", timeout=30))
            await begun.wait()
            assert await calls(other, b"{}", timeout=30) == b"answered"
            release.set()
        assert answer.result() == b"answered"
        assert await calls(slow, b"{}", timeout=30) == b"answered"


async def test_a_request_ends_at_its_own_timeout():
    async def call(target, body, *, timeout):  # noqa: ASYNC109
        assert timeout == 0.05
        raise CallFailed("context deadline exceeded")

    async with ApiServer(webhook_caller=call) as server:
        raw = Raw(server.handler)
        await install(raw, hook())
        assert (await raw.post(f"{MAPS}?timeout=50ms", configmap())).code == 504
