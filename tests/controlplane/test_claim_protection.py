"""A deleted claim stays while a Pod on a node mounts it, and goes after that."""

from __future__ import annotations

from steersman import MergePatch, ObjectMeta, Quantity
from steersman.kinds.core_v1 import (
    Container,
    Namespace,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodSpec,
    Volume,
    VolumeResourceRequirements,
)
from steersman.testing import Plane, consistently, eventually


def claim(*, namespace: str | None = None, finalizers: list[str] | None = None) -> PersistentVolumeClaim:
    resources = VolumeResourceRequirements(requests={"storage": Quantity("1Gi")})
    spec = PersistentVolumeClaimSpec(access_modes=["ReadWriteOnce"], resources=resources)
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name="data", namespace=namespace, finalizers=finalizers), spec=spec
    )


def pod(*, node: str | None) -> Pod:
    source = PersistentVolumeClaimVolumeSource(claim_name="data")
    spec = PodSpec(
        node_name=node,
        containers=[Container(name="main", image="example.com/main:1")],
        volumes=[Volume(name="data", persistent_volume_claim=source)],
        termination_grace_period_seconds=0,
    )
    return Pod(metadata=ObjectMeta(name="web"), spec=spec)


async def test_a_claim_that_no_pod_mounts_goes_at_once(control_plane: Plane) -> None:
    client = control_plane.client
    await client.create(claim())
    await client.delete(PersistentVolumeClaim, "data")
    await eventually(client, PersistentVolumeClaim, "data", gone=True)


async def test_a_pod_without_a_node_does_not_hold_a_claim(control_plane: Plane) -> None:
    client = control_plane.client
    await client.create(claim())
    await client.create(pod(node=None))
    await client.delete(PersistentVolumeClaim, "data")
    await eventually(client, PersistentVolumeClaim, "data", gone=True)


async def test_a_claim_stays_until_its_pod_is_gone_even_if_the_pod_has_ended(control_plane: Plane) -> None:
    client = control_plane.client
    await client.create(claim())
    await client.create(pod(node="worker"))
    await client.patch(Pod, "web", MergePatch({"status": {"phase": "Succeeded"}}), subresource="status")
    await client.delete(PersistentVolumeClaim, "data")
    await consistently(client, PersistentVolumeClaim, "data", lambda found: found.deleting, during=0.5)
    await client.delete(Pod, "web")
    await eventually(client, PersistentVolumeClaim, "data", gone=True)


async def test_the_finalizer_of_another_program_stays(control_plane: Plane) -> None:
    client = control_plane.client
    await client.create(claim(finalizers=["example.com/backup"]))
    await client.delete(PersistentVolumeClaim, "data")
    await eventually(client, PersistentVolumeClaim, "data", has={"metadata": {"finalizers": ["example.com/backup"]}})
    await client.patch(PersistentVolumeClaim, "data", MergePatch({"metadata": {"finalizers": None}}))
    await eventually(client, PersistentVolumeClaim, "data", gone=True)


async def test_a_namespace_with_a_claim_ends(control_plane: Plane) -> None:
    client = control_plane.client
    name = await control_plane.create_namespace("shop")
    await client.create(claim(namespace=name))
    await client.delete(Namespace, name)
    await eventually(client, Namespace, name, gone=True)
