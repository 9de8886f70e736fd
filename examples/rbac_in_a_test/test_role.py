"""Tests of what an operator's Role allows and denies, in milliseconds.

Shows: an API server in the test's own process that evaluates RBAC, and a client that acts as the operator's service account.

`role.yaml` is the file that is deployed. Try `pytest examples/rbac_in_a_test`, remove `watch` from the Role, and try again.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from steersman import ApiServer, Client, MergePatch, ObjectMeta
from steersman.client import Added
from steersman.errors import Forbidden
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.core_v1 import ConfigMap, Container, Namespace, PodSpec, PodTemplateSpec, Secret
from steersman.kinds.meta_v1 import LabelSelector
from steersman.manifests import load_manifests

ROLE = Path(__file__).with_name("role.yaml")
LABELS = {"site": "home"}
POD = PodTemplateSpec(
    metadata=ObjectMeta(labels=LABELS), spec=PodSpec(containers=[Container(name="web", image="nginx:1.27")])
)
HOME = Deployment(
    metadata=ObjectMeta(name="home"), spec=DeploymentSpec(selector=LabelSelector(match_labels=LABELS), template=POD)
)


@pytest.fixture
async def operator() -> AsyncIterator[Client]:
    """A client with the operator's permissions."""
    async with ApiServer(authorizer="rbac") as server, Client(server.transport()) as admin:
        for name in ("shop", "other"):
            await admin.create(Namespace(metadata=ObjectMeta(name=name)))
        for manifest in load_manifests(ROLE.read_bytes(), file=ROLE):
            await admin.create(manifest)
        await admin.create(ConfigMap(metadata=ObjectMeta(name="site-defaults", namespace="shop")))
        account = server.transport("system:serviceaccount:shop:site-operator")
        async with Client(account, namespace="shop") as client:
            yield client


async def test_it_can_do_its_work(operator: Client) -> None:
    await operator.get(ConfigMap, "site-defaults")
    await operator.create(HOME)
    await operator.patch(Deployment, "home", MergePatch({"spec": {"replicas": 2}}))
    async with operator.watch(Deployment, namespace="shop", initial_events=True) as events:
        assert isinstance(await anext(aiter(events)), Added)


async def test_it_cannot_do_more(operator: Client) -> None:
    with pytest.raises(Forbidden, match='cannot delete resource "deployments" in API group "apps"'):
        await operator.delete(Deployment, "home")
    with pytest.raises(Forbidden, match='cannot list resource "secrets"'):
        await operator.list(Secret, namespace="shop")
    with pytest.raises(Forbidden, match='cannot get resource "configmaps"'):
        await operator.get(ConfigMap, "not-listed")
    with pytest.raises(Forbidden, match='in the namespace "other"'):
        await operator.get(Deployment, "other/home")
