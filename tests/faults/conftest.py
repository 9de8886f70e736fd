"""One engine to break, apart from the one that other tests share, and one world on it."""

import pytest
from faults.workload import OPERATOR, World

from samples.site import Site
from steersman import Client, ObjectMeta
from steersman.kinds.rbac_v1 import ClusterRoleBinding, RoleRef, Subject
from steersman.testing import Engine, FaultProxy
from steersman.testing.plugin import namespace_for


@pytest.fixture(scope="package")
def broken_engine():
    with Engine.start() as engine:
        yield engine


@pytest.fixture(scope="package")
async def world(broken_engine):
    """Two hundred Sites, made once; every test runs an operator of its own over them."""
    async with Client.connect(kubeconfig=broken_engine.kubeconfig, field_manager="user") as client:
        await client.install(Site)
        await client.create(
            ClusterRoleBinding(
                metadata=ObjectMeta(name=OPERATOR),
                role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name="cluster-admin"),
                subjects=[Subject(kind="User", name=OPERATOR, api_group="rbac.authorization.k8s.io")],
            )
        )
        await broken_engine.create_namespace("world")
        world = World(broken_engine, client, "world", 200)
        await world.create()
        yield world


@pytest.fixture
async def proxy(broken_engine):
    async with FaultProxy(broken_engine.url) as proxy:
        yield proxy
    assert proxy.connections == 0


@pytest.fixture
async def room(broken_engine, request):
    """The name of a namespace that is this test's alone."""
    name = namespace_for(request.node.name)
    await broken_engine.create_namespace(name)
    return name


@pytest.fixture
async def another_room(broken_engine, room):
    """The name of a second namespace."""
    name = f"other-{room[-50:].lstrip('-')}"
    await broken_engine.create_namespace(name)
    return name
