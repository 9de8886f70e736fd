"""``steersman generate rbac`` for a manager of some namespaces: what it writes is enough for everything that it reaches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from steersman import Client, Key, LeaderElection, Manager, ObjectMeta, Resource, Spec, Status
from steersman.aio import Supervisor
from steersman.cache import KindOptions
from steersman.cli.generate.rbac import rbac_yaml
from steersman.controller import Done
from steersman.controlplane import ControlPlane
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.kinds.events_v1 import Event
from steersman.manifests import load_manifests
from steersman.patterns import Outputs, child, reconciles
from steersman.testing import eventually

READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


class Near(Resource[Spec, Status], group="near.rbac.example.com", version="v1"):
    """An owner in a namespace."""


class Wide(Resource[Spec, Status], group="near.rbac.example.com", version="v1", scope="Cluster"):
    """An owner without a namespace."""


def page(kind: type[Any], namespace: str, *, across: bool = False) -> Any:
    """An operator with one ConfigMap in this namespace."""

    @reconciles(kind, children=(child(ConfigMap, across_namespaces=across),))
    async def pages(obj: Any, out: Outputs) -> Done:
        out.apply(ConfigMap(metadata=ObjectMeta(name="page", namespace=namespace)))
        return Done()

    return pages


@asynccontextmanager
async def running(operator: Any, **options: Any) -> AsyncIterator[tuple[Client, list[str]]]:
    """The operator with the generated permissions: the administrator's client, and what was refused."""
    refused: list[str] = []

    def audit(event: dict[str, Any]) -> None:
        if event["responseStatus"]["code"] == 403:
            refused.append(event["responseStatus"]["message"])

    manager = Manager(name="pages", leader=LeaderElection("pages"), **options)
    manager.add(operator)
    plane = ControlPlane(resources=[Near, Wide], authorizer="rbac", audit=audit)
    account = "system:serviceaccount:pages:pages"
    async with plane, Client(plane.transport(account), namespace="pages") as client:
        for name in ("pages", "blue", "green", "red"):
            await plane.client.create(Namespace(metadata=ObjectMeta(name=name)))
        for role in load_manifests(rbac_yaml(manager, target="pages", namespace="pages")):
            await plane.client.create(role)
        async with Supervisor() as tasks:
            tasks.start(manager.run(client, signals=False), name="operator")
            yield plane.client, refused
            manager.stop()
        assert refused == []


async def test_an_owner_of_far_children_can_be_deleted():
    """Steersman looks for far children in all namespaces before it lets go of their owner."""
    async with running(page(Near, "green", across=True), namespaces=("blue", "green")) as (admin, refused):
        near = await admin.create(Near(metadata=ObjectMeta(name="near", namespace="blue"), spec=Spec()))
        await eventually(admin, Near, near.key, has=READY)
        await admin.delete(near)
        await eventually(lambda: _ends(refused, admin.find(Near, near.key), there=False))


async def _ends(refused: list[str], find: Awaitable[object], *, there: bool) -> bool:
    """Whether an object is there, or not, or a refusal makes waiting useless."""
    return (await find is not None) is there or bool(refused)


@pytest.mark.parametrize("namespaces", [("blue", "red"), ()])
async def test_a_kind_is_read_and_written_where_its_options_say(namespaces: tuple[str, ...]):
    operator, kinds = page(Near, "red", across=True), {ConfigMap: KindOptions(namespaces=namespaces)}
    async with running(operator, namespaces=("blue",), kinds=kinds) as (admin, refused):
        await admin.create(Near(metadata=ObjectMeta(name="near", namespace="blue"), spec=Spec()))
        await eventually(lambda: _ends(refused, admin.find(ConfigMap, Key("red", "page")), there=True))


async def test_events_of_a_cluster_scoped_owner_are_recorded():
    """The server wants them in the namespace ``default``."""
    async with running(page(Wide, "blue"), namespaces=("blue",)) as (admin, refused):
        await admin.create(Wide(metadata=ObjectMeta(name="wide"), spec=Spec()))
        await eventually(lambda: _recorded(refused, admin))


async def _recorded(refused: list[str], admin: Client) -> bool:
    return bool(refused) or any(each.reason == "Ready" for each in await admin.list(Event, namespace="default"))
