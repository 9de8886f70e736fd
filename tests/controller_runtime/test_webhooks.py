"""controller-runtime's webhook server, called by the embedded server and by the engine, with the same results."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.contenders.preparing import BENCH, go_program
from bench.contenders.steersman_shops import OldShop, Shop, manager, shop_checks, shop_defaults
from samples.ports import free_port
from samples.raw_api import MERGE, RawApi, raw_api
from steersman import Client
from steersman.aio import name_suffix
from steersman.controlplane import ControlPlane
from steersman.kinds.core_v1 import Namespace
from steersman.objects import Kind, ObjectMeta, Unstructured
from steersman.testing import Engine
from steersman.transport import CertificateIssuer
from steersman.webhooks import WebhookEndpoint, WebhookRegistration

CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
GROUP = Shop.gvk().group


def shop(name: str, **spec: Any) -> dict[str, Any]:
    whole = {"host": "a.example.com", "replicas": 2, "items": [{"name": "tea", "price": 3}], **spec}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Shop", "metadata": {"name": name}, "spec": whole}


def old_shop(name: str, **spec: Any) -> dict[str, Any]:
    whole = {"domain": "b.example.com", "count": 3, "items": [{"name": "milk", "price": "4"}], **spec}
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Shop", "metadata": {"name": name}, "spec": whole}


#: Method, version, path below the shops, and body; in this order.
STEPS: tuple[tuple[str, str, str, Any], ...] = (
    ("POST", "v1", "", shop("plain")),
    ("POST", "v1", "", shop("single", replicas=1, image="httpd:2.4")),
    ("POST", "v1", "", shop("large", replicas=99, items=[{"name": "tea", "price": 1}, {"name": "ink", "price": -1}])),
    ("POST", "v1", "", shop("mistyped", replicas="two")),
    ("POST", "v1", "?dryRun=All", shop("dry")),
    ("POST", "v1", "", shop("guarded", protected=True)),
    ("DELETE", "v1", "/guarded", None),
    ("PATCH", "v1", "/plain", {"spec": {"host": "other.example.com"}}),
    ("PATCH", "v1", "/plain", {"spec": {"replicas": 4, "image": None}}),
    ("GET", "v1alpha1", "/plain", None),
    ("GET", "v1alpha1", "", None),
    ("POST", "v1alpha1", "", old_shop("old")),
    ("POST", "v1alpha1", "", old_shop("old-large", count=51)),
    ("POST", "v1alpha1", "", old_shop("broken", items=[{"name": "milk", "price": "four"}])),
    ("PATCH", "v1alpha1", "/old", {"spec": {"count": 1}, "metadata": {"labels": {"a": "b"}}}),
    ("GET", "v1", "/old", None),
    ("DELETE", "v1alpha1", "/old", None),
    ("DELETE", "v1", "/plain", None),
    ("GET", "v1", "", None),
)


@asynccontextmanager
async def webhook_program(kubeconfig: Path, folder: Path) -> AsyncIterator[tuple[str, bytes]]:
    """The Go program on a port; gives its address and the authority of its certificate."""
    program = await asyncio.to_thread(go_program, BENCH / "controller_runtime_webhooks", "shops")
    issuer, port = CertificateIssuer.create(), free_port()
    pair = issuer.server(("127.0.0.1",))
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)
    with (folder / "program.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(str(program), "-port", str(port), "-certificates", str(folder)),
            env=os.environ | {"KUBECONFIG": str(kubeconfig)},
            stdout=log,
            stderr=log,
        )
    try:
        async with asyncio.timeout(60):
            while not await _accepts(port):
                assert process.returncode is None, (folder / "program.log").read_text()
                await asyncio.sleep(0.05)
        yield f"https://127.0.0.1:{port}", issuer.certificate
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _accepts(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


@asynccontextmanager
async def registered(client: Client, namespace: str, address: str, authority: bytes) -> AsyncIterator[None]:
    """The kind with its conversion, and the webhooks of one namespace."""
    hooks = (shop_defaults, shop_checks)
    endpoint = WebhookEndpoint()
    made = WebhookRegistration(hooks, endpoint, name=namespace, address=address, ca_bundle=authority)
    conversion = WebhookRegistration(
        manager.webhooks.hooks, endpoint, name=namespace, address=address, ca_bundle=authority
    ).conversion()
    await client.install(Shop, OldShop)
    definition = await client.get(CRD, f"shops.{GROUP}")
    definition["spec"]["conversion"] = conversion
    await client.update(definition)
    for tree in made.configurations():
        for webhook in tree["webhooks"]:
            webhook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        await client.create(Unstructured(tree))
    try:
        yield
    finally:
        for tree in made.configurations():
            await client.delete(Kind(tree["apiVersion"], tree["kind"]), namespace)
        await client.delete(CRD, f"shops.{GROUP}")


async def until_called(api: RawApi, shops: str) -> None:
    """Wait until the server calls the webhooks and the converter: it reads registrations after a moment."""
    async with asyncio.timeout(60):
        while (await api.send("POST", f"{shops}?dryRun=All", shop("probe", replicas=99))).code != 422:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        while True:
            answer = await api.send("POST", f"{shops}?dryRun=All", shop("probe"))
            old = await api.send("POST", f"{shops.replace('/v1/', '/v1alpha1/')}?dryRun=All", old_shop("probe"))
            if answer.code == old.code == 201 and "image" in answer.body["spec"] and "image" in old.body["spec"]:
                return
            await asyncio.sleep(0.05)


async def played(kubeconfig: Path, folder: Path) -> list[Any]:
    """The answers of a server to all steps, without what every server makes up."""
    await asyncio.to_thread(folder.mkdir)
    namespace = f"shops-{name_suffix()}"
    found: list[Any] = []
    async with (
        Client.connect(kubeconfig=kubeconfig, field_manager="tests") as client,
        raw_api(kubeconfig) as api,
        webhook_program(kubeconfig, folder) as (address, authority),
    ):
        await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
        async with registered(client, namespace, address, authority):
            await until_called(api, f"/apis/{GROUP}/v1/namespaces/{namespace}/shops")
            for method, version, path, body in STEPS:
                target = f"/apis/{GROUP}/{version}/namespaces/{namespace}/shops{path}"
                answer = await api.send(
                    method, target, body, content_type=MERGE if method == "PATCH" else "application/json"
                )
                text = json.dumps(_steady(answer.body)).replace(namespace, "NAMESPACE").replace(address, "ADDRESS")
                found.append((f"{method} {version}{path}", answer.code, answer.warnings, json.loads(text)))
    return found


def _steady(value: Any) -> Any:
    """The value without uids, times and versions."""
    if isinstance(value, dict):
        made_up = {"uid", "resourceVersion", "creationTimestamp", "time"}
        return {name: _steady(each) for name, each in value.items() if name not in made_up}
    if isinstance(value, list):
        return [_steady(each) for each in value]
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID", value) if isinstance(value, str) else value


@pytest.mark.slow
async def test_the_webhook_server_of_controller_runtime(engine: Engine, tmp_path: Path):
    """Defaults, checks, warnings and conversions of a Go operator are those that it has on Kubernetes."""
    expected = await played(engine.kubeconfig, tmp_path / "engine")
    async with ControlPlane(port=0, authorizer="rbac", kubeconfig=tmp_path / "kubeconfig") as plane:
        assert plane.kubeconfig is not None
        assert await played(plane.kubeconfig, tmp_path / "embedded") == expected
    codes = {label: code for label, code, *_ in expected}
    assert codes["POST v1"] == 201
    assert codes["DELETE v1/guarded"] == 403
    assert codes["GET v1alpha1"] == 200
