"""The namespace of a child ends, and the operator gives up for good."""

from __future__ import annotations

from simulation.calibration.defect import Defect
from simulation.calibration.mutation import Mutation

from steersman import Key, Manager, MergePatch, ObjectMeta, Resource, Spec, Status
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.patterns import child, generates
from steersman.simulation import Objects, ScenarioUser, at_rest
from steersman.simulation.runs.faults import CrashBefore


class TenantSpec(Spec):
    namespace: str


class Tenant(Resource[TenantSpec, Status], group="calibration.example.com", version="v1"):
    """People with a namespace of their own."""


def setup() -> Manager:
    manager = Manager(name="calibration")

    @generates(Tenant, children=(child(ConfigMap, across_namespaces=True),))
    def settings(tenant: Tenant) -> list[ConfigMap]:
        metadata = ObjectMeta(name="settings", namespace=tenant.spec.namespace)
        return [ConfigMap(metadata=metadata, data={"tenant": tenant.key.name})]

    manager.add(settings)
    return manager


async def namespace_renewed(user: ScenarioUser) -> None:
    """A namespace is deleted, which takes a while, and created again."""
    client = user.client
    await client.create(Namespace(metadata=ObjectMeta(name="red")))
    await client.create(Tenant(metadata=ObjectMeta(name="red"), spec=TenantSpec(namespace="red")))
    held = ObjectMeta(name="held", namespace="red", finalizers=["example.com/archive"])
    await client.create(ConfigMap(metadata=held))
    await user.settled()
    await client.delete(Namespace, "red")
    await user.settled()
    await client.patch(ConfigMap, Key("red", "held"), MergePatch({"metadata": {"finalizers": None}}))
    await user.settled()
    await client.create(Namespace(metadata=ObjectMeta(name="red")))
    await user.settled()


def has_settings(objects: Objects) -> bool:
    """A Tenant whose namespace exists has its settings there."""
    there = {namespace.key.name for namespace in objects.list(Namespace) if not namespace.deleting}
    tenants = [tenant.spec.namespace for tenant in objects.list(Tenant) if tenant.spec.namespace in there]
    return all(objects.get(ConfigMap, Key(namespace, "settings")) is not None for namespace in tenants)


DEFECT = Defect(
    was="The end of a child's namespace counted as the end of its owner's, so the owner was never reconciled again.",
    fixed_in="ed635e53",
    mutations=(
        Mutation(
            "steersman.patterns.children.apply:_StateApply._written",
            "if problem is None or output.identity.key.namespace == owner.namespace:\n            raise",
            "raise",
        ),
        Mutation(
            "steersman.patterns.machine.errors:own_namespace_ends",
            'cause.reason == "NamespaceTerminating" and cause.message == own',
            'cause.reason == "NamespaceTerminating"',
        ),
    ),
    setup=setup,
    workload=namespace_renewed,
    checks=(at_rest(has_settings, "a Tenant has its settings"),),
    faults=(CrashBefore(),),
    oracle="check",
    words="a Tenant has its settings",
)
