"""A database as a custom resource, and a state machine for it, for tests of patterns."""

from __future__ import annotations

from typing import Any

from steersman import Client, Manager, ObjectMeta, Resource, Spec, Status
from steersman.controller import Blueprint, Done, SupportsBlueprint
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec, DeploymentStatus
from steersman.kinds.core_v1 import ConfigMap, Container, PodSpec, PodTemplateSpec
from steersman.kinds.meta_v1 import LabelSelector
from steersman.objects import PrinterColumn
from steersman.patterns import Next, Outputs, StateMachine, Wait, state

GROUP = "db.test.steersman.dev"


class PostgresSpec(Spec):
    version: str = "17"
    replicas: int = 1
    backup: str | None = None


class PostgresStatus(Status):
    endpoint: str | None = None
    restored: str | None = None


def _of_ready(name: str, field: str) -> PrinterColumn:
    return PrinterColumn(name=name, type="string", json_path=f'.status.conditions[?(@.type=="Ready")].{field}')


class Postgres(
    Resource[PostgresSpec, PostgresStatus],
    group=GROUP,
    version="v1",
    plural="postgreses",
    columns=(_of_ready("Ready", "status"), _of_ready("Reason", "reason"), _of_ready("Message", "message")),
):
    """A database."""


def postgres(name: str = "pg", **spec: Any) -> Postgres:
    """A database to create."""
    return Postgres(metadata=ObjectMeta(name=name), spec=PostgresSpec(**spec))


def deployment(name: str, replicas: int = 1) -> Deployment:
    """A child that takes its time."""
    labels = {"app": name}
    pod = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="db", image="postgres:17")])
    )
    spec = DeploymentSpec(replicas=replicas, selector=LabelSelector(match_labels=labels), template=pod)
    return Deployment(metadata=ObjectMeta(name=name), spec=spec)


def settings(name: str, **data: str) -> ConfigMap:
    """A child that is ready when it exists."""
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


class Cluster(StateMachine[Postgres], children=(Deployment, ConfigMap)):
    """A primary, and replicas that follow it."""

    @state(condition="StorageReady")
    async def storage(self, pg: Postgres, out: Outputs) -> Next | Wait:
        """Room for the data."""
        out.apply(settings(f"{pg.key.name}-storage", version=pg.spec.version))
        return Next()

    @state(condition="PrimaryReady")
    async def primary(self, pg: Postgres, out: Outputs) -> Next | Wait:
        """The one that writes."""
        out.apply(deployment(f"{pg.key.name}-primary"))
        pg.status = pg.status or PostgresStatus()
        pg.status.endpoint = f"{pg.key.name}-primary:5432"
        return Next()

    @state(condition="ReplicasReady")
    async def replicas(self, pg: Postgres, out: Outputs) -> Done | Wait:
        """Those that follow."""
        for number in range(pg.spec.replicas):
            out.apply(settings(f"{pg.key.name}-replica-{number}"))
        return Done()


def managed(*machines: SupportsBlueprint | Blueprint) -> Manager:
    """An operator of these machines."""
    manager = Manager(name="databases")
    for machine in machines:
        manager.add(machine)
    return manager


async def report(client: Client, name: str, *, ready: bool = True) -> None:
    """Do what Kubernetes' own controller would: say how a Deployment does."""
    found = await client.get(Deployment, name)
    wanted = (found.spec and found.spec.replicas) or 0
    count = wanted if ready else 0
    found.status = DeploymentStatus(
        observed_generation=found.generation,
        replicas=wanted,
        updated_replicas=wanted,
        ready_replicas=count,
        available_replicas=count,
        unavailable_replicas=wanted - count,
    )
    await client.update(found, subresource="status")


def conditions(obj: Any) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message of each condition."""
    return {each.type: (each.status, each.reason, each.message) for each in obj.status.conditions or ()}


def statuses(obj: Any) -> dict[str, str]:
    """The status of each condition."""
    return {name: status for name, (status, *_) in conditions(obj).items()}
