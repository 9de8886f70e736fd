"""view, edit and admin are what Kubernetes has, and grow with the roles that are labeled as theirs."""

from __future__ import annotations

import asyncio

import pytest

from steersman import Client, ObjectMeta
from steersman.apiserver import Attributes, Plugin
from steersman.client import Added, Modified
from steersman.controlplane import ControlPlane
from steersman.errors import Forbidden
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.kinds.meta_v1 import LabelSelector
from steersman.kinds.rbac_v1 import AggregationRule, ClusterRole, PolicyRule, RoleBinding, RoleRef, Subject
from steersman.objects.difference import to_json
from steersman.testing import Engine

NAMES = ("admin", "edit", "view", "system:aggregate-to-admin", "system:aggregate-to-edit", "system:aggregate-to-view")


async def rules_of(client: Client, name: str) -> list[dict]:
    return [to_json(rule) for rule in (await client.get(ClusterRole, name)).rules or []]


def trusting(role: str) -> RoleBinding:
    return RoleBinding(
        metadata=ObjectMeta(name=role, namespace="default"),
        subjects=[Subject(kind="User", name="ann", api_group="rbac.authorization.k8s.io")],
        role_ref=RoleRef(kind="ClusterRole", name=role, api_group="rbac.authorization.k8s.io"),
    )


async def test_who_may_view_may_not_edit():
    async with ControlPlane(authorizer="rbac") as plane, Client(plane.transport("ann")) as ann:
        page = ConfigMap(metadata=ObjectMeta(name="page", namespace="default"))
        await plane.client.create(trusting("view"))
        assert list(await ann.list(ConfigMap, namespace="default")) == []
        for refused in (ann.list(Secret, namespace="default"), ann.create(page)):
            with pytest.raises(Forbidden):
                await refused
        await plane.client.create(trusting("edit"))
        await ann.create(page)


async def test_roles_of_new_kinds_are_added_and_taken_away_again():
    async with ControlPlane(authorizer="rbac") as plane:
        before = await rules_of(plane.client, "admin")
        own = ClusterRole(
            metadata=ObjectMeta(name="sites", labels={"rbac.authorization.k8s.io/aggregate-to-view": "true"}),
            rules=[PolicyRule(verbs=["get"], api_groups=["web.example.com"], resources=["sites"])],
        )
        await plane.client.create(own)
        await plane.settled()
        assert [each for each in await rules_of(plane.client, "admin") if each not in before] == [
            {"verbs": ["get"], "apiGroups": ["web.example.com"], "resources": ["sites"]}
        ]
        await plane.client.delete(ClusterRole, "sites")
        await plane.settled()
        assert await rules_of(plane.client, "admin") == before


class Denial(Plugin):
    """Denies every update of the role ``aaa``."""

    async def validate(self, attributes: Attributes) -> None:
        if attributes.operation == "UPDATE" and attributes.name == "aaa":
            raise attributes.refused("as told")


async def test_a_role_that_cannot_be_written_keeps_no_other_from_growing():
    def growing(name: str) -> ClusterRole:
        chosen = [LabelSelector(match_labels={"test": "yes"})]
        return ClusterRole(
            metadata=ObjectMeta(name=name), aggregation_rule=AggregationRule(cluster_role_selectors=chosen)
        )

    async with ControlPlane(authorizer="rbac", admission=[Denial()]) as plane:
        for name in ("aaa", "zzz"):
            await plane.client.create(growing(name))
        rules = [PolicyRule(verbs=["get"], api_groups=["web.example.com"], resources=["sites"])]
        await plane.client.create(ClusterRole(metadata=ObjectMeta(name="one", labels={"test": "yes"}), rules=rules))
        async with (
            asyncio.timeout(30),
            plane.client.watch(ClusterRole, fields={"metadata.name": "zzz"}, initial_events=True) as events,
        ):
            async for event in events:
                if isinstance(event, Added | Modified) and event.object.rules:
                    break
        assert await rules_of(plane.client, "aaa") == []


async def test_they_are_those_of_kubernetes():
    async with (
        Engine.start(controller_manager=True) as engine,
        engine.client(field_manager="tests") as client,
        ControlPlane(authorizer="rbac") as plane,
    ):
        for name in NAMES:
            role = None
            async with client.watch(ClusterRole, fields={"metadata.name": name}) as events:
                async for event in events:
                    role = event.object
                    if len(role.rules or []) >= len(await rules_of(plane.client, name)):
                        break
            ours = await plane.client.get(ClusterRole, name)
            assert [to_json(each) for each in role.rules] == [to_json(each) for each in ours.rules], name
            assert role.metadata.labels == ours.metadata.labels
