"""Definitions derived from discovery and schemas alone.

Guarantees
- Every built-in resource has a definition here, with the engine's names, scope, verbs, deletion answers and generation
  rules. The module of a kind adds its defaults and validation: see `kind_rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any, Final

from steersman import kinds
from steersman.apiserver.registry.builtin.event import CONVERSION
from steersman.apiserver.registry.builtin.hidden_fields import HIDDEN_ANNOTATIONS, ON_READ
from steersman.apiserver.registry.builtin.selectable_fields import SELECTABLE
from steersman.apiserver.registry.builtin.tables.columns import columns_of
from steersman.apiserver.registry.builtin.tables.pod_cells import row_conditions
from steersman.apiserver.registry.builtin.tables.structural_cells import default_class
from steersman.apiserver.registry.builtin.workloads.autoscaler_versions import (
    AUTOSCALER_CONVERSION,
    FIELD_ANNOTATIONS,
)
from steersman.apiserver.registry.conversion import Conversion
from steersman.apiserver.registry.definition import Definition, ScalePaths
from steersman.apiserver.registry.kind_rules import strategy_of
from steersman.apiserver.registry.strategy import Strategy
from steersman.apiserver.registry.subresources import POD, SUBRESOURCES
from steersman.objects import GroupVersion, GroupVersionKind
from steersman.schemas.names import dns_1035_label, dns_label, path_segment

_Name = tuple[str, str]


def _resources(table: str) -> frozenset[_Name]:
    """Resources by group, as in ``core: pods services``; a group may take several lines."""
    found: set[_Name] = set()
    group = ""
    for word in table.split():
        if word.endswith(":"):
            group = "" if word == "core:" else word[:-1]
        else:
            found.add((group, word))
    return frozenset(found)


#: Warnings for every request for deprecated kinds.
_DEPRECATED: Final[Mapping[_Name, str]] = {
    ("", "componentstatuses"): "v1 ComponentStatus is deprecated in v1.19+",
    ("", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
#: Kinds whose deletion answers with the object.
_RETURN_DELETED: Final = _resources("""
    core: namespaces persistentvolumeclaims persistentvolumes pods podtemplates resourcequotas serviceaccounts
        services
    resource.k8s.io: deviceclasses resourceclaims resourceclaimtemplates resourceslices
    storage.k8s.io: csidrivers csinodes storageclasses volumeattachments volumeattributesclasses
""")
#: Kinds whose update needs a resourceVersion.
_CONDITIONAL: Final = _resources("""
    admissionregistration.k8s.io: mutatingadmissionpolicies mutatingadmissionpolicybindings
        mutatingwebhookconfigurations validatingadmissionpolicies validatingadmissionpolicybindings
        validatingwebhookconfigurations
    certificates.k8s.io: clustertrustbundles podcertificaterequests
    coordination.k8s.io: leases
    node.k8s.io: runtimeclasses
    policy: poddisruptionbudgets
    storagemigration.k8s.io: storageversionmigrations
    storage.k8s.io: csidrivers csinodes csistoragecapacities volumeattachments
""")
#: Kinds that a PUT can create.
_CREATED_BY_PUT: Final = _resources("""
    core: endpoints events limitranges services
    coordination.k8s.io: leases
    events.k8s.io: events
    node.k8s.io: runtimeclasses
    rbac.authorization.k8s.io: clusterrolebindings clusterroles rolebindings roles
""")
#: Kinds that count their generations.
_COUNTED: Final = _resources("""
    core: pods podtemplates replicationcontrollers
    admissionregistration.k8s.io: mutatingadmissionpolicies mutatingadmissionpolicybindings
        mutatingwebhookconfigurations validatingadmissionpolicies validatingadmissionpolicybindings
        validatingwebhookconfigurations
    apiextensions.k8s.io: customresourcedefinitions
    apps: daemonsets deployments replicasets statefulsets
    batch: cronjobs jobs
    discovery.k8s.io: endpointslices
    flowcontrol.apiserver.k8s.io: flowschemas prioritylevelconfigurations
    networking.k8s.io: ingressclasses ingresses networkpolicies
    policy: poddisruptionbudgets
    resource.k8s.io: deviceclasses resourceslices
""")
_PATH_NAMES: Final = frozenset({"roles", "rolebindings", "clusterroles", "clusterrolebindings"})
_LABEL_NAMES: Final = frozenset({"namespaces"})
_DNS_1035_NAMES: Final = frozenset({"services"})


#: The kind whose objects are stored in the form of another group.
EVENT_OF_ITS_GROUP: Final = GroupVersionKind("events.k8s.io", "v1", "Event")
_STORAGE_CLASS: Final = GroupVersionKind("storage.k8s.io", "v1", "StorageClass")
_OLD_AUTOSCALER: Final = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")
#: Kinds that are stored in another version or group.
_CONVERSIONS: Final[Mapping[GroupVersionKind, Conversion]] = {
    EVENT_OF_ITS_GROUP: CONVERSION,
    _OLD_AUTOSCALER: AUTOSCALER_CONVERSION,
}
_HIDDEN_ANNOTATIONS: Final[Mapping[GroupVersionKind, frozenset[str]]] = {
    **HIDDEN_ANNOTATIONS,
    _OLD_AUTOSCALER: FIELD_ANNOTATIONS,
}

#: Kinds whose updates are validated as a whole once more, which repeats some messages.
_WHOLE_UPDATES: Final = _resources("""
    core: configmaps endpoints persistentvolumeclaims pods secrets serviceaccounts
    rbac.authorization.k8s.io: clusterrolebindings clusterroles rolebindings roles
