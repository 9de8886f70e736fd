"""The control plane's own controllers as the program that faults happen to: each of their requests crosses the network.

They follow the store, as in every `ControlPlane`: no watch of theirs can be late or break. A crash ends them all, and new ones
begin with what the store holds, as when a control plane starts again on its folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from simulation.shipped.shipped_program import NO_WATCHES, ShippedProgram, all_but

from steersman import Client, Key, Manager, MergePatch, Object, ObjectMeta, Quantity
from steersman.aio import Supervisor
from steersman.apiserver import ApiServer, Storage, User
from steersman.controller import Controller
from steersman.controlplane import CONTROLLERS, ControlPlane
from steersman.controlplane.assembly import Assembled
from steersman.kinds.core_v1 import ConfigMap, Namespace, ResourceQuota, ResourceQuotaSpec, Secret, ServiceAccount
from steersman.kinds.meta_v1 import LabelSelector
from steersman.kinds.rbac_v1 import AggregationRule, ClusterRole, PolicyRule
from steersman.objects import OwnerReference
from steersman.simulation import Scenario, ScenarioUser
from steersman.simulation.runs.faults import Coalesced, DroppedWatch, StaleCache
from steersman.simulation.runs.network import SimulatedTransport
from steersman.simulation.scenario import Workload
from steersman.transport import Handler, ServerResponse
from steersman.wire import HttpRequest

_CERTIFICATE = b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"


class _NetworkedServer:
    """What `Assembled` needs of a server, with a network between the server and its controllers."""

    def __init__(self, server: ApiServer, carrier: SimulatedTransport) -> None:
        self.registry, self.storage = server.registry, server.storage
        self._server = server
        self._carrier = carrier

    def transport(self, user: User) -> SimulatedTransport:
        return self._carrier.to(_handler(self._server, user))


def _handler(server: ApiServer, user: User) -> Handler:
    async def handle(request: HttpRequest) -> ServerResponse:
        return await server.handle(request, user=user)

    return handle


class _Controllers(Manager):
    """The controllers as a process that starts, works and crashes like an operator."""

    def __init__(self, server: Callable[[], ApiServer]) -> None:
        super().__init__(name="kube-controller-manager", leader=None)
        self._server = server
        self._assembled: Assembled | None = None

    @property
    def controllers(self) -> tuple[Controller, ...]:
        return () if self._assembled is None else tuple(self._assembled.controllers)

    @property
    def phase(self) -> Any:
        return "starting" if self._assembled is None else "running"

    async def run(self, client: Client | None = None, *, signals: bool = True) -> None:
        del signals
        assert client is not None
        carriers: list[SimulatedTransport] = []

        def carried(transport: Any) -> Any:
            carriers.append(transport)
            return transport

        client.with_transport(carried)
        server: Any = _NetworkedServer(self._server(), carriers[0])
        assembled = Assembled(
            server, CONTROLLERS, authority=_CERTIFICATE, on_news=_nothing, on_record=self._listeners.notify
        )
        async with AsyncExitStack() as stack:
            for transport in assembled.transports:
                await stack.enter_async_context(transport)
            tasks = await stack.enter_async_context(Supervisor())
            await assembled.changes.begin()
            for controller in assembled.controllers:
                tasks.start(controller.run(), name=controller.name)
            tasks.start(assembled.changes.run(), name="changes")
            self._assembled = assembled
            await asyncio.Event().wait()


class _PlaneScenario(Scenario):
    """A control plane whose controllers are the operator."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(self._made, workload, name="kube-controller-manager")
        self._plane: ControlPlane | None = None

    def control_plane(self, storage: Storage) -> ControlPlane:
        """A control plane without controllers of its own."""
        self._plane = ControlPlane(storage=storage, controllers=())
        return self._plane

    def _made(self) -> Manager:
        return _Controllers(self._server)

    def _server(self) -> ApiServer:
        assert self._plane is not None
        return self._plane.server


def _nothing() -> None:
    pass


# what users do


async def _create(user: ScenarioUser, name: str, *owners: Object, **more: Any) -> ConfigMap:
    """Create a ConfigMap that blocks the deletion of its owners."""
    references = [
        OwnerReference(api_version="v1", kind=owner.kind, name=owner.key.name, uid=owner.uid, block_owner_deletion=True)
        for owner in owners
    ]
    metadata = ObjectMeta(
        name=name, namespace=more.pop("namespace", "default"), owner_references=references or None, **more
    )
    return await user.client.create(ConfigMap(metadata=metadata))


