"""A quota on the control plane counts what exists, rejects what exceeds it, and gets back what is deleted."""

from __future__ import annotations

import asyncio

import pytest

from samples.stage import until
from steersman import ObjectMeta, Quantity
from steersman.controlplane import ControlPlane, quota_usage
from steersman.errors import AlreadyExists, Forbidden
from steersman.kinds.core_v1 import ConfigMap, Container, Pod, PodSpec, PodStatus, ResourceQuota, ResourceQuotaSpec


def named(name: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace="default")


def quota(**hard: str) -> ResourceQuota:
    limits = {name.replace("_", "."): Quantity(amount) for name, amount in hard.items()}
    return ResourceQuota(metadata=named("most"), spec=ResourceQuotaSpec(hard=limits))


def config(name: str) -> ConfigMap:
    return ConfigMap(metadata=named(name))


def pod(name: str) -> Pod:
    return Pod(metadata=named(name), spec=PodSpec(containers=[Container(name="main", image="example.com/main:1")]))


async def used(plane: ControlPlane) -> dict[str, str]:
    await plane.settled()
    status = (await plane.client.get(ResourceQuota, ("default", "most"))).status
    assert status is not None
    return {name: str(amount) for name, amount in (status.used or {}).items()}


async def test_a_quota_counts_what_was_there_before():
    async with ControlPlane() as plane:
        await plane.client.create(config("a"))
        await plane.client.create(quota(configmaps="2", pods="5"))
        assert await used(plane) == {"configmaps": "1", "pods": "0"}
        await plane.client.create(config("b"))
        with pytest.raises(Forbidden, match="exceeded quota: most, requested: configmaps=1, used: configmaps=2"):
            await plane.client.create(config("c"))


async def test_a_deleted_object_counts_no_more():
    async with ControlPlane() as plane:
        await plane.client.create(quota(configmaps="1"))
        await plane.settled()
        await plane.client.create(config("a"))
        await plane.client.delete(ConfigMap, ("default", "a"))
        assert await used(plane) == {"configmaps": "0"}
        await plane.client.create(config("b"))


async def test_a_pod_that_has_ended_counts_no_more():
    async with ControlPlane() as plane:
        await plane.client.create(quota(pods="1"))
        await plane.settled()
        ended = await plane.client.create(pod("a"))
        assert await used(plane) == {"pods": "1"}
        ended.status = PodStatus(phase="Succeeded")
        await plane.client.update(ended, subresource="status")
        assert await used(plane) == {"pods": "0"}


async def test_a_failed_creation_counts_no_more_after_a_while(monkeypatch):
    """The server charges a creation before it finds that the name is taken; without a deletion, a recount corrects it."""
    monkeypatch.setattr(quota_usage, "RECOUNT", 0.2)
    async with ControlPlane() as plane:
        await plane.client.create(quota(configmaps="2"))
        await plane.settled()
        await plane.client.create(config("a"))
        with pytest.raises(AlreadyExists):
            await plane.client.create(config("a"))

        async def is_corrected():
            return await used(plane) == {"configmaps": "1"}

        await until(is_corrected)
        await plane.client.create(config("b"))


async def test_a_changed_limit_counts():
    async with ControlPlane() as plane:
        made = await plane.client.create(quota(configmaps="0"))
        await plane.settled()
        with pytest.raises(Forbidden):
            await plane.client.create(config("a"))
        assert made.spec is not None
        made = await plane.client.get(ResourceQuota, ("default", "most"))
        made.spec = ResourceQuotaSpec(hard={"configmaps": Quantity(1), "count/unknown.example.com": Quantity(1)})
        await plane.client.update(made)
        assert await used(plane) == {"configmaps": "0"}
        await plane.client.create(config("a"))


async def test_many_creations_at_once_do_not_exceed_it():
    async with ControlPlane() as plane:
        await plane.client.create(quota(configmaps="10"))
        await plane.settled()
        made = (plane.client.create(config(f"a{number}")) for number in range(50))
        answers = await asyncio.gather(*made, return_exceptions=True)
        assert sum(isinstance(answer, ConfigMap) for answer in answers) == 10
        assert all(isinstance(answer, ConfigMap | Forbidden) for answer in answers)
        assert await used(plane) == {"configmaps": "10"}
