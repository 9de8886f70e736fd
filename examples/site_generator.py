"""The shortest operator: a function from a Site to a Deployment and a Service.

Shows: @generates, which adds apply, pruning, drift correction, readiness, status and events.

Run it with `steersman run examples.site_generator --install-crds`, or preview its changes with
`steersman plan examples.site_generator`.
"""

from steersman import Manager, ObjectMeta, Resource, Spec, Status, generates
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.core_v1 import Container, PodSpec, PodTemplateSpec, Service, ServicePort, ServiceSpec
from steersman.kinds.meta_v1 import LabelSelector


class SiteSpec(Spec):
    image: str
    replicas: int = 1


class Site(Resource[SiteSpec, Status], group="web.example.com", version="v1"):
    """A web site."""


@generates(Site, children=(Deployment, Service))
def sites(site: Site) -> list[Deployment | Service]:
    name, labels = ObjectMeta(name=site.key.name), {"site": site.key.name}
    web = PodSpec(containers=[Container(name="web", image=site.spec.image)])
    spec = DeploymentSpec(
        replicas=site.spec.replicas,
        selector=LabelSelector(match_labels=labels),
        template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=web),
    )
    return [
        Deployment(metadata=name, spec=spec),
        Service(metadata=name, spec=ServiceSpec(selector=labels, ports=[ServicePort(port=80)])),
    ]


manager = Manager(name="site-operator")
manager.add(sites)
