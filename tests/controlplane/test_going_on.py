"""Controllers go on: after refusals, after restarts, after gaps, and when kinds come and go."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

from controlplane.families import GARBAGE, config_map, family, names

from steersman import Client, Kind, Unstructured
from steersman.aio import Supervisor
from steersman.apiserver import Attributes, Plugin
from steersman.client import MergePatch
from steersman.controlplane import ControlPlane, is_controller
from steersman.errors import NotFound
from steersman.kinds.core_v1 import ConfigMap, Namespace, ServiceAccount
from steersman.objects import Key, ObjectMeta

CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
BOAT = Kind("boats.example.com/v1", "Boat")


def definition(scope: str = "Namespaced") -> Unstructured:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return Unstructured(
        {
            "apiVersion": CRD.api_version,
            "kind": CRD.kind,
            "metadata": {"name": "boats.boats.example.com"},
            "spec": {
                "group": "boats.example.com",
                "names": {"kind": "Boat", "plural": "boats"},
                "scope": scope,
                "versions": [version],
            },
        }
    )


def boat(name: str = "raft", **metadata: Any) -> Unstructured:
    full = {"name": name, "namespace": "default", **metadata}
    return Unstructured({"apiVersion": BOAT.api_version, "kind": BOAT.kind, "metadata": full})


class Refusing(Plugin):
    """Refuses what controllers send, so many times."""

    times = 0

    async def admit(self, attributes: Attributes) -> None:
        if is_controller(attributes.request.user.name) and self.times > 0:
            self.times -= 1
            raise attributes.refused("not now")


async def test_what_is_refused_is_tried_again(caplog):
    refusing = Refusing()
    async with ControlPlane(admission=[refusing]) as plane, asyncio.timeout(30):
        client = plane.client
        await client.create(Namespace(metadata=ObjectMeta(name="shop")))
        await client.create(config_map("held", namespace="shop", finalizers=["example.com/hold"]))
        owner, _ = await family(client)
        await plane.settled()
        with caplog.at_level(logging.CRITICAL, logger="steersman.controller"):
            refusing.times = 3
            await client.create(Namespace(metadata=ObjectMeta(name="yard")))
            await plane.settled()
            assert await client.find(ServiceAccount, "yard/default") is not None
            refusing.times = 3
            await client.delete(Namespace, "shop")
            await plane.settled()
        assert refusing.times == 0
        found = await client.get(Namespace, "shop")
        assert found.status is not None
        said = {each.type: each.reason for each in found.status.conditions or ()}
        assert said["NamespaceContentRemaining"] == "SomeResourcesRemain"
        await client.delete(ConfigMap, owner.key)
        await plane.settled()
        assert await names(client) == []


async def test_deletions_go_on_after_a_restart(tmp_path):
    async with ControlPlane(folder=tmp_path, controllers=[]) as plane:
        client = plane.client
        await client.create(Namespace(metadata=ObjectMeta(name="shop")))
        await client.create(config_map("map", namespace="shop"))
        await client.delete(Namespace, "shop")
        background, _ = await family(client)
        await client.delete(ConfigMap, background.key)
        for policy in ("Foreground", "Orphan"):
            owner = await client.create(config_map(policy.lower()))
            await client.create(config_map(f"child-of-{policy.lower()}", owner))
            await client.delete(ConfigMap, owner.key, propagation=policy)  # type: ignore[arg-type]
        await plane.settled()
        assert await names(client) == [
            "child",
            "child-of-foreground",
            "child-of-orphan",
            "foreground",
            "orphan",
        ]
    async with ControlPlane(folder=tmp_path) as plane:
        await plane.settled()
        client = plane.client
        assert await names(client) == ["child-of-orphan"]
        assert await client.find(Namespace, "shop") is None
        # ended in the middle of its work
        owner = await client.create(config_map("owner"))
        for number in range(20):
            await client.create(config_map(f"child-{number}", owner))
        await client.delete(ConfigMap, owner.key)
    async with ControlPlane(folder=tmp_path) as plane:
        await plane.settled()
        assert await names(plane.client) == ["child-of-orphan"]


async def test_a_gap_in_the_history_loses_nothing():
    async with ControlPlane() as plane:
        owner, _ = await family(plane.client)
        await plane.settled()
        storage = plane.server.storage
        # In one step, so that no watcher can have read the deletion before it is forgotten.
        key = "core/configmaps/default/owner"
        record, _ = await storage.get(key)
        assert record is not None
        await storage.delete(key, expect=record.modified)
        await storage.compact(await storage.revision())
        await plane.settled()
        assert await names(plane.client) == []
        assert await plane.client.find(ConfigMap, owner.key) is None


async def test_kinds_that_come_are_collected_at_once():
    async with ControlPlane() as plane, asyncio.timeout(60):
        client = plane.client
        reference = {"apiVersion": BOAT.api_version, "kind": BOAT.kind, "name": "raft"}
        unknown = {**reference, "uid": "00000000-0000-4000-8000-000000000000"}
        held = Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held"}})
        held.metadata["ownerReferences"] = [unknown]
        await client.create(held)
        await plane.settled()
        assert await names(client) == ["held"]
        # now the server can say that there is no such owner
        await client.create(definition())
        await plane.settled()
        assert await names(client) == []
        raft = await client.create(boat())
        child = Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}})
        child.metadata["ownerReferences"] = [{**reference, "uid": raft.uid}]
        await client.create(child)
        await client.create(boat("dinghy", ownerReferences=[{**reference, "uid": raft.uid}]))
        # with their definition all instances go, and what they own
        await client.delete(CRD, "boats.boats.example.com")
        await plane.settled()
        assert await client.find(CRD, "boats.boats.example.com") is None
        assert await names(client) == []


async def test_a_kind_may_come_back_in_another_scope():
    async with ControlPlane() as plane, asyncio.timeout(60):
        for scope in ("Namespaced", "Cluster"):
            # A client remembers what it discovered.
            async with Client(plane.transport()) as client:
                await client.create(definition(scope))
                owner = await client.create(config_map("owner"))
                reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid}
                raft = boat(ownerReferences=[reference])
                if scope == "Cluster":
                    del raft.metadata["namespace"]
                await client.create(raft)
                await client.delete(ConfigMap, owner.key)
                await plane.settled()
                left = await client.list(BOAT)
                # an object without a namespace has no owner that has one
                assert len(left) == (scope == "Cluster")
                await client.delete(CRD, "boats.boats.example.com")
                await plane.settled()
                assert await client.find(CRD, "boats.boats.example.com") is None


async def test_a_definition_that_waits_for_a_finalizer_is_not_waited_for():
    async with ControlPlane() as plane, asyncio.timeout(60):
        client = plane.client
        await client.create(definition())
        await client.create(boat(finalizers=["example.com/hold"]))
        await client.delete(CRD, "boats.boats.example.com")
        await plane.settled()
        assert await client.find(CRD, "boats.boats.example.com") is not None
        await client.patch(BOAT, Key("default", "raft"), MergePatch({"metadata": {"finalizers": None}}))
        await plane.settled()
        assert await client.find(CRD, "boats.boats.example.com") is None


async def test_an_object_that_changes_all_the_time_is_collected_too():
    async with ControlPlane(controllers=[GARBAGE]) as plane, asyncio.timeout(60):
        client = plane.client
        owner, child = await family(client)
        changes = 0

        async def change() -> None:
            nonlocal changes
            with suppress(NotFound):
                while True:
                    changes += 1
                    await client.patch(ConfigMap, child.key, MergePatch({"data": {"number": str(changes)}}))

        async with Supervisor() as tasks:
            tasks.start(change(), name="changes")
            await client.delete(ConfigMap, owner.key)
        assert changes > 1
