"""The definitions themselves, as they are installed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import yaml
from field_crds.modules import MODULES, files

#: A few of each sort, for every run: what they demand is spread over all that a schema can say.
SHORT = frozenset(
    {
        "certificates.cert-manager.io",
        "challenges.acme.cert-manager.io",
        "issuers.cert-manager.io",
        "clusters.cluster.x-k8s.io",
        "machinepools.cluster.x-k8s.io",
        "ipaddresses.ipam.cluster.x-k8s.io",
        "extensionconfigs.runtime.cluster.x-k8s.io",
        "gatewayclasses.gateway.networking.k8s.io",
        "gateways.gateway.networking.k8s.io",
        "httproutes.gateway.networking.k8s.io",
        "referencegrants.gateway.networking.k8s.io",
        "podmonitors.monitoring.coreos.com",
        "prometheusrules.monitoring.coreos.com",
        "scrapeconfigs.monitoring.coreos.com",
        "scaledobjects.keda.sh",
        "buckets.source.toolkit.fluxcd.io",
        "gitrepositories.source.toolkit.fluxcd.io",
        "backups.velero.io",
        "sidecars.networking.istio.io",
        "pushsecrets.external-secrets.io",
        "experiments.argoproj.io",
    }
)


class _Loader(yaml.CSafeLoader):
    """YAML as people of Go read it: an equals sign and a date are texts."""


for _tag in ("value", "timestamp"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", yaml.CSafeLoader.construct_yaml_str)


@dataclass(frozen=True)
class Definition:
    """A CustomResourceDefinition of the field."""

    tree: dict[str, Any]

    def __repr__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """Plural and group."""
        return self.tree["metadata"]["name"]

    @property
    def group(self) -> str:
        """The API group."""
        return self.tree["spec"]["group"]

    @property
    def kind(self) -> str:
        """The kind of its objects."""
        return self.tree["spec"]["names"]["kind"]

    @property
    def namespaced(self) -> bool:
        """Whether its objects are in namespaces."""
        return self.tree["spec"]["scope"] == "Namespaced"

    @cached_property
    def served(self) -> list[dict[str, Any]]:
        """The versions that are served."""
        return [each for each in self.tree["spec"]["versions"] if each["served"]]

    def path(self, version: str, namespace: str, name: str = "") -> str:
        """Where its objects are."""
        below = f"/namespaces/{namespace}" if self.namespaced else ""
        whole = f"/apis/{self.group}/{version}{below}/{self.tree['spec']['names']['plural']}"
        return f"{whole}/{name}" if name else whole


def definitions(names: Iterable[str] | None = None) -> dict[str, Definition]:
    """Definitions of the field by name: all that there are, or some; by module, then by name."""
    wanted = None if names is None else frozenset(names)
    found: dict[str, Definition] = {}
    for module in MODULES.values():
        for file in files(module):
            text = file.read_bytes()
            # reading YAML takes its time
            if wanted is not None and not any(name.encode() in text for name in wanted):
                continue
            for tree in yaml.load_all(text, Loader=_Loader):
                if isinstance(tree, dict) and tree.get("kind") == "CustomResourceDefinition":
                    one = Definition(_installable(tree))
                    if wanted is None or one.name in wanted:
                        found.setdefault(one.name, one)
    missing = (wanted or frozenset()) - found.keys()
    assert not missing, f"these are in no module any more: {sorted(missing)}"
    return found


def _installable(tree: dict[str, Any]) -> dict[str, Any]:
    """A definition without its webhook, which does not run here, and without what a server says of it."""
    tree["spec"].pop("conversion", None)
    tree.pop("status", None)
    return tree
