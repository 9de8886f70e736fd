"""``steersman run --webhook-url``: the API server calls webhooks on this machine at an address, for the time of one run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from samples.ports import free_port, own_address
from steersman import ApiServer, Client
from steersman.cli import main
from steersman.cli.run import RunOptions, _webhook_address
from steersman.errors import ApiError, Forbidden, NotFound, ProtocolError
from steersman.objects import Kind, Unstructured
from steersman.testing import Engine
from steersman.transport import Response, Transport, TransportWrapper
from steersman.webhooks import WebhookEndpoint, WebhookRegistration, webhook_address
from steersman.wire import HttpRequest

OPERATOR = '''
from steersman import Manager, Resource, Spec
from steersman.webhooks import Denied, VersionConverter, WebhookEndpoint, mutates, validates

class SiteSpec(Spec):
    image: str

class Site(Resource[SiteSpec, None], group="GROUP", version="v1"):
    """A web site."""

class OldSite(Resource[SiteSpec, None], group="GROUP", version="v1beta1", kind="Site", plural="sites", storage=False):
    """A web site of before."""

@mutates(Site)
def defaults(site: Site) -> Site:
    if ":" not in site.spec.image:
        site.spec.image += ":stable"
    return site

@validates(Site)
def checks(site: Site) -> None:
    if site.spec.image.endswith(":latest"):
        raise Denied("the image must name a version")

manager = Manager(name="GROUP", webhook_endpoint=WebhookEndpoint(service="default/hooks"))
manager.add(defaults)
manager.add(checks)
manager.add(
    VersionConverter(
        OldSite,
        Site,
        to_hub=lambda site: Site(metadata=site.metadata, spec=site.spec),
        to_spoke=lambda site: OldSite(metadata=site.metadata, spec=site.spec),
    )
)
'''
MUTATING = Kind("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration")
VALIDATING = Kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")


@asynccontextmanager
async def running(folder: Path, engine: Engine, *arguments: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "import sys; from steersman.cli import main; sys.exit(main())"),
        *("run", "laptop:manager", *arguments),
        cwd=folder,
        env={**os.environ, "KUBECONFIG": str(engine.kubeconfig)},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def site(group: str, namespace: str, image: str, *, version: str = "v1") -> Unstructured:
    metadata = {"name": "home", "namespace": namespace}
    return Unstructured(
        {"apiVersion": f"{group}/{version}", "kind": "Site", "metadata": metadata, "spec": {"image": image}}
    )


async def until_called(client: Client, tree: Unstructured) -> None:
    """Wait until the webhook of this machine answers for the API server."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(ApiError):
                if (await client.create(tree, dry_run=True)).get("spec", "image") == "nginx:stable":
                    return
            await asyncio.sleep(0.05)


async def stopped(process: asyncio.subprocess.Process, number: int = signal.SIGTERM) -> int:
    process.send_signal(number)
    async with asyncio.timeout(60):
        return await process.wait()


async def test_a_write_goes_through_the_laptop(tmp_path: Path, engine: Engine, namespace: str, crd_group: str) -> None:
    """A breakpoint in a check is met by a write on the cluster; after the end, nothing blocks writes."""
    (tmp_path / "laptop.py").write_text(OPERATOR.replace("GROUP", crd_group))
    url = f"https://{own_address()}:{free_port()}"
    arguments = ("--install-crds", "--webhook-url", url, "--namespace", namespace)
    async with engine.client(field_manager="tests") as client, running(tmp_path, engine, *arguments) as program:
        await until_called(client, site(crd_group, namespace, "nginx"))
        with pytest.raises(Forbidden, match="the image must name a version"):
            await client.create(site(crd_group, namespace, "nginx:latest"))
        await client.create(site(crd_group, namespace, "nginx"))
        old = await client.get(Kind(f"{crd_group}/v1beta1", "Site"), f"{namespace}/home")
        assert old.get("spec", "image") == "nginx:stable"
        live = await client.get(MUTATING, crd_group)
        assert live["webhooks"][0]["clientConfig"]["url"].startswith(f"{url}/")
        assert await stopped(program) == 0
        for kind in (MUTATING, VALIDATING):
            with pytest.raises(NotFound):
                await client.get(kind, crd_group)
        # without its conversion, clients of one version would remove fields of the other
        assert (await client.get(CRD, f"sites.{crd_group}"))["spec"]["conversion"]["strategy"] == "Webhook"
        await client.delete(Kind(f"{crd_group}/v1", "Site"), f"{namespace}/home")