""")


_JOBS_ARE_ORPHANED: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


class GenericStrategy(Strategy):
    """The rules of a built-in kind from the tables; a kind's own strategy derives from it or from `Strategy`."""

    def __init__(self, group: str, resource: str) -> None:
        name = (group, resource)
        self.unconditional_update = name not in _CONDITIONAL
        self.create_on_update = name in _CREATED_BY_PUT
        self.counts_generations = name in _COUNTED
        self.validates_whole_updates = name in _WHOLE_UPDATES
        self.counts_annotations = name == ("apps", "deployments")
        self.deletion_warning = _JOBS_ARE_ORPHANED if name == ("batch", "jobs") else ""
        if resource == "events":
            self.default_propagation = "unsupported"
        if group == "rbac.authorization.k8s.io" and resource in _PATH_NAMES:
            self._judge: Callable[..., list[str]] | None = path_segment
        elif not group and resource in _LABEL_NAMES:
            self._judge = dns_label
        elif not group and resource in _DNS_1035_NAMES:
            self._judge = dns_1035_label
        else:
            self._judge = None

    def validate_name(self, name: str, *, prefix: bool = False) -> list[str]:
        if self._judge is None:
            return super().validate_name(name, prefix=prefix)
        return self._judge(name, prefix=prefix)


def builtin_definitions(
    chosen: Iterable[GroupVersion] | None = None, *, is_served: Callable[[GroupVersionKind], bool] = lambda _: True
) -> list[Definition]:
    """The definitions of the served kinds, in all or some built-in group-versions."""
    return [
        definition
        for group_version in (kinds.all_group_versions() if chosen is None else chosen)
        for definition in _definitions_of(group_version)
        if is_served(definition.gvk)
    ]


def _definitions_of(group_version: GroupVersion) -> list[Definition]:
    listed = kinds.resources_of(group_version)
    below: dict[str, set[str]] = {}
    for entry in listed:
        parent, slash, name = entry["name"].partition("/")
        if slash:
            below.setdefault(parent, set()).add(name)
    return [
        _definition(group_version, entry, below.get(entry["name"], set()))
        for entry in listed
        if "/" not in entry["name"]
    ]


def _definition(group_version: GroupVersion, entry: dict[str, Any], below: set[str]) -> Definition:
    group, resource = group_version.group, entry["name"]
    gvk = GroupVersionKind(group, group_version.version, entry["kind"])
    return Definition(
        gvk=gvk,
        resource=resource,
        singular=entry.get("singularName", ""),
        short_names=tuple(entry.get("shortNames", ())),
        categories=tuple(entry.get("categories", ())),
        namespaced=entry["namespaced"],
        verbs=tuple(entry["verbs"]),
        schema=partial(kinds.schema_of, gvk),
        make_strategy=cache(partial(_strategy, gvk, resource)),
        has_status="status" in below,
        scale=ScalePaths() if "scale" in below else None,
        subresources=SUBRESOURCES.get(gvk, {}),
        columns=columns_of(gvk),
        row_conditions=row_conditions if gvk == POD else None,
        default_of=default_class if gvk == _STORAGE_CLASS else None,
        hidden_annotations=_HIDDEN_ANNOTATIONS.get(gvk, frozenset()),
        selectable=SELECTABLE.get(gvk, {}),
        indexed_field="spec.nodeName" if gvk == POD else "",
        ttl=3600.0 if resource == "events" else None,
        stored_as=("", "events") if resource == "events" else None,
        on_read=ON_READ.get(gvk),
        conversion=_CONVERSIONS.get(gvk),
        returns_deleted=(group, resource) in _RETURN_DELETED,
        deprecation=_DEPRECATED.get((group, resource), ""),
    )


def _strategy(gvk: GroupVersionKind, resource: str) -> Strategy:
    """The rules of a kind: its own (see `registry.kind_rules`), and those of the tables where it has none."""
    generic = GenericStrategy(gvk.group, resource)
    own = strategy_of(gvk)
    if own is None:
        return generic
    _inherit(own, generic)
    return own


def _inherit(own: Strategy, generic: Strategy) -> None:
    """Fill in what a kind's own strategy does not set from the tables."""
    before = type(own).__mro__[: type(own).__mro__.index(Strategy)]
    for name in (
        "unconditional_update",
        "create_on_update",
        "counts_generations",
        "default_propagation",
        "counts_annotations",
        "deletion_warning",
        "validates_whole_updates",
    ):
        if not any(name in vars(cls) for cls in before):
            setattr(own, name, getattr(generic, name))
