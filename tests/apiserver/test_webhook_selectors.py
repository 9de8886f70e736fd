"""Webhook configurations of earlier versions, with values in selectors that are not valid any more: they can be updated."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from steersman import Kind, Unstructured
from steersman.apiserver import ApiServer
from steersman.client import Client
from steersman.errors import ApiError, Invalid
from steersman.patches import JsonPatch, json_patch

CONFIGURATIONS = Kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
#: Of one length, since the stored object has the length beside the value.
VALID, INVALID = "valid-here", "not valid!"
SELECTOR = "/webhooks/0/namespaceSelector"


def configuration(name: str) -> Unstructured:
    """A configuration that no request matches."""
    hook = {
        "name": "a.b.c",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://localhost/x"},
        "rules": [{"operations": ["*"], "apiGroups": ["no.such.group"], "apiVersions": ["*"], "resources": ["*"]}],
        "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": [VALID]}]},
    }
    head = {"apiVersion": CONFIGURATIONS.api_version, "kind": CONFIGURATIONS.kind, "metadata": {"name": name}}
    return Unstructured({**head, "webhooks": [hook]})


async def invalidate_in_etcd(engine: Any, name: str) -> None:
    key = base64.b64encode(f"/registry/validatingwebhookconfigurations/{name}".encode()).decode()
    cluster = engine._own("etcd")
    found = await engine._thread.call(cluster._ask_etcd("/v3/kv/range", {"key": key}))
    stored = base64.b64decode(found["kvs"][0]["value"])
    assert VALID.encode() in stored
    value = base64.b64encode(stored.replace(VALID.encode(), INVALID.encode())).decode()
    await engine._thread.call(cluster._ask_etcd("/v3/kv/put", {"key": key, "value": value}))


async def invalidate(server: ApiServer, name: str) -> None:
    key = f"admissionregistration.k8s.io/validatingwebhookconfigurations/{name}"
    record, _ = await server.storage.get(key)
    assert record is not None
    await server.storage.put(key, record.value.replace(VALID.encode(), INVALID.encode()), expect=record.modified)


async def answers(client: Client, name: str) -> list[str]:
    """What the server says of updates of a configuration with an invalid value."""
    found: list[str] = []
    for path, value in (
        ("/metadata/labels", {"a": "b"}),
        (f"{SELECTOR}/matchExpressions/0/values", [INVALID, "another!"]),
        ("/webhooks/0/objectSelector", {"matchExpressions": [{"key": "b", "operator": "In", "values": ["third!"]}]}),
        (f"{SELECTOR}/matchExpressions/0/key", "not a key"),
        (f"{SELECTOR}/matchLabels", {"a": "not valid!"}),
        (f"{SELECTOR}/matchExpressions/0/values", ["valid"]),
        ("/webhooks/0/objectSelector", {}),
        (f"{SELECTOR}/matchExpressions/0/values", [INVALID]),
    ):
        try:
            await client.patch(CONFIGURATIONS, name, JsonPatch.of(json_patch.add(path, value)))
            found.append("stored")
        except Invalid as error:
            found.append(", ".join(sorted(str(cause) for cause in error.causes)))
        except ApiError as error:
            found.append(str(error))
    return found


async def test_an_update_may_keep_invalid_values_as_on_the_engine(engine: Any) -> None:
    """Without it, such a configuration could only be deleted; and a valid one must not become invalid."""
    name = "invalid-selectors"
    async with engine.client() as client:
        await client.create(configuration(name))
        try:
            await invalidate_in_etcd(engine, name)
            expected = await answers(client, name)
        finally:
            await client.delete(CONFIGURATIONS, name)
    assert [each == "stored" for each in expected] == [True, True, True, False, False, True, True, False]
    async with ApiServer() as server:
        client = Client(server.transport())
        await client.create(configuration(name))
        with pytest.raises(Invalid):
            await client.patch(
                CONFIGURATIONS,
                name,
                JsonPatch.of(json_patch.add(f"{SELECTOR}/matchExpressions/0/values", [INVALID])),
            )
        await invalidate(server, name)
        assert await answers(client, name) == expected
