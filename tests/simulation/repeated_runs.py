"""Runs scenarios and prints their traces, as a JSON object of lines by scenario: ``repeated_runs.py plain|disturbed [SCENARIO]``.

A disturbed process has other addresses, and collects garbage at other moments: no trace may show that.
"""

from __future__ import annotations

import gc
import json
import sys
from typing import Any

import examples.site_generator
import examples.site_operator
import msgspec

from samples.site import Site
from steersman import (
    Done,
    Key,
    Manager,
    MergePatch,
    ObjectMeta,
    Outputs,
    Quantity,
    StateMachine,
    Unstructured,
    Wait,
    finalizer,
    state,
)
from steersman.errors import ApiError
from steersman.kinds.apiextensions_v1 import CustomResourceDefinition
from steersman.kinds.apps_v1 import Deployment
from steersman.kinds.core_v1 import (
    ConfigMap,
    Namespace,
    ResourceQuota,
    ResourceQuotaSpec,
    Secret,
    Service,
    ServiceAccount,
    ServicePort,
    ServiceSpec,
)
from steersman.manager import LeaderElection
from steersman.patterns import Absent, External, ExternalKey, Present
from steersman.simulation import ALL_FAULTS, ExternalSystem, ScenarioUser
from steersman.simulation.exploration.branches import Branches, Message
from steersman.simulation.runs.faults import Fault
from steersman.simulation.runs.places import Place
from steersman.simulation.runs.world import World
from steersman.simulation.scenario import Scenario


def site(name: str) -> examples.site_operator.Site:
    spec = examples.site_operator.SiteSpec(image="a", replicas=2)
    return examples.site_operator.Site(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)


async def create_and_delete(user: ScenarioUser) -> None:
    for name in ("home", "shop", "blog"):
        await user.client.create(site(name))
    await user.settled()
    await user.client.patch(examples.site_operator.Site, "default/shop", MergePatch({"spec": {"image": "b"}}))
    await user.client.delete(examples.site_operator.Site, "default/home")
    await user.settled()


async def node_ports(user: ScenarioUser) -> None:
    ports = [ServicePort(name=f"port-{number}", port=8000 + number) for number in range(6)]
    spec = ServiceSpec(type="LoadBalancer", external_traffic_policy="Local", ports=ports, selector={"app": "web"})
    await user.client.create(Service(metadata=ObjectMeta(name="web", namespace="default"), spec=spec))
    await user.settled()
    service = await user.client.get(Service, "default/web")
    assert service.spec is not None
    service.spec.type, service.spec.external_traffic_policy = "ClusterIP", None
    for port in service.spec.ports or ():
        port.node_port = None
    service.spec.health_check_node_port = None
    await user.client.update(service)
    spec = ServiceSpec(type="NodePort", ports=ports, selector={"app": "web"})
    await user.client.create(Service(metadata=ObjectMeta(name="other", namespace="default"), spec=spec))
    await user.settled()
    await user.client.delete(Service, "default/other")
    await user.settled()


async def namespace_deleted(user: ScenarioUser) -> None:
    await user.client.create(Namespace(metadata=ObjectMeta(name="room")))
    for number in range(5):
        limits = ResourceQuotaSpec(hard={"count/configmaps": Quantity("50"), "count/secrets": Quantity("50")})
        meta = ObjectMeta(name=f"limit-{number}", namespace="room")
        await user.client.create(ResourceQuota(metadata=meta, spec=limits))
    for number in range(5):
        meta = ObjectMeta(name=f"thing-{number}", namespace="room", finalizers=["example.com/kept"] * (number == 3))
        owner = await user.client.create(ConfigMap(metadata=meta, data={"a": "b"}))
        for kind in (Secret, ServiceAccount):
            await user.client.create(kind(metadata=ObjectMeta(name=f"thing-{number}", namespace="room")), owner=owner)
        spec = ServiceSpec(type="NodePort", ports=[ServicePort(port=80)])
        await user.client.create(
            Service(metadata=ObjectMeta(name=f"port-{number}", namespace="room"), spec=spec), owner=owner
        )
        home = site(f"thing-{number}")
        home.metadata.namespace = "room"
        await user.client.create(home)
    await user.settled()
    await user.client.delete(Secret, "room/thing-1")
    await user.settled()
    await user.client.delete(Namespace, Key("", "room"))
    await user.settled()
    await user.client.patch(ConfigMap, "room/thing-3", MergePatch({"metadata": {"finalizers": None}}))
    await user.settled()


