"""Kinds whose CRD is not installed, was deleted, or lacks the status; and declarations that an earlier version had."""

from __future__ import annotations

from samples.postgres import managed, settings
from steersman import JsonPatch, ObjectMeta, Resource, Spec, Status
from steersman.kinds.apiextensions_v1 import CustomResourceDefinition
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import generates
from steersman.testing import eventually

GROUP = "missing.test.steersman.dev"
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


class CrateSpec(Spec):
    size: int = 1


class Crate(Resource[CrateSpec, None], group=GROUP, version="v1"):
    """A child whose CRD comes and goes."""


class Plain(Resource[CrateSpec, Status], group=GROUP, version="v1"):
    """An owner whose CRD on the server has no status."""


async def test_a_kind_without_the_status_subresource_is_reported(plane):
    client = plane.client
    await plane.install(Plain)
    without = JsonPatch.parse([{"op": "remove", "path": "/spec/versions/0/subresources"}])
    await client.patch(CustomResourceDefinition, f"plains.{GROUP}", without)

    @generates(Plain, children=(ConfigMap,))
    def operator(plain):
        return [settings("page")]

    async with plane.running(managed(operator), install=False, crashes=True) as running:
        await client.create(Plain(metadata=ObjectMeta(name="x"), spec=CrateSpec()))
        words = "has no status subresource"
        await eventually(lambda: any(words in str(run.last_error) for _, run in running.runs_of("x")))
