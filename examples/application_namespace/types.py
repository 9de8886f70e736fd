"""ApplicationNamespace: its spec and its status."""

from typing import Annotated

from steersman import PrinterColumn, Quantity, Resource, Spec, Status
from steersman.markers import ListSet, Rule


class ApplicationNamespaceSpec(Spec):
    owners: Annotated[list[str], ListSet()] | None = None
    """Users who administer the namespace."""
    quota: dict[str, Quantity] | None = None
    """The limit for all of its Pods together; no limit if unset."""
    labels: dict[str, str] | None = None
    """Labels of the namespace."""
    isolated: bool = True
    """Whether its Pods accept connections only from each other."""
    adopt: bool = False
    """Whether to adopt an existing namespace of this name; it is then deleted with this object."""


class ApplicationNamespace(
    Resource[ApplicationNamespaceSpec, Status],
    group="platform.example.com",
    version="v1",
    scope="Cluster",
    rules=(Rule(rule="self.metadata.name.size() <= 63", message="a namespace's name has at most 63 characters"),),
    columns=(
        PrinterColumn(name="Ready", type="string", json_path=".status.conditions[?(@.type=='Ready')].status"),
        PrinterColumn(name="Why", type="string", json_path=".status.conditions[?(@.type=='Ready')].message"),
    ),
):
    """A namespace for a team's application: its owners, its quota and its network isolation."""
