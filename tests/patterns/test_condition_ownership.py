"""Conditions on foreign kinds: what the kubelet says of a Pod decides who gets traffic."""

from __future__ import annotations

import pytest

from samples.postgres import Postgres, managed, settings, statuses
from steersman import MergePatch, ObjectMeta
from steersman.controller import Done
from steersman.kinds.core_v1 import ConfigMap, Container, Pod, PodSpec
from steersman.patterns import Outputs, StateMachine, Wait, generates, reconciles, state

NOT_READY = {"type": "Ready", "status": "False", "reason": "ContainersNotReady"}


async def pod(client):
    spec = PodSpec(containers=[Container(name="main", image="web:1")])
    await client.create(Pod(metadata=ObjectMeta(name="web"), spec=spec))
    await client.patch(Pod, "web", MergePatch({"status": {"conditions": [NOT_READY]}}), subresource="status")


async def test_nothing_is_said_in_the_status_of_a_foreign_kind(control_plane):
    @generates(Pod, children=(ConfigMap,))
    def notes(pod: Pod) -> list[ConfigMap]:
        return [settings("notes")]

    client = control_plane.client
    await pod(client)
    async with control_plane.running(managed(notes)) as operator:
        await operator.drained()
        assert await client.find(ConfigMap, "notes") is not None
        assert statuses(await client.get(Pod, "web")) == {"Ready": "False"}
        await client.patch(Pod, "web", MergePatch({"metadata": {"labels": {"steersman.dev/suspend": "yes"}}}))
        await operator.drained()
        assert statuses(await client.get(Pod, "web")) == {"Ready": "False"}


async def test_a_condition_with_a_domain_is_written_beside_those_of_others(control_plane):
    @reconciles(Pod, ready="example.com/Noted")
    async def notes(pod: Pod, out: Outputs) -> Done | Wait:
        return Wait("for a note")

    client = control_plane.client
    await pod(client)
    async with control_plane.running(managed(notes)) as operator:
        await operator.drained()
        assert statuses(await client.get(Pod, "web")) == {"Ready": "False", "example.com/Noted": "False"}
        await client.patch(Pod, "web", MergePatch({"metadata": {"labels": {"steersman.dev/suspend": "yes"}}}))
        await operator.drained()
        assert statuses(await client.get(Pod, "web"))["example.com/Suspended"] == "True"


def machine(condition, **options):
    class Notes(StateMachine[Pod], **options):
        @state(condition=condition)
        async def note(self, pod: Pod, out: Outputs) -> Done:
            return Done()

    return Notes


FOREIGN = "Pod is a kind of another program, which sets its own conditions; put your domain before yours: "
KUBERNETES = "has a domain of Kubernetes; use your own domain"
UNNAMED = "Steersman writes no condition unless the summary is named too: "


@pytest.mark.parametrize(
    ("condition", "options", "words"),
    [
        ("Noted", {"ready": "Ready"}, f'{FOREIGN}ready="example.com/Ready"'),
        ("Noted", {"ready": "example.com/Ready"}, f'{FOREIGN}condition="example.com/Noted"'),
        ("example.com/Noted", {"ready": "pods.k8s.io/Ready"}, f'ready="pods.k8s.io/Ready" {KUBERNETES}'),
        ("example.com/Noted", {}, f'{UNNAMED}write ready="example.com/Ready"'),
    ],
)
def test_what_could_collide_is_refused(condition, options, words):
    with pytest.raises(TypeError) as error:
        machine(condition, **options)
    assert words in str(error.value)


def test_a_second_operator_of_ones_own_kind_may_leave_out_the_domain():
    @reconciles(Postgres, ready="Noted")
    async def noted(pg: Postgres, out: Outputs) -> Done:
        return Done()

    assert noted.blueprint().conditions == ("Noted",)
