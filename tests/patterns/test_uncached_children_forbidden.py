"""An operator that may work in its own namespace only: it does not let go of an owner whose children it may not look for."""

from typing import Any

import pytest

from samples.postgres import GROUP, Postgres, conditions, managed, postgres
from steersman import Key, Manager, ObjectMeta
from steersman.controller import Done
from steersman.kinds.core_v1 import ConfigMap
from steersman.kinds.rbac_v1 import PolicyRule, Role, RoleBinding, RoleRef, Subject
from steersman.patterns import Outputs, child, reconciles
from steersman.testing import eventually


@pytest.fixture
def control_plane_options() -> dict[str, Any]:
    return {"authorizer": "rbac"}


@reconciles(Postgres, children=(child(ConfigMap, across_namespaces=True),))
async def across(pg: Postgres, out: Outputs) -> Done:
    out.apply(ConfigMap(metadata=ObjectMeta(name="settings", namespace=f"{pg.key.namespace}-more")))
    return Done()


async def test_an_owner_stays_where_reads_are_forbidden(control_plane):
    client, home = control_plane.client, control_plane.namespace
    far = Key(await control_plane.create_namespace(f"{home}-more"), "settings")
    async with control_plane.running(managed(across)) as operator:
        await client.create(postgres())
        await operator.drained()
    meta, rule = ObjectMeta(name="operator"), PolicyRule(api_groups=["", GROUP], resources=["*"], verbs=["*"])
    await client.create(Role(metadata=meta, rules=[rule]))
    who = Subject(api_group="rbac.authorization.k8s.io", kind="User", name="jane")
    role = RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name="operator")
    await client.create(RoleBinding(metadata=meta, role_ref=role, subjects=[who]))
    own = Manager(name="databases", namespaces=(home,))
    own.add(across)
    async with control_plane.running(own, user="jane", crashes=True):
        await client.delete(Postgres, "pg")
        deleting = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Deleting"}]}}
        found = await eventually(client, Postgres, "pg", has=deleting)
    words = conditions(found)["Ready"][-1]
    assert words.startswith("cannot list children of kind ConfigMap in all namespaces: list ConfigMap")
    assert 'User "jane" cannot list resource "configmaps" in API group "" at the cluster scope' in words
    assert await client.find(ConfigMap, far) is not None
