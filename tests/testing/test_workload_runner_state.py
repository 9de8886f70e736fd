"""StatefulSets on the control plane of a test: names, order and claims, also when they are disturbed."""

from __future__ import annotations

from typing import Any

from steersman import Client, MergePatch, ObjectMeta, Quantity
from steersman.kinds.apps_v1 import ControllerRevision, StatefulSet, StatefulSetSpec
from steersman.kinds.core_v1 import (
    Container,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    Pod,
    PodSpec,
    PodTemplateSpec,
    VolumeResourceRequirements,
)
from steersman.kinds.meta_v1 import LabelSelector
from steersman.objects import is_true
from steersman.testing import PodOutcome, PodRunning, PodWaiting, WorkloadRunner, eventually


def stateful_set(replicas: int = 3, **more: Any) -> StatefulSet:
    labels = {"app": "db"}
    claim = PersistentVolumeClaim(
        metadata=ObjectMeta(name="data"),
        spec=PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"], resources=VolumeResourceRequirements(requests={"storage": Quantity("1Gi")})
        ),
    )
    spec = StatefulSetSpec(
        replicas=replicas,
        selector=LabelSelector(match_labels=labels),
        template=PodTemplateSpec(
            metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="db", image="db:1")])
        ),
        volume_claim_templates=[claim],
        **more,
    )
    return StatefulSet(metadata=ObjectMeta(name="db"), spec=spec)


def image(name: str) -> MergePatch:
    return MergePatch({"spec": {"template": {"spec": {"containers": [{"name": "db", "image": name}]}}}})


async def updated(client: Client, replicas: int = 3) -> StatefulSet:
    def is_updated(db: StatefulSet) -> bool:
        status = db.status
        return (
            status is not None
            and status.observed_generation == db.metadata.generation
            and status.replicas == status.available_replicas == status.updated_replicas == replicas
            and status.current_revision == status.update_revision
        )

    return await eventually(client, StatefulSet, "db", is_updated, within=30)


async def test_pods_come_one_after_the_other(control_plane) -> None:
    """An operator that relies on the first member being ready before the second one starts is tested for real."""
    client, at_creation = control_plane.client, dict[str, list[str]]()

    def outcome(pod: Pod) -> PodOutcome:
        at_creation.setdefault(pod.key.name, sorted(ready))
        ready.add(pod.key.name)
        return PodRunning()

    ready: set[str] = set()
    async with WorkloadRunner(client, outcome=outcome):
        await client.create(stateful_set())
        await updated(client)
        assert at_creation == {"db-0": [], "db-1": ["db-0"], "db-2": ["db-0", "db-1"]}
        assert {claim.key.name for claim in await client.list(PersistentVolumeClaim)} == {
            "data-db-0",
            "data-db-1",
            "data-db-2",
        }


async def test_a_stateful_set_that_is_as_it_should_be_is_not_written_to(control_plane) -> None:
    client = control_plane.client
    async with WorkloadRunner(client):
        await client.create(stateful_set())
        await updated(client)
        await client.patch(StatefulSet, "db", image("db:2"))
        await updated(client)
        await control_plane.drained()
    with control_plane.writes() as writes:
        async with WorkloadRunner(client):
            await control_plane.drained()
    assert [write for write in writes if write.kind != "Node"] == []


async def test_an_update_goes_on_where_another_runner_left_it(control_plane) -> None:
    client, broken = control_plane.client, True

    def outcome(pod: Pod) -> PodOutcome:
        return PodWaiting("ImagePullBackOff") if broken and pod.spec.containers[0].image == "db:2" else PodRunning()

    async with WorkloadRunner(client, outcome=outcome):
        await client.create(stateful_set())
        await updated(client)
        await client.patch(StatefulSet, "db", image("db:2"))
        await eventually(client, Pod, "db-2", lambda pod: pod.spec.containers[0].image == "db:2")
        await control_plane.drained()
        first = await client.get(Pod, "db-0")
        assert first.status is not None
        assert is_true(first.status.conditions, "Ready")
        assert first.spec.containers[0].image == "db:1"
    broken = False
    async with WorkloadRunner(client, outcome=outcome):
        await updated(client)
    assert {pod.spec.containers[0].image for pod in await client.list(Pod)} == {"db:2"}


async def test_members_that_are_deleted_come_again_with_their_claims(control_plane) -> None:
    client = control_plane.client
    async with WorkloadRunner(client):
        await client.create(stateful_set())
        await updated(client)
        claims = {claim.key: claim.uid for claim in await client.list(PersistentVolumeClaim)}
        for number in range(20):
            await client.patch(StatefulSet, "db", image(f"db:{number}"))
            await client.delete(Pod, f"db-{number % 3}", missing_ok=True)
        await updated(client)
        await control_plane.drained()
        assert {pod.spec.containers[0].image for pod in await client.list(Pod)} == {"db:19"}
        assert {claim.key: claim.uid for claim in await client.list(PersistentVolumeClaim)} == claims
        assert len((await client.list(ControllerRevision)).items) <= 11
