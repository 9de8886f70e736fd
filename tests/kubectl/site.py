"""A custom resource: served by the embedded server as a class, by the engine by its definition."""

from __future__ import annotations

from typing import Annotated, Literal

from steersman import ListMap, Maximum, Minimum, PrinterColumn, Resource, Scale, Spec, StatusOf, Struct


class Port(Struct):
    """A port that a site listens on."""

    name: str
    port: Annotated[int, Minimum(1), Maximum(65535)]
    """The number of the port."""


class SiteSpec(Spec):
    """What a site should be."""

    image: str
    """The image that is run."""
    replicas: Annotated[int, Minimum(0), Maximum(50)] = 1
    """How many of them."""
    mode: Literal["static", "dynamic"] = "static"
    ports: Annotated[list[Port], ListMap("name")] | None = None


class SiteStatus(StatusOf):
    """What a site is."""

    ready_replicas: int = 0
    replicas: int = 0


class Site(
    Resource[SiteSpec, SiteStatus],
    group="kubectl.test.steersman.dev",
    version="v1",
    short_names=("st",),
    categories=("webs",),
    scale=Scale(spec_replicas_path=".spec.replicas", status_replicas_path=".status.replicas"),
    columns=(
        PrinterColumn(name="Image", type="string", json_path=".spec.image"),
        PrinterColumn(name="Replicas", type="integer", json_path=".spec.replicas"),
        PrinterColumn(name="Mode", type="string", json_path=".spec.mode", priority=1),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ),
):
    """A web site."""
