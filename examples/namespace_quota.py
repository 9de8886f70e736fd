"""A QuotaClass gives the same ResourceQuota to every namespace that chooses it by a label.

Shows: a cluster-scoped resource that owns objects in many namespaces, and a kind with a metadata-only cache:
the operator needs only the labels of Namespaces, so nothing else is transferred or cached.

Run it with `steersman run examples.namespace_quota --install-crds`, and try:

    kubectl apply -f - <<< '{"apiVersion": "quota.example.com/v1", "kind": "QuotaClass", "metadata": {"name": "small"},
                             "spec": {"hard": {"pods": 10, "requests.cpu": "2"}}}'
    kubectl label namespace default quota.example.com/class=small
    kubectl describe quota --namespace=default
    kubectl get quotaclasses
    kubectl label namespace default quota.example.com/class-
"""

from contextlib import suppress

from steersman import Context, Done, Key, Manager, ObjectMeta, PrinterColumn, Quantity, Request, Resource, Spec, Status
from steersman.controller import View, labels_changed
from steersman.errors import NotFound
from steersman.kinds.core_v1 import Namespace, ResourceQuota, ResourceQuotaSpec
from steersman.markers import Rule

CLASS = "quota.example.com/class"


class QuotaClassSpec(Spec):
    hard: dict[str, Quantity]


class QuotaClassStatus(Status):
    namespaces: int = 0


class QuotaClass(
    Resource[QuotaClassSpec, QuotaClassStatus],
    group="quota.example.com",
    version="v1",
    plural="quotaclasses",
    scope="Cluster",
    rules=(Rule(rule="self.metadata.name.size() <= 63", message="a longer name does not fit into a label"),),
    columns=(PrinterColumn(name="Namespaces", type="integer", json_path=".status.namespaces"),),
):
    """The quota of a class of namespaces."""


def class_of(namespace: View[Namespace]) -> list[Key]:
    """Map a namespace to its class. Called for the old and the new state, so a change triggers both classes."""
    chosen = namespace.labels.get(CLASS)
    return [Key("", chosen)] if chosen else []


def quota_for(quota_class: QuotaClass, namespace: str) -> ResourceQuota:
    return ResourceQuota(
        metadata=ObjectMeta(
            name=f"class-{quota_class.key.name}", namespace=namespace, labels={CLASS: quota_class.key.name}
        ),
        spec=ResourceQuotaSpec(hard=quota_class.spec.hard),
    )


async def reconcile(ctx: Context, request: Request) -> Done:
    quota_class = await ctx.client.find(QuotaClass, request.key)
    if quota_class is None or quota_class.deleting:
        return Done()  # the garbage collector deletes its quotas
    chosen_by = {
        namespace.key.name
        for namespace in await ctx.client.metadata.list(Namespace, labels={CLASS: request.key.name})
        if not namespace.deleting  # the server accepts no new objects there
    }
    for namespace in sorted(chosen_by):
        await ctx.client.apply(quota_for(quota_class, namespace), owner=quota_class, force=True)
    for quota in await ctx.client.owned_by(ResourceQuota, quota_class):
        if quota.key.namespace not in chosen_by:
            await ctx.client.delete(quota, missing_ok=True)
    status = quota_class.ensure_status()
    status.observed_generation = quota_class.generation
    status.namespaces = len(chosen_by)
    with suppress(NotFound):  # deleted meanwhile: its quotas go with it
        await ctx.client.save(quota_class)
    return Done()


manager = Manager(name="namespace-quota")
(
    manager.controller(QuotaClass)
    .owns(ResourceQuota)
    .watches(Namespace, map=class_of, when=labels_changed(), metadata_only=True)
    .run_with(reconcile)
)
