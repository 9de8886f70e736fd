from __future__ import annotations

import asyncio
import json

import pytest

from steersman.testing import Engine

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        },
    },
}


async def _count(engine: Engine, kinds: str, count: int) -> None:
    """Wait until there are exactly so many."""
    while len((await engine.kubectl("get", kinds, "--namespace=shop", "--output=name")).split()) != count:  # noqa: ASYNC110
        await asyncio.sleep(0.1)


@pytest.mark.slow
async def test_workloads_become_pods_and_deletion_cascades() -> None:
    """With a controller manager a Deployment has Pods, and a namespace is deleted with everything in it."""
    async with Engine.start(controller_manager=True) as engine, asyncio.timeout(60):
        assert engine.controller_manager.running
        await engine.create_namespace("shop")
        await engine.kubectl("create", "--filename=-", stdin=json.dumps(DEPLOYMENT))
        await _count(engine, "pods", 2)
        await engine.kubectl("delete", "deployment", "web", "--namespace=shop")
        await _count(engine, "replicasets,pods", 0)
        await engine.kubectl("create", "--filename=-", stdin=json.dumps(DEPLOYMENT))
        await engine.delete_namespace("shop")
        await engine.kubectl("wait", "--for=delete", "namespace/shop", "--timeout=50s")
