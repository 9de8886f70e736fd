"""A custom resource for tests, with a bit of everything that can go wrong."""

from typing import Annotated, Any, Literal

from steersman import ObjectMeta, Quantity, Resource, Spec, Status, Struct
from steersman.markers import ListMap, Maximum, Minimum, PreserveUnknownFields
from steersman.objects import ScaleSubresource

GROUP = "web.test.steersman.dev"


class Port(Struct):
    name: str
    port: Annotated[int, Minimum(1), Maximum(65535)]


class Route(Struct):
    path: str
    weight: int | None = None


class SiteSpec(Spec):
    image: str
    replicas: Annotated[int, Minimum(0), Maximum(50)] = 1
    mode: Literal["static", "dynamic"] = "static"
    ports: Annotated[list[Port], ListMap("name")] | None = None
    routes: list[Route] | None = None
    memory: Quantity | None = None
    settings: Annotated[dict[str, Any], PreserveUnknownFields()] | None = None


class SiteStatus(Status):
    ready_replicas: int = 0
    replicas: int = 0


class Site(
    Resource[SiteSpec, SiteStatus],
    group=GROUP,
    version="v1",
    short_names=("st",),
    scale=ScaleSubresource(spec_replicas_path=".spec.replicas", status_replicas_path=".status.replicas"),
):
    """A web site."""


class ThinSpec(Spec):
    """What an older program knows of a Site."""

    image: str


class ThinSite(Resource[ThinSpec, None], group=GROUP, version="v1", kind="Site", plural="sites"):
    """A Site as an older program knows it."""


def site(name: str, namespace: str, **spec: Any) -> Site:
    """A Site to create or apply."""
    return Site(metadata=ObjectMeta(name=name, namespace=namespace), spec=SiteSpec(**({"image": "nginx:1.27"} | spec)))