async def garbage(user: ScenarioUser) -> None:
    """Owners are deleted in each of the three ways; dependents have one owner, two, or a chain of them."""
    client = user.client
    await user.settled()
    for propagation in ("Background", "Foreground", "Orphan"):
        name = propagation.lower()
        owner, second = await _create(user, name), await _create(user, f"{name}-second")
        child = await _create(user, f"{name}-child", owner)
        await _create(user, f"{name}-grandchild", child)
        await _create(user, f"{name}-shared", owner, second)
        await user.settled()
        await client.delete(ConfigMap, Key("default", name), propagation=propagation)
        await user.settled()
        await client.delete(ConfigMap, Key("default", f"{name}-second"), propagation=propagation)
        await user.settled()
    one = await _create(user, "one")
    two = await _create(user, "two", one)
    circle = {"apiVersion": "v1", "kind": "ConfigMap", "name": "two", "uid": two.uid, "blockOwnerDeletion": True}
    await client.patch(ConfigMap, "default/one", MergePatch({"metadata": {"ownerReferences": [circle]}}))
    await user.settled()
    await client.delete(ConfigMap, Key("default", "one"), propagation="Foreground")
    await user.settled()


async def namespaces(user: ScenarioUser) -> None:
    """A namespace ends, held by a finalizer of its content, and comes again."""
    client = user.client
    for name in ("blue", "red"):
        await client.create(Namespace(metadata=ObjectMeta(name=name)))
    await user.settled()
    await _create(user, "held", namespace="blue", finalizers=["example.com/held"])
    await _create(user, "free", namespace="blue")
    await client.create(Secret(metadata=ObjectMeta(name="free", namespace="blue")))
    await user.settled()
    await client.delete(Namespace, "blue")
    await user.settled()
    await client.patch(ConfigMap, "blue/held", MergePatch({"metadata": {"finalizers": None}}))
    await user.settled()
    await client.create(Namespace(metadata=ObjectMeta(name="blue")))
    await user.settled()
    for name in ("blue", "red"):
        await client.delete(Namespace, name)
    await user.settled()


async def quotas(user: ScenarioUser) -> None:
    """Quotas count what comes and goes, and follow a changed limit."""
    client = user.client
    await client.create(Namespace(metadata=ObjectMeta(name="blue")))
    await user.settled()
    hard = {"count/configmaps": Quantity(5), "secrets": Quantity(2)}
    quota = ResourceQuota(metadata=ObjectMeta(name="small", namespace="blue"), spec=ResourceQuotaSpec(hard=hard))
    await client.create(quota)
    await user.settled()
    for name in ("one", "two"):
        await _create(user, name, namespace="blue")
        await client.create(Secret(metadata=ObjectMeta(name=name, namespace="blue")))
    await user.settled()
    await client.delete(ConfigMap, "blue/one")
    await user.settled()
    change = MergePatch({"spec": {"hard": {"count/configmaps": "9", "secrets": None, "pods": "3"}}})
    await client.patch(ResourceQuota, "blue/small", change)
    await user.settled()
    await client.delete(ResourceQuota, "blue/small")
    await user.settled()


async def accounts(user: ScenarioUser) -> None:
    """Each namespace has its account and the certificate of the authority, also after someone deletes them."""
    client = user.client
    await user.settled()
    await client.create(Namespace(metadata=ObjectMeta(name="blue")))
    await user.settled()
    await client.delete(ServiceAccount, "blue/default")
    await client.delete(ConfigMap, "blue/kube-root-ca.crt")
    await user.settled()
    await client.patch(ConfigMap, "default/kube-root-ca.crt", MergePatch({"data": {"ca.crt": "another"}}))
    await user.settled()


async def roles(user: ScenarioUser) -> None:
    """A ClusterRole takes the rules of those that its selector finds."""
    client = user.client
    selector = LabelSelector(match_labels={"example.com/for": "readers"})
    rule = AggregationRule(cluster_role_selectors=[selector])
    await client.create(ClusterRole(metadata=ObjectMeta(name="readers"), aggregation_rule=rule))
    for name in ("pods", "secrets"):
        rules = [PolicyRule(api_groups=[""], resources=[name], verbs=["get"])]
        await client.create(ClusterRole(metadata=ObjectMeta(name=f"read-{name}"), rules=rules))
    await user.settled()
    for name in ("pods", "secrets"):
        label = MergePatch({"metadata": {"labels": {"example.com/for": "readers"}}})
        await client.patch(ClusterRole, f"read-{name}", label)
        await user.settled()
    await client.delete(ClusterRole, "read-pods")
    await user.settled()


def _program(workload: Workload) -> ShippedProgram:
    return ShippedProgram(scenario=_PlaneScenario(workload), faults=NO_WATCHES)


#: Other clients may delete and edit what these controllers write, since it is all theirs.
_OWN = all_but(StaleCache, Coalesced, DroppedWatch)

CONTROL_PLANE: dict[str, Callable[[], ShippedProgram]] = {
    "control plane: garbage": lambda: _program(garbage),
    "control plane: namespaces": lambda: _program(namespaces),
    "control plane: quotas": lambda: _program(quotas),
    "control plane: accounts": lambda: ShippedProgram(scenario=_PlaneScenario(accounts), faults=_OWN),
    "control plane: roles": lambda: _program(roles),
}
