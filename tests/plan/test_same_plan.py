"""The same cluster gives the same plan, byte for byte, whatever the server picks at random and in any order of answers."""

from __future__ import annotations

from typing import Any

import msgspec

from samples import portions
from steersman import Context, Done, Manager, ObjectMeta, Outputs, Request, Resource, Spec, Status, reconciles
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.batch_v1 import Job, JobSpec
from steersman.kinds.core_v1 import (
    ConfigMap,
    Container,
    Namespace,
    Pod,
    PodSpec,
    PodTemplateSpec,
    Secret,
    Service,
    ServicePort,
    ServiceSpec,
)
from steersman.kinds.meta_v1 import LabelSelector
from steersman.kinds.rbac_v1 import RoleBinding, RoleRef, Subject
from steersman.objects import owner_reference
from steersman.patterns import child
from steersman.plan import plan_changes

RUNS = portions.count(sample=5, of=100)


class TenantSpec(Spec):
    environments: int = 2


class Tenant(Resource[TenantSpec, Status], group="same.plan.test.steersman.dev", version="v1"):
    """A tenant."""


FAR = (child(Namespace, across_namespaces=True), child(RoleBinding, across_namespaces=True))


@reconciles(Tenant, children=(*FAR, ConfigMap, Service, Deployment, Secret))
async def tenants(tenant: Tenant, out: Outputs) -> Done:
    """Children of many kinds, some of which the server normalizes, in namespaces that do not exist yet."""
    name = tenant.key.name
    for number in range(tenant.spec.environments):
        there = out.apply(Namespace(metadata=ObjectMeta(name=f"{tenant.key.namespace}-{name}-{number}")))
        at = f"{tenant.key.namespace}-{name}-{number}"
        role = RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name="admin")
        binding = RoleBinding(
            metadata=ObjectMeta(name="owners", namespace=at), role_ref=role, subjects=[Subject(kind="User", name="ada")]
        )
        out.apply(binding, after=there)
    for number in range(3):
        role = RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name="reader")
        out.apply(
            RoleBinding(
                metadata=ObjectMeta(name=f"{name}-{number}"), role_ref=role, subjects=[Subject(kind="User", name="joe")]
            )
        )
        out.apply(ConfigMap(metadata=ObjectMeta(name=f"{name}-{number}"), data={"n": str(number)}))
    out.apply(Secret(metadata=ObjectMeta(name=name), string_data={"key": "hush"}))
    ports = [ServicePort(port=80), ServicePort(name="admin", port=81)]
    ports[0].name = "web"
    out.apply(Service(metadata=ObjectMeta(name=name), spec=ServiceSpec(type="NodePort", ports=ports)))
    labels = {"app": name}
    pod = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="web", image="nginx")])
    )
    spec = DeploymentSpec(selector=LabelSelector(match_labels=labels), template=pod)
    out.apply(Deployment(metadata=ObjectMeta(name=name), spec=spec))
    return Done()


async def bare(ctx: Context, request: Request) -> Done:
    """Objects with random names, uids, addresses and ports; and one that all reconciles write."""
    client, at, name = ctx.client, request.key.namespace, request.key.name
    tenant = await client.get(Tenant, request.key)
    for _ in range(2):
        await client.create(ConfigMap(metadata=ObjectMeta(generate_name="note-", namespace=at), data={"a": "1"}))
    service = await client.create(
        Service(
            metadata=ObjectMeta(name=f"bare-{name}", namespace=at),
            spec=ServiceSpec(type="LoadBalancer", ports=[ServicePort(port=80)]),
        )
    )
    assert service.spec is not None
    found = {"address": service.spec.cluster_ip or "", "uid": service.uid}
    await client.create(
        ConfigMap(
            metadata=ObjectMeta(name=f"found-{name}", namespace=at, owner_references=[owner_reference(service)]),
            data=found,
        )
    )
    pod = PodTemplateSpec(spec=PodSpec(containers=[Container(name="web", image="nginx")], restart_policy="Never"))
    await client.create(Job(metadata=ObjectMeta(name=f"bare-{name}", namespace=at), spec=JobSpec(template=pod)))
    await client.create(Pod(metadata=ObjectMeta(generate_name="pod-", namespace=at), spec=pod.spec))
    shared = await client.live.find(ConfigMap, (at, "shared"))
    writers = ((shared.data or {}).get("writers", "") if shared else "") + name
    await client.apply(ConfigMap(metadata=ObjectMeta(name="shared", namespace=at), data={"writers": writers}))
    if tenant.spec.environments > 2:
        raise RuntimeError(f"too many environments: {tenant.spec.environments}")
    return Done()


def manager() -> Manager:
    made = Manager(name="tenants")
    made.add(tenants)
    made.controller(Tenant, name="bare").run_with(bare)
    return made


async def test_the_same_cluster_gives_the_same_plan(plane) -> None:
    client = plane.client
    await plane.install(Tenant)
    for number, name in enumerate(("zoe", "ada", "joe", "eve", "bob")):
        await client.create(Tenant(metadata=ObjectMeta(name=name), spec=TenantSpec(environments=number)))
    plans: dict[bytes, Any] = {}
    for _ in range(RUNS):
        plan = await plan_changes(manager(), client)
        plans[msgspec.json.encode(plan, enc_hook=str)] = plan
    first, *others = plans.values()
    for other in others:
        assert [each.title for each in other.changes] == [each.title for each in first.changes]
        for one, another in zip(first.changes, other.changes, strict=True):
            assert one == another
    assert not others
    # it is about something: random values, causes in order, and all that failed
    assert {each.kind for each in first.created} >= {"Pod", "Job", "Service", "Namespace", "RoleBinding"}
    shared = next(each for each in first.created if each.name == "shared")
    assert shared.after["data"] == {"writers": "adabobevejoezoe"}
    assert [each.what.split("/")[-1] for each in first.failed] == ["bob", "eve"]
