"""ApplicationNamespace: what its users write, and what they are told."""

from typing import Annotated

from steersman import ListSet, PrinterColumn, Quantity, Resource, Rule, Spec, StatusOf


class ApplicationNamespaceSpec(Spec):
    owners: Annotated[list[str], ListSet()] | None = None
    """Users who administer the namespace."""
    quota: dict[str, Quantity] | None = None
    """What all of its Pods together may use; without one, there is no limit."""
    labels: dict[str, str] | None = None
    """Labels of the namespace."""
    isolated: bool = True
    """Whether its Pods take connections from each other only."""
    adopt: bool = False
    """Whether a namespace of this name that exists already becomes ours, with all that follows: it goes when we go."""


class ApplicationNamespace(
    Resource[ApplicationNamespaceSpec, StatusOf],
    group="platform.example.com",
    version="v1",
    scope="Cluster",
    rules=(Rule(rule="self.metadata.name.size() <= 63", message="a longer name is no name for a namespace"),),
    columns=(
        PrinterColumn(name="Ready", type="string", json_path=".status.conditions[?(@.type=='Ready')].status"),
        PrinterColumn(name="Why", type="string", json_path=".status.conditions[?(@.type=='Ready')].message"),
    ),
):
    """A namespace for an application of a team: who may use it, how much, and who may connect to it."""