async def definition_replaced(user: ScenarioUser) -> None:
    for name in ("home", "shop"):
        await user.client.create(site(name))
    await user.settled()
    await user.client.delete(CustomResourceDefinition, Key("", "sites.web.example.com"))
    await user.settled()
    await user.client.install(examples.site_operator.Site)
    await user.client.create(site("home"))
    await user.settled()


async def mistakes(user: ScenarioUser) -> None:
    """Send wrong objects, and keep what the server says about them."""
    claims = [{"metadata": {"name": f"Claim {number}"}, "spec": {"accessModes": []}} for number in range(5)]
    labels = {"app": "db"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "DB", "image": "", "ports": [{}]}]}}
    stateful = {"selector": {"matchLabels": labels}, "template": pod, "volumeClaimTemplates": claims}
    number = {"type": "number"}
    unreadable = dict.fromkeys(("maximum", "minimum", "multipleOf", "enum", "items", "not", "allOf", "oneOf"), "x")
    version = {"name": "v1", "served": True, "storage": True}
    names = {"plural": "wrongs", "kind": "Wrong"}
    definition = {"group": "example.com", "scope": "Namespaced", "names": names}
    wrong = {
        "stateful": ("apps/v1", "StatefulSet", {"spec": stateful}),
        "schema": (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            {"spec": definition | {"versions": [version | {"schema": {"openAPIV3Schema": number | unreadable}}]}},
        ),
    }
    for name, (api_version, kind, rest) in wrong.items():
        namespace = {"namespace": "default"} if kind == "StatefulSet" else {}
        meta = {"metadata": {"name": "wrongs.example.com" if name == "schema" else name, **namespace}}
        try:
            await user.client.create(Unstructured({"apiVersion": api_version, "kind": kind, **meta, **rest}))
        except ApiError as error:
            said = ObjectMeta(name=name, namespace="default")
            await user.client.create(ConfigMap(metadata=said, data={"error": str(error)}))
    await user.settled()


class Accounts:
    """The protocol that `External` needs, over a simulated bank."""

    def __init__(self, bank: ExternalSystem) -> None:
        self._bank = bank

    async def find(self, key: ExternalKey, _: Site) -> dict[str, str] | None:
        return await self._bank.call("find", key.uid, lambda: self._found(key))

    async def create(self, key: ExternalKey, obj: Site) -> dict[str, str]:
        account = {"owner": key.uid, "image": obj.spec.image}
        await self._bank.call("create", key.uid, lambda: self._bank.add(account))
        return account

    def up_to_date(self, obj: Site, found: dict[str, str]) -> bool:
        return found["image"] == obj.spec.image

    async def update(self, key: ExternalKey, obj: Site, found: dict[str, str]) -> dict[str, str]:
        await self._bank.call("update", key.uid, lambda: found.update(image=obj.spec.image))
        return found

    async def delete(self, key: ExternalKey, _: Site, found: dict[str, str]) -> None:
        del found
        await self._bank.call("delete", key.uid, lambda: self._removed(key))

    def _found(self, key: ExternalKey) -> dict[str, str] | None:
        return next((each for each in self._bank.objects.values() if each["owner"] == key.uid), None)

    def _removed(self, key: ExternalKey) -> None:
        for id_ in [id_ for id_, each in self._bank.objects.items() if each["owner"] == key.uid]:
            del self._bank.objects[id_]


