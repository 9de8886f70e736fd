"""The port of webhooks: TLS, bounded bodies, and only the clients it is meant for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from samples.eventually import eventually
from samples.shops import GROUP, OldShop, Shop, ShopSpec, admission, old_shops, shop
from steersman import ApiServer, Client, Context, Done, Manager, MergePatch, ObjectMeta, Request
from steersman.aio import Supervisor
from steersman.errors import ApiError, ConfigError, NotFound
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import AdmissionReview, Kind
from steersman.transport import (
    CertificateIssuer,
    HttpTransport,
    Response,
    ServerTls,
    TlsMaterial,
    Transport,
    TransportWrapper,
)
from steersman.webhooks import WebhookEndpoint, WebhookServer, admission_path, mutates, serve_webhooks
from steersman.webhooks.serving import ServedWebhooks
from steersman.wire import HttpRequest


@mutates(Shop)
def shop_defaults(given: Shop) -> Shop:
    given.spec.image = "nginx"
    return given


PATH = admission_path(Shop, mutates=True)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with ApiServer() as server:
        yield Client(server.transport(), namespace="default", field_manager="tests")


@asynccontextmanager
async def served(client: Client, endpoint: WebhookEndpoint, *more: Any) -> AsyncIterator[ServedWebhooks]:
    async with serve_webhooks(WebhookServer([shop_defaults, *more]), endpoint, client, name="shops") as found:
        await eventually(lambda: found.registered)
        yield found


async def status(found: ServedWebhooks, method: str, path: str, body: bytes, **tls: bytes) -> int:
    material = TlsMaterial(ca_data=found.certificates.ca_bundle, **tls)  # type: ignore[arg-type]
    transport = HttpTransport(found.address, tls=material)
    try:
        async with await transport.send(HttpRequest(method, path, body=body)) as response:
            text = await response.read()
            if response.status == 200 and path == PATH:
                review = msgspec.json.decode(text, type=AdmissionReview)
                assert review.response is not None
                assert review.response.allowed
            return response.status
    finally:
        await transport.close()


async def test_only_reviews_are_answered(client: Client):
    """What is not a review of a registered path is rejected before any handler runs."""
    async with served(client, WebhookEndpoint(port=0)) as found:
        body = admission(shop())
        assert await status(found, "POST", PATH, body) == 200
        assert await status(found, "POST", "/other", body) == 404
        assert await status(found, "POST", "/convert", body) == 404
        assert await status(found, "GET", PATH, b"") == 405
        assert await status(found, "POST", PATH, b"{") == 400
        assert await status(found, "POST", PATH, b" " * (8 * 1024 * 1024)) == 413


async def test_only_clients_with_a_certificate_are_answered(client: Client, tmp_path: Path):
    """With a client CA, the handlers see requests of the API server alone."""
    ours, other = CertificateIssuer.create(), CertificateIssuer.create()
    file = tmp_path / "ca.crt"
    file.write_bytes(ours.certificate)
    async with served(client, WebhookEndpoint(port=0, client_ca_file=str(file))) as found:
        good, bad = ours.client("kube-apiserver"), other.client("kube-apiserver")
        body = admission(shop())
        assert await status(found, "POST", PATH, body, certificate_data=good.certificate, key_data=good.key) == 200
        with pytest.raises(ApiError):
            await status(found, "POST", PATH, body)
        with pytest.raises(ApiError):
            await status(found, "POST", PATH, body, certificate_data=bad.certificate, key_data=bad.key)


async def test_clients_with_another_name_are_rejected(client: Client, tmp_path: Path):
    """The authority of a cluster signs certificates of many clients."""
    issuer, file = CertificateIssuer.create(), tmp_path / "ca.crt"
    file.write_bytes(issuer.certificate)
    endpoint = WebhookEndpoint(port=0, client_ca_file=str(file), client_names=("kube-apiserver",))
    async with served(client, endpoint) as found:
        for name, wanted in (("kube-apiserver", 200), ("kubelet", 403)):
            pair = issuer.client(name)
            given = {"certificate_data": pair.certificate, "key_data": pair.key}
            assert await status(found, "POST", PATH, admission(shop()), **given) == wanted


async def test_conversions_need_no_client_certificate(client: Client, tmp_path: Path):
    """kube-apiserver presents its certificate to admission webhooks alone."""
    issuer, file = CertificateIssuer.create(), tmp_path / "ca.crt"
    file.write_bytes(issuer.certificate)
    async with served(client, WebhookEndpoint(port=0, client_ca_file=str(file)), old_shops()) as found:
        request = {"uid": "7", "desiredAPIVersion": f"{GROUP}/v1alpha1", "objects": [shop()]}
        review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
        assert await status(found, "POST", "/convert", msgspec.json.encode(review)) == 200
        assert await status(found, "POST", PATH, admission(shop())) == 403


class LateUpdates(TransportWrapper):
    """Before each of the first three updates of a CRD, another client writes it."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.late = 0

    async def send(self, request: HttpRequest, **options: Any) -> Response:
        if request.method == "PUT" and self.late < 3:
            self.late += 1
            patch = MergePatch({"metadata": {"annotations": {"writes": str(self.late)}}})
            crd = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
            await Client(self._inner).patch(crd, request.path.rpartition("/")[2], patch)
        return await super().send(request, **options)


