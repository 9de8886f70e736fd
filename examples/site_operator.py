"""A Site becomes a Deployment and a Service, and reports its status.

Shows: children by server-side apply, ownership, status from a child, the scale subresource.

Run it with `steersman run examples.site_operator --install-crds`, and try:

    kubectl apply -f - <<< '{"apiVersion": "web.example.com/v1", "kind": "Site", "metadata": {"name": "home"},
                             "spec": {"image": "nginx:1.27", "replicas": 2}}'
    kubectl get sites,deployments,services
    kubectl scale site home --replicas=3
    kubectl delete deployment home        # it comes back
    kubectl delete site home              # everything goes
"""

from typing import Annotated

from steersman import (
    Condition,
    Context,
    Done,
    Manager,
    ObjectMeta,
    PrinterColumn,
    Request,
    Resource,
    Spec,
    Status,
    set_condition,
    utc_now,
)
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.core_v1 import (
    Container,
    ContainerPort,
    PodSpec,
    PodTemplateSpec,
    Service,
    ServicePort,
    ServiceSpec,
)
from steersman.kinds.meta_v1 import LabelSelector
from steersman.markers import Maximum, Minimum, Rule
from steersman.objects import ScaleSubresource, is_true


class SiteSpec(Spec):
    image: str
    replicas: Annotated[int, Minimum(0), Maximum(50)] = 1


class SiteStatus(Status):
    replicas: int = 0
    ready_replicas: int = 0


class Site(
    Resource[SiteSpec, SiteStatus],
    group="web.example.com",
    version="v1",
    scale=ScaleSubresource(),
    rules=(Rule(rule="self.metadata.name.matches('^[a-z][-a-z0-9]{0,62}$')", message="not a name for a Service"),),
    columns=(
        PrinterColumn(name="Image", type="string", json_path=".spec.image"),
        PrinterColumn(name="Ready", type="integer", json_path=".status.readyReplicas"),
    ),
):
    """A web site served by a Deployment."""


def labels_of(site: Site) -> dict[str, str]:
    return {"app.kubernetes.io/name": "site", "app.kubernetes.io/instance": site.key.name}


def deployment_for(site: Site) -> Deployment:
    web = Container(name="web", image=site.spec.image, ports=[ContainerPort(name="http", container_port=80)])
    return Deployment(
        metadata=ObjectMeta(name=site.key.name, namespace=site.key.namespace),
        spec=DeploymentSpec(
            replicas=site.spec.replicas,
            selector=LabelSelector(match_labels=labels_of(site)),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels_of(site)), spec=PodSpec(containers=[web])),
        ),
    )


def service_for(site: Site) -> Service:
    return Service(
        metadata=ObjectMeta(name=site.key.name, namespace=site.key.namespace),
        spec=ServiceSpec(selector=labels_of(site), ports=[ServicePort(name="http", port=80, target_port="http")]),
    )


def status_from(site: Site, deployment: Deployment) -> SiteStatus:
    status, seen = site.status or SiteStatus(), deployment.status
    if seen is None or (seen.observed_generation or 0) < deployment.generation:
        return status  # its controller has not observed the change: the status is old
    status.observed_generation = site.generation
    status.replicas = seen.replicas or 0
    status.ready_replicas = seen.ready_replicas or 0
    available = is_true(seen.conditions, "Available")
    condition = Condition(
        type="Available",
        status="True" if available else "False",
        reason="MinimumReplicasAvailable" if available else "MinimumReplicasUnavailable",
        message=f"{status.ready_replicas} of {site.spec.replicas} replicas are ready",
        observed_generation=site.generation,
    )
    set_condition(status, condition, now=utc_now())
    return status


async def reconcile(ctx: Context, request: Request) -> Done:
    site = await ctx.client.find(Site, request.key)
    if site is None or site.deleting:
        return Done()  # the garbage collector deletes what it owned; do not create anything now
    # force: these fields are ours, whichever program wrote them in between
    deployment = await ctx.client.apply(deployment_for(site), owner=site, force=True)
    await ctx.client.apply(service_for(site), owner=site, force=True)
    site.status = status_from(site, deployment)
    await ctx.client.save(site)  # sends nothing if nothing changed
    return Done()


manager = Manager(name="site-operator")
manager.controller(Site).owns(Deployment).owns(Service).run_with(reconcile)
