"""Webhooks on kube-apiserver at length: random conversions, renewed certificates under load, and a killed replica.

``--log-cli-level=INFO`` shows the rates that the requests reached.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random  # noqa: TID251 - seeded
from typing import Any

import pytest
from webhooks.balancer import Balancer, paced
from webhooks.replica import shop_defaults

from samples.eventually import eventually
from samples.portions import count, seed_of
from samples.ports import free_port
from samples.random_shops import random_old_shop, random_shop
from samples.shops import OldShopSpec, Shop, ShopSpec, ShopStatus, downgraded_spec, upgraded_spec
from steersman import Client, ObjectMeta, Resource
from steersman.errors import InternalError, NotFound
from steersman.kinds.admissionregistration_v1 import MutatingWebhookConfiguration
from steersman.kinds.core_v1 import Secret
from steersman.objects import Kind, Unstructured
from steersman.schemas import crd_for
from steersman.webhooks import VersionConverter, WebhookEndpoint, WebhookServer, serve_webhooks

_log = logging.getLogger(__name__)

TESTS = Path(__file__).parents[1]


def new_shop(name: str) -> Shop:
    return Shop(metadata=ObjectMeta(name=name), spec=ShopSpec(host="a"))


@pytest.fixture
async def shops(api_server: Any, namespace: str) -> AsyncIterator[Client]:
    """A client in a namespace of its own; at the end, no registration is left."""
    async with api_server.client(field_manager="tests", namespace=namespace) as client:
        await client.install(Shop, replace=True)  # another test may have left a second version
        yield client
        name = f"shops-{namespace}"
        for kind, key in ((MutatingWebhookConfiguration, name), (Secret, f"default/{name}-webhooks-tls")):
            with suppress(NotFound):
                await client.delete(kind, key)


async def until_called(client: Client) -> None:
    """Wait until the API server calls the webhook."""
    async with asyncio.timeout(60):
        while not await _is_called(client):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def _is_called(client: Client) -> bool:
    try:
        return (await client.create(new_shop("probe"), dry_run=True)).spec.image == "nginx"
    except InternalError:
        return False  # no replica answers yet


async def test_certificates_are_renewed_under_load(shops: Client, namespace: str):
    """200 requests a second while the certificate changes several times a second: every one is admitted."""
    endpoint = WebhookEndpoint(port=0, install=True)
    async with serve_webhooks(WebhookServer([shop_defaults]), endpoint, shops, name=f"shops-{namespace}") as served:
        await until_called(shops)
        certificates = {served.certificates.current().certificate_data}
        done = asyncio.Event()

        async def renew() -> None:
            while not done.is_set():
                await served.certificates.refresh(force=True)
                certificates.add(served.certificates.current().certificate_data)
                await asyncio.sleep(0.2)

        async def create(number: int) -> None:
            assert (await shops.create(new_shop(f"shop-{number}"), dry_run=True)).spec.image == "nginx"

        async with asyncio.TaskGroup() as group:
            group.create_task(renew())
            reached = await paced(count(sample=400, of=12_000), create)
            done.set()
        _log.info("renewed certificates: requests: %s; none failed; %d certificates", reached, len(certificates))
        assert len(certificates) > 3


@asynccontextmanager
async def replicas(name: str, ports: list[int], url: str, kubeconfig: Path) -> AsyncIterator[list[Any]]:
    """The same operator several times, as processes."""
    environment = os.environ | {"KUBECONFIG": str(kubeconfig), "PYTHONPATH": str(TESTS)}
    program = str(Path(__file__).with_name("replica.py"))
    started: list[asyncio.subprocess.Process] = []
    try:
        for port in ports:
            command = (sys.executable, program, name, str(port), url)
            process = await asyncio.create_subprocess_exec(*command, env=environment, stdin=asyncio.subprocess.PIPE)
            started.append(process)
        yield started
    finally:
        for each in started:
            if each.returncode is None:
                each.kill()
            await each.wait()


async def test_a_killed_replica_refuses_nothing(shops: Client, namespace: str, api_server: Any):
    """One of two replicas is killed under 200 requests a second.

    The API server calls the replicas through a TCP balancer, at a `url`: the engine has no network of Services. It
    repeats no call, so the calls that the killed replica was answering fail, at most one for each of its connections.
    The client repeats those requests. No request is denied, and no later call fails.
    """
    name, port, ports = f"shops-{namespace}", free_port(), [free_port(), free_port()]
    balancer = Balancer(ports)
    failed: list[str] = []
    requests = count(sample=400, of=12_000)
    async with (
        balancer.listening(port),
        replicas(name, ports, f"https://127.0.0.1:{port}", api_server.kubeconfig) as processes,
    ):
        await until_called(shops)
        async with asyncio.timeout(60):
            while not all([await _accepts(each) for each in ports]):  # noqa: ASYNC110
                await asyncio.sleep(0.05)

        async def create(number: int) -> None:
            if number == requests // 2:
                processes[0].send_signal(signal.SIGKILL)
            for _ in range(5):
                try:
                    made = await shops.create(new_shop(f"shop-{number}"), dry_run=True)
                except InternalError as error:
                    failed.append(str(error))
                    continue
                assert made.spec.image == "nginx"
                return
            raise AssertionError(failed)

        reached = await paced(requests, create)
        _log.info("a killed replica: requests: %s; none denied; %d repeated", reached, len(failed))
        assert processes[0].returncode is not None or await processes[0].wait()
        assert balancer.connections[ports[0]] > 0
        assert balancer.connections[ports[1]] > 0
        assert all("failed calling webhook" in each for each in failed), failed
        assert len(failed) <= balancer.connections[ports[0]], failed


async def _accepts(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def loose_kinds(group: str) -> tuple[dict[str, Any], VersionConverter[Any, Any]]:
    """A CRD that keeps undeclared fields, and the converter between its versions."""

    class New(Resource[ShopSpec, ShopStatus], group=group, version="v1", kind="Shop", plural="shops", storage=True):
        """A shop."""

    class Old(
        Resource[OldShopSpec, ShopStatus], group=group, version="v1alpha1", kind="Shop", plural="shops", storage=False
    ):
        """A shop as it was before."""

    def up(old: Old) -> New:
        return New(metadata=old.metadata, spec=upgraded_spec(old.spec), status=old.status)

    def down(new: New) -> Old:
        return Old(metadata=new.metadata, spec=downgraded_spec(new.spec), status=new.status)

    tree = crd_for(New, Old)
    for version in tree["spec"]["versions"]:
        _keep_undeclared(version["schema"]["openAPIV3Schema"])
    return tree, VersionConverter(Old, New, to_hub=up, to_spoke=down)


def _keep_undeclared(schema: dict[str, Any]) -> None:
    if "properties" in schema:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    for name, each in schema.get("properties", {}).items():
        if name != "metadata":
            _keep_undeclared(each)
    if "items" in schema:
        _keep_undeclared(schema["items"])


def content(tree: Any) -> dict[str, Any]:
    """All fields of an object except those that the server sets."""
    whole = tree.tree if isinstance(tree, Unstructured) else tree
    metadata = {name: value for name, value in whole["metadata"].items() if name in {"labels", "annotations"}}
    return whole | {"metadata": metadata}


@pytest.mark.slow
async def test_random_conversions_lose_no_field(api_server: Any, namespace: str, crd_group: str):
    """Objects of either version are read and written in the other one, and are still the same."""
    definition, converter = loose_kinds(crd_group)
    new, old = Kind(f"{crd_group}/v1", "Shop"), Kind(f"{crd_group}/v1alpha1", "Shop")
    seed = seed_of("conversions on the engine")
    async with api_server.client(field_manager="tests", namespace=namespace) as client:
        await client.create(Unstructured(definition))
        endpoint = WebhookEndpoint(port=0)
        server = WebhookServer([converter])
        async with serve_webhooks(server, endpoint, client, name=f"shops-{namespace}") as served:
            await eventually(lambda: served.registered)
            await _until_converted(client, new, old)

            async def trip(number: int) -> None:
                random = Random(f"{seed}/{number}")
                given = random_shop(random)
                given.pop("status", None)
                given["spec"] = {"replicas": 1} | given["spec"]  # the default of the schema
                await round_trip(f"new-{number}", given, new, old)
                given = random_old_shop(random)
                await round_trip(f"old-{number}", given, old, new)

            async def round_trip(name: str, given: dict[str, Any], mine: Kind, other: Kind) -> None:
                given = given | {"apiVersion": mine.api_version, "metadata": {"name": name}}
                wanted = content(given)
                assert content(await client.create(Unstructured(given))) == wanted
                converted = await client.get(other, name)
                assert converted["apiVersion"] == other.api_version
                await client.update(converted)
                assert content(await client.get(mine, name)) == wanted

            reached = await paced(count(sample=40, of=10_000), trip)
            _log.info("random conversions: round trips of both versions: %s; no field lost", reached)


async def _until_converted(client: Client, new: Kind, old: Kind) -> None:
    """Wait until the server serves both versions and calls the converter."""
    async with asyncio.timeout(60):
        while True:
            try:
                probe = {"apiVersion": new.api_version, "kind": "Shop", "metadata": {"name": "probe"}}
                await client.create(Unstructured(probe | {"spec": {"host": "a"}}), dry_run=True)
                break
            except NotFound:
                await asyncio.sleep(0.05)
        await client.create(Unstructured(probe | {"spec": {"host": "a"}}))
        while "domain" not in (await client.get(old, "probe"))["spec"]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
