"""Jobs on the control plane of a test: they complete, fail, wait and go, also when they are disturbed."""

from __future__ import annotations

from typing import Any

import pytest

from steersman import ObjectMeta
from steersman.kinds.batch_v1 import Job, JobSpec, PodFailurePolicy, PodFailurePolicyRule
from steersman.kinds.core_v1 import Container, Event, Pod, PodSpec, PodTemplateSpec
from steersman.objects import find_condition, is_true
from steersman.testing import PodFailed, PodOutcome, PodRunning, PodSucceeded, WorkloadRunner, eventually


def job(**more: Any) -> Job:
    pod = PodSpec(containers=[Container(name="work", image="work:1")], restart_policy="Never")
    return Job(metadata=ObjectMeta(name="work"), spec=JobSpec(template=PodTemplateSpec(spec=pod), **more))


def condition(kind: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": "True"}]}}


def succeeds(_: Pod) -> PodOutcome:
    return PodSucceeded()


async def test_every_pod_is_counted_once_and_then_nothing_is_written(control_plane) -> None:
    client = control_plane.client
    async with WorkloadRunner(client, outcome=succeeds):
        await client.create(job(completions=20, parallelism=7))
        found = await eventually(client, Job, "work", has=condition("Complete"), within=30)
        await control_plane.drained()
        assert found.status is not None
        assert (found.status.succeeded, found.status.failed) == (20, None)
        assert len((await client.list(Pod)).items) == 20
    with control_plane.writes() as writes:
        async with WorkloadRunner(client, outcome=succeeds):
            await control_plane.drained()
    assert [write for write in writes if write.kind != "Node"] == []


async def test_counting_goes_on_where_another_runner_left_it(control_plane) -> None:
    """Pods that end while no controller runs are neither lost nor counted twice."""
    client, over = control_plane.client, set[str]()

    def outcome(pod: Pod) -> PodOutcome:
        return PodSucceeded() if pod.key.name in over else PodRunning()

    for _ in range(3):
        async with WorkloadRunner(client, outcome=outcome) as runner:
            if await client.find(Job, "work") is None:
                await client.create(job(completions=6, parallelism=2))
            await eventually(client, Job, "work", lambda work: work.status is not None and work.status.ready == 2)
            over |= {pod.key.name for pod in await client.list(Pod)}
            runner.look_again()
    async with WorkloadRunner(client, outcome=succeeds):
        found = await eventually(client, Job, "work", has=condition("Complete"), within=30)
    assert found.status is not None
    assert (found.status.succeeded, found.status.failed) == (6, None)
    assert len((await client.list(Pod)).items) == 6


async def test_failed_pods_are_replaced_with_growing_delays(control_plane, clock) -> None:
    """The backoff limit of a Job is tested without waiting for it."""
    client = control_plane.client
    async with WorkloadRunner(client, outcome=lambda _: PodFailed("OOMKilled", 137)):
        await client.create(job(backoff_limit=3))
        pods = list[int]()
        for seconds in (0, 11, 21, 41):
            await clock.advance(seconds)
            await control_plane.drained()
            pods.append(len((await client.list(Pod)).items))
        assert pods == [1, 2, 3, 4]
        work = await client.get(Job, "work")
        assert work.status is not None
        failed = find_condition(work.status.conditions, "Failed")
        assert failed is not None
        assert failed.reason == "BackoffLimitExceeded"
        assert work.status.failed == 4


async def test_a_finished_job_goes_after_its_time(control_plane, clock) -> None:
    client = control_plane.client
    async with WorkloadRunner(client, outcome=succeeds):
        await client.create(job(ttl_seconds_after_finished=3600))
        await eventually(client, Job, "work", has=condition("Complete"))
        await clock.advance(3500)
        assert await client.find(Job, "work") is not None
        await clock.advance(200)
        await control_plane.drained()
        assert await client.find(Job, "work") is None
        assert not (await client.list(Pod)).items


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
async def test_a_job_is_deleted_while_it_runs(control_plane, propagation) -> None:
    """No Pod is held up by a finalizer of a Job that is gone."""
    client = control_plane.client
    async with WorkloadRunner(client):
        await client.create(job(completions=3, parallelism=3))
        await eventually(client, Job, "work", lambda work: work.status is not None and work.status.ready == 3)
        await client.delete(Job, "work", propagation=propagation)
        await eventually(client, Job, "work", gone=True)
        await control_plane.drained()
        pods = (await client.list(Pod)).items
        assert len(pods) == (3 if propagation == "Orphan" else 0)
        assert [pod.metadata.finalizers for pod in pods] == [None] * len(pods)


async def test_a_policy_that_the_runner_does_not_follow_is_said(control_plane) -> None:
    """A test must not pass because a policy was ignored."""
    client = control_plane.client
    rule = PodFailurePolicyRule(action="Ignore", on_exit_codes={"operator": "In", "values": [3]})
    async with WorkloadRunner(client, outcome=succeeds):
        await client.create(job(pod_failure_policy=PodFailurePolicy(rules=[rule])))
        await control_plane.drained()
        work = await client.get(Job, "work")
        assert work.status is None or not is_true(work.status.conditions, "Complete")
        said = [event.message or "" for event in await client.list(Event) if event.reason == "NotSupported"]
        assert said == ["WorkloadRunner does not support spec.podFailurePolicy: it ignores the Job"]