class Clients(StateMachine[Site], children=(ConfigMap,)):
    def __init__(self, bank: ExternalSystem) -> None:
        self.accounts: External[Site, dict[str, str]] = External(
            Accounts(bank), name="account", timeout=10.0, late=1.0, repeatable_create=False, look_again=60.0
        )

    @state(condition="AccountReady")
    async def account(self, site: Site, out: Outputs) -> Done | Wait:
        """Ensure the account."""
        match self.accounts.ensure(site):
            case Present():
                meta = ObjectMeta(name=site.key.name, namespace=site.key.namespace)
                out.apply(ConfigMap(metadata=meta, data={"account": "open"}))
                return Done()
            case pending:
                return pending.wait

    @finalizer
    async def clean_up(self, site: Site, _: Outputs) -> Done | Wait:
        """Close the account."""
        match self.accounts.remove(site):
            case Absent():
                return Done()
            case pending:
                return pending.wait


async def accounts(user: ScenarioUser) -> None:
    from samples.site import site as made

    for name in ("home", "shop"):
        await user.client.create(made(name, "default"))
    await user.settled()
    await user.client.patch(Site, "default/home", MergePatch({"spec": {"image": "other"}}))
    await user.settled()
    await user.client.delete(Site, "default/home")
    await user.settled()


def leading() -> Manager:
    manager = Manager(name="site-operator", leader=LeaderElection("sites", namespace="default"))
    builder = manager.controller(examples.site_operator.Site).owns(Deployment).owns(Service)
    builder.run_with(examples.site_operator.reconcile)
    return manager


def sites() -> Manager:
    return examples.site_operator.manager.copy()


def generator() -> Manager:
    return examples.site_generator.manager.copy()


def banking() -> Any:
    return Clients(ExternalSystem("bank"))


SCENARIOS = {
    "site operator": Scenario(sites, create_and_delete),
    "generated children": Scenario(generator, create_and_delete),
    "node ports": Scenario(sites, node_ports),
    "namespace deleted": Scenario(sites, namespace_deleted),
    "definition replaced": Scenario(sites, definition_replaced),
    "mistakes": Scenario(sites, mistakes),
    "external system": Scenario(banking, accounts),
    "two replicas": Scenario(leading, create_and_delete, replicas=2),
}


class Faults:
    """A fault at every seventh write of the operators, each of another kind."""

    def __init__(self) -> None:
        self._writes = 0

    def decide(self, place: Place) -> Fault | None:
        """The fault of a place."""
        if not place.actor.startswith("operator") or not place.is_write or place.is_event or place.is_lease:
            return None
        self._writes += 1
        number, rest = divmod(self._writes, 7)
        return None if rest != 5 else ALL_FAULTS[number % len(ALL_FAULTS)]


def traced(scenario: Scenario, *, faults: bool) -> bytes:
    """The trace of a run."""
    world = World(scenario, seed=5, decide=Faults().decide if faults else lambda _: None)
    world.run()
    lines = [msgspec.json.encode(entry).decode() for entry in world.trace]
    return json.dumps([*lines, *world.failures]).encode()


def main(process: str, only: str = "") -> None:
    held: list[object] = []
    if process == "disturbed":
        held = [object() for _ in range(12_347)]
        gc.set_threshold(97, 3, 3)
    else:
        gc.disable()
    traces: dict[str, Any] = {}
    failures: list[str] = []

    def on_message(message: Message) -> None:
        if message.failure:
            failures.append(f"{message.label}: {message.failure}")
        else:
            traces[str(message.label)] = json.loads(message.data)

    # What a process computes once is there before the forks; what that is must not matter either.
    traced(SCENARIOS["mistakes" if process == "disturbed" else "site operator"], faults=False)
    branches = Branches(1, on_message)
    for name, scenario in SCENARIOS.items():
        if only not in {"", name}:
            continue
        for faults in (False, True):
            if branches.branch(f"{name}{', with faults' if faults else ''}"):
                branches.end(traced(scenario, faults=faults))
    branches.finish()
    del held
    if failures:
        sys.exit("\n".join(failures))
    json.dump(traces, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