async def test_a_definition_that_others_write_is_registered_all_the_same(client: Client):
    """As right after its creation, when the API server writes its status."""
    await client.install(Shop, OldShop)
    await client.create(Shop(metadata=ObjectMeta(name="corner"), spec=ShopSpec(host="a")))
    transports: list[LateUpdates] = []

    def late(inner: Transport) -> Transport:
        transports.append(LateUpdates(inner))
        return transports[-1]

    async with served(client.with_transport(late), WebhookEndpoint(port=0), old_shops()):
        assert transports[0].late == 3
        assert (await client.get(OldShop, "corner")).spec.domain == "a"


async def test_certificates_in_files(client: Client, tmp_path: Path):
    """As cert-manager mounts them; the manager is not ready before they exist."""
    issuer = CertificateIssuer.create()
    names = ("tls.crt", "tls.key", "ca.crt")
    certificate, key, authority = (tmp_path / name for name in names)
    tls = ServerTls(certificate_file=str(certificate), key_file=str(key))
    manager = Manager(
        name="shops", webhook_endpoint=WebhookEndpoint(port=0, tls=tls, ca_file=str(authority), install=True)
    )
    manager.add(shop_defaults)
    await client.install(Shop)
    async with Supervisor() as tasks:
        running = tasks.start(manager.run(client, signals=False), name="manager")
        await eventually(lambda: "webhooks" in manager.ready.names)
        found = {each.name: each for each in await manager.ready.run()}["webhooks"]
        assert not found.ok
        pair = issuer.server(("127.0.0.1",))
        for file, text in ((certificate, pair.certificate), (key, pair.key), (authority, issuer.certificate)):
            await asyncio.to_thread(file.write_bytes, text)
        async with asyncio.timeout(60):
            while not {each.name: each for each in await manager.ready.run()}["webhooks"].ok:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        manager.stop()
        await running


async def test_webhooks_need_a_name(client: Client):
    manager = Manager(webhook_endpoint=WebhookEndpoint(port=0))
    manager.add(shop_defaults)
    with pytest.raises(ConfigError, match='write Manager\\(name="site-operator"\\)'):
        await manager.run(client, signals=False)


async def test_a_webhook_is_added_before_the_manager_runs():
    manager = Manager(name="shops")
    with pytest.raises(RuntimeError, match="no controllers"):
        await manager.run(signals=False)
    manager.add(shop_defaults)
    with pytest.raises(ValueError, match="already added"):
        manager.add(shop_defaults)


async def test_a_long_list_is_converted(client: Client):
    """The server bounds the answers of webhooks, so it converts a long list in portions."""
    await client.install(Shop, OldShop)
    async with served(client, WebhookEndpoint(port=0), old_shops()):
        for number in range(40):
            spec = ShopSpec(host="x" * 100_000)
            await client.create(Shop(metadata=ObjectMeta(name=f"shop-{number:02d}"), spec=spec))
        listed = await client.list(OldShop)
        assert {len(each.spec.domain) for each in listed.items} == {100_000}
        assert len(listed.items) == 40