async def test_the_registration_of_a_service_is_back_at_the_end(
    tmp_path: Path, engine: Engine, namespace: str, crd_group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator in the cluster serves its webhooks again, even if a run on a laptop was killed in between."""
    (tmp_path / "laptop.py").write_text(OPERATOR.replace("GROUP", crd_group))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "laptop", raising=False)
    for what, file in (("crds", "crds.yaml"), ("webhooks", "webhooks.yaml")):
        assert main(["generate", what, "laptop", "-o", file]) == 0
    url = f"https://{own_address()}:{free_port()}"
    arguments = ("--webhook-url", url, "--namespace", namespace)
    async with engine.client(field_manager="tests") as client:
        places = [(CRD, f"sites.{crd_group}"), (MUTATING, crd_group), (VALIDATING, crd_group)]
        for file in ("crds.yaml", "webhooks.yaml"):
            for tree in yaml_trees(tmp_path / file):
                if tree["kind"] != "Service":
                    await client.create(Unstructured(tree))
        before = [registered(await client.get(*place)) for place in places]
        for number in (signal.SIGKILL, signal.SIGTERM):
            async with running(tmp_path, engine, *arguments) as program:
                await until_called(client, site(crd_group, namespace, "nginx"))
                assert await stopped(program, number) == (0 if number == signal.SIGTERM else -number)
            if number == signal.SIGKILL:
                assert "url" in str(registered(await client.get(*places[1])))
        assert [registered(await client.get(*place)) for place in places] == before
        for kind in (MUTATING, VALIDATING):
            await client.delete(kind, crd_group)
        definition = await client.get(*places[0])
        definition["spec"]["conversion"] = {"strategy": "None"}
        await client.update(definition)


class Refusing(TransportWrapper):
    """A transport over which a MutatingWebhookConfiguration can be written once."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self._written = False

    async def send(self, request: HttpRequest, **options: Any) -> Response:
        if request.method == "PUT" and "/mutatingwebhookconfigurations/" in request.path:
            if self._written:
                raise ProtocolError("refused")
            self._written = True
        return await super().send(request, **options)


async def taken_once(client: Client, hooks: Any, name: str) -> None:
    async with webhook_address("https://127.0.0.1:944", client) as address:
        await address.take(hooks, name)


async def test_one_registration_that_stays_keeps_no_other_one(
    engine: Engine, crd_group: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Webhooks with failurePolicy Fail block writes: each one that can be restored is restored."""
    scope: dict[str, Any] = {"__name__": "laptop"}
    exec(OPERATOR.replace("GROUP", crd_group), scope)
    hooks = scope["manager"].webhooks.hooks
    registration = WebhookRegistration(hooks, WebhookEndpoint(service="default/hooks"), name=crd_group)
    async with engine.client(field_manager="tests") as client:
        for tree in registration.configurations():
            await client.create(Unstructured(tree))
        before = registered(await client.get(VALIDATING, crd_group))
        with pytest.raises(ExceptionGroup, match="some webhooks are still registered"):
            await taken_once(client.with_transport(Refusing), hooks, crd_group)
        assert registered(await client.get(VALIDATING, crd_group)) == before
        assert f"MutatingWebhookConfiguration {crd_group} may still name https://127.0.0.1:944" in caplog.text
        async with webhook_address("https://127.0.0.1:944", client) as address:
            await address.take(hooks, crd_group)
            other = await client.get(VALIDATING, crd_group)
            other["webhooks"][0]["clientConfig"]["url"] = "https://127.0.0.1:9443/validate"
            await client.update(other)
        assert "127.0.0.1:9443" in str(registered(await client.get(VALIDATING, crd_group))), "of another run"
        await taken_once(client, hooks, crd_group)
        assert f"ValidatingWebhookConfiguration {crd_group} names https://127.0.0.1:9443/validate" in caplog.text
        for kind in (MUTATING, VALIDATING):
            await client.delete(kind, crd_group)


async def test_a_registration_at_another_address_is_restored(engine: Engine, crd_group: str) -> None:
    """It may be that of an operator which runs outside of its cluster; deleted is only what the command has made."""
    scope: dict[str, Any] = {"__name__": "laptop"}
    exec(OPERATOR.replace("GROUP", crd_group), scope)
    hooks = scope["manager"].webhooks.hooks
    elsewhere = WebhookEndpoint(url="https://hooks.example.com")
    _, validating = WebhookRegistration(hooks, elsewhere, name=crd_group).configurations()
    async with engine.client(field_manager="tests") as client:
        before = registered(await client.create(Unstructured(validating)))
        async with webhook_address("https://127.0.0.1:944", client) as address:
            await address.take(hooks, crd_group)
            for kind in (MUTATING, VALIDATING):
                assert "https://127.0.0.1:944/" in str(registered(await client.get(kind, crd_group)))
        assert registered(await client.get(VALIDATING, crd_group)) == before
        with pytest.raises(NotFound):
            await client.get(MUTATING, crd_group)
        await client.delete(VALIDATING, crd_group)


@pytest.mark.parametrize(
    ("host", "given", "listens_on"),
    [
        ("127.0.0.1", None, "127.0.0.1"),
        ("localhost", None, "localhost"),
        ("tunnel.invalid", None, "127.0.0.1"),
        ("tunnel.invalid", "0.0.0.0", "0.0.0.0"),
    ],
)
async def test_no_other_machine_reaches_the_port_behind_a_tunnel(host: str, given: str | None, listens_on: str) -> None:
    options = RunOptions(target="laptop", webhook_url=f"https://{host}:9443", webhook_host=given)
    async with ApiServer() as server, _webhook_address(options, Client(server.transport())) as address:
        assert address is not None
        assert address.endpoint.listens_on == listens_on


def yaml_trees(file: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(file.read_text()))


def registered(live: Unstructured) -> Any:
    """What an object registers, with the note about what it had before."""
    note = live.get("metadata", "annotations", "steersman.dev/registered-before")
    return note, live.get("webhooks") or live.get("spec", "conversion")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--webhook-url", "http://laptop:9443"], '--webhook-url: url="http://laptop:9443" must begin with https://'),
        (["--webhook-url", "https://laptop:99999"], '--webhook-url: url="https://laptop:99999": Port out of range'),
        (["--webhook-url", "https://a:1", "--install-local"], "pass only one of --webhook-url, --webhook-service and"),
        (["--webhook-host", "0.0.0.0"], "--webhook-host needs --webhook-url"),
        (["--webhook-service", "hooks"], '--webhook-service: service="hooks" has no namespace'),
    ],
)
def test_what_cannot_be_registered_is_refused_in_a_sentence(
    tmp_path: Path,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    (tmp_path / "laptop.py").write_text(OPERATOR.replace("GROUP", "refused.example.com"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "laptop", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(engine.kubeconfig))
    assert main(["run", "laptop", *arguments]) == 1
    assert words in capsys.readouterr().err
