"""Installing definitions: nothing that is installed is removed by accident."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from steersman import Client, ObjectMeta, Resource, Spec
from steersman.aio import Supervisor
from steersman.errors import InternalError, WouldRemove
from steersman.objects import Kind, Object

CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
#: A conversion that always fails: nothing listens there.
WEBHOOK = {"clientConfig": {"url": "https://127.0.0.1:1/convert"}, "conversionReviewVersions": ["v1"]}
CONVERSION = {"strategy": "Webhook", "webhook": WEBHOOK}


class Small(Spec):
    """A spec."""

    size: int = 1


class Large(Spec):
    """A spec with one field more."""

    size: int = 1
    color: str | None = None


def tray(group: str, version: str, spec: type[Spec], **options: Any) -> type[Object]:
    class Tray(Resource[spec, None], group=group, version=version, **options):  # type: ignore[valid-type]
        """A tray."""

    return Tray


@pytest.fixture
def kinds(crd_group: str) -> Callable[..., type[Object]]:
    return lambda version, spec, **options: tray(crd_group, version, spec, **options)


async def versions(client: Client, cls: type[Object]) -> dict[str, list[str]]:
    found = await client.get(CRD, f"{cls.gvr().resource}.{cls.gvk().group}")
    return {
        each["name"]: sorted(each["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])
        for each in found["spec"]["versions"]
    }


async def test_a_version_is_never_removed(client: Client, kinds: Callable[..., type[Object]]):
    """A program that knows one version of a kind must not take the other one from its clients."""
    v1, v2 = kinds("v1", Small, storage=False), kinds("v2", Large)
    await client.install(v1, v2)
    with pytest.raises(WouldRemove, match=r"version v1 from the installed .*install\(Tray, replace=True\)"):
        await client.install(v2)
    assert await versions(client, v2) == {"v1": ["size"], "v2": ["color", "size"]}
    await client.install(v2, replace=True)
    assert list(await versions(client, v2)) == ["v2"]


async def test_a_stored_version_is_never_removed(client: Client, kinds: Callable[..., type[Object]]):
    await client.install(kinds("v1", Small))
    with pytest.raises(WouldRemove, match="version v1, in which objects are stored"):
        await client.install(kinds("v2", Small))


async def test_a_field_is_never_removed(client: Client, kinds: Callable[..., type[Object]]):
    """An older release that starts again must not prune what the newer one wrote."""
    new, old = kinds("v1", Large), kinds("v1", Small)
    await client.install(new)
    with pytest.raises(WouldRemove, match=r"remove spec\.color of version v1"):
        await client.install(old)
    assert await versions(client, new) == {"v1": ["color", "size"]}
    with pytest.raises(WouldRemove, match="the serving of version v1"):
        await client.install(kinds("v1", Large, served=False), kinds("v2", Large, storage=False))


async def test_programs_that_install_at_once_add_up(client: Client, kinds: Callable[..., type[Object]]):
    """A program decides on the definition that it changes: whichever is first, no field is lost."""
    new, old = kinds("v1", Large), kinds("v1", Small)

    async def install(cls: type[Object]) -> None:
        try:
            await client.install(cls)
        except WouldRemove:
            assert cls is old

    await asyncio.gather(*(install(cls) for cls in (old, new) * 4))
    assert await versions(client, new) == {"v1": ["color", "size"]}


@pytest.mark.parametrize("before", [False, True])
async def test_no_version_is_served_without_its_conversion(
    client: Client, kinds: Callable[..., type[Object]], *, before: bool
):
    """Otherwise a client of the new version reads an object as the old one is stored, and writes it back without its fields."""
    v1, v2 = kinds("v1", Small, storage=False), kinds("v2", Large)
    name = f"{v1.gvr().resource}.{v1.gvk().group}"
    if before:
        old: Any = kinds("v1", Small)
        await client.install(old)
        await client.create(old(metadata=ObjectMeta(name="a"), spec=Small()))
    async with Supervisor() as tasks, client.watch(CRD, fields={"metadata.name": name}) as events:
        tasks.start(client.install(v1, v2, conversion=CONVERSION), name="install")
        async for event in events:
            spec: Any = event.object["spec"]  # type: ignore[union-attr]
            assert len(spec["versions"]) == 1 or spec["conversion"]["strategy"] == "Webhook"
            if len(spec["versions"]) == 2:
                break
    if before:
        with pytest.raises(InternalError, match="conversion webhook"):
            await client.get(v2, "a")
    await client.install(v1, v2)
    assert (await client.get(CRD, name))["spec"]["conversion"]["strategy"] == "Webhook"


async def test_an_installation_reads_no_deprecated_version(api_server, kinds: Callable[..., type[Object]]):
    """The server would warn of it, and its user would look for a mistake of the program."""
    warnings: list[str] = []
    connecting = Client.connect(kubeconfig=api_server.kubeconfig, on_warning=lambda each: warnings.append(each.text))
    async with connecting as client:
        await client.install(kinds("v1alpha1", Small, storage=False, deprecated=True), kinds("v1", Small))
    assert warnings == []