async def test_an_overwritten_conversion_is_restored(client: Client):
    """A CRD that was replaced without its conversion would lose fields of the other version for a minute."""
    definition, name = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition"), f"shops.{GROUP}"
    await client.install(Shop, OldShop)
    async with served(client, WebhookEndpoint(port=0), old_shops()):
        crd = await client.get(definition, name)
        whole = crd["spec"]["conversion"]
        assert whole["webhook"]["clientConfig"]["caBundle"]
        crd["spec"]["conversion"] = {"strategy": "None"}
        await client.update(crd)
        async with asyncio.timeout(30):
            while (await client.get(definition, name))["spec"]["conversion"] != whole:  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def test_a_secret_that_another_replica_renewed_is_read_at_once(client: Client):
    """Two replicas that disagree about the authority would overwrite each other's caBundle."""
    async with served(client, WebhookEndpoint(port=0)) as one, served(client, WebhookEndpoint(port=0)) as other:
        await one.certificates.refresh(force=True)
        async with asyncio.timeout(30):
            while one.certificates.current() != other.certificates.current():  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def test_the_port_leaves_while_reconciles_end(client: Client):
    """The seconds of ``leaving`` begin with the stop, not after the last reconcile: a Pod ends in time."""
    began, loop = asyncio.Event(), asyncio.get_running_loop()

    async def slow(ctx: Context, request: Request) -> Done:
        began.set()
        await asyncio.sleep(3)
        return Done()

    manager = Manager(name="shops", webhook_endpoint=WebhookEndpoint(service="default/shops", port=0, leaving=3.0))
    manager.add(shop_defaults)
    manager.controller(ConfigMap).run_with(slow)
    async with Supervisor() as tasks:
        tasks.start(manager.run(client, signals=False), name="manager")
        while not any(each.ok for each in await manager.ready.run(["webhooks"])):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        await client.create(ConfigMap(metadata=ObjectMeta(name="slow")))
        await began.wait()
        stopped = loop.time()
        manager.stop()
    assert 3.0 <= loop.time() - stopped < 5.5


async def test_another_run_at_another_address_keeps_its_registration(client: Client, caplog: pytest.LogCaptureFixture):
    """Two laptops, or a laptop and a cluster, would else write each other's objects for as long as both run."""
    mutating = Kind("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration")
    objects = ((mutating, "shops"), (Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition"), f"shops.{GROUP}"))
    await client.install(Shop, OldShop)
    first, last = (WebhookEndpoint(port=0, install=True, secret=name) for name in ("first", "last"))
    async with served(client, first, old_shops()) as one, served(client, last, old_shops()) as other:
        before = await registered(client, *objects)
        assert all(f"{other.address}/" in each for each in before)
        for each in (one, other, one):
            await each.update()
        assert await registered(client, *objects) == before
        for kind, name in objects:
            assert caplog.text.count(f"{kind.kind} {name} calls another address") == 1


async def registered(client: Client, *objects: tuple[Kind, str]) -> list[str]:
    live = [await client.get(*each) for each in objects]
    return [str(each.get("webhooks") or each["spec"]["conversion"]) for each in live]


async def test_a_deleted_configuration_stays_deleted(client: Client, tmp_path: Path):
    """An administrator turns a webhook off in this way; another program may set the caBundle."""
    mutating = Kind("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration")
    pair, files = CertificateIssuer.create().server(("127.0.0.1",)), (tmp_path / "tls.crt", tmp_path / "tls.key")
    for file, text in zip(files, (pair.certificate, pair.key), strict=True):
        file.write_bytes(text)
    tls = ServerTls(certificate_file=str(files[0]), key_file=str(files[1]))
    async with served(client, WebhookEndpoint(port=0, tls=tls, install=True)) as found:
        await client.delete(mutating, "shops")
        await found.update()
        with pytest.raises(NotFound):
            await client.get(mutating, "shops")
