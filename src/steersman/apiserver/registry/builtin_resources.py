"""Definitions derived from discovery and schemas alone.

Guarantees
- Every built-in resource has a definition here, with the engine's names, scope, verbs, deletion answers and generation
  rules. The module of a kind adds its defaults and validation: see `builtin_definitions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from steersman import kinds
from steersman.apiserver.registry.builtin.event import CONVERSION
from steersman.apiserver.registry.builtin.hidden_fields import ON_READ
from steersman.apiserver.registry.builtin.tables.pod_cells import row_conditions
from steersman.apiserver.registry.builtin.workloads.apps import HIDDEN_ANNOTATIONS
from steersman.apiserver.registry.definition import Definition, ScalePaths, Strategy
from steersman.apiserver.registry.kind_rules import columns, selectable, strategies
from steersman.apiserver.registry.names import dns_1035_label, dns_label, path_segment
from steersman.apiserver.registry.subresources import POD, SUBRESOURCES
from steersman.objects import GroupVersion, GroupVersionKind

_Name = tuple[str, str]

#: Warnings for every request for deprecated kinds.
_DEPRECATED: Final[Mapping[_Name, str]] = {
    ("", "componentstatuses"): "v1 ComponentStatus is deprecated in v1.19+",
    ("", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
#: Kinds whose deletion answers with the object.
_RETURN_DELETED: Final[frozenset[_Name]] = frozenset(
    {
        *(
            (("", name))
            for name in ("namespaces", "persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates")
        ),
        *((("", name)) for name in ("resourcequotas", "serviceaccounts", "services")),
        *(
            ("storage.k8s.io", name)
            for name in ("csidrivers", "csinodes", "storageclasses", "volumeattachments", "volumeattributesclasses")
        ),
        *(
            ("resource.k8s.io", name)
            for name in ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
        ),
    }
)
#: Kinds whose update needs a resourceVersion.
_CONDITIONAL: Final[frozenset[_Name]] = frozenset(
    {
        ("node.k8s.io", "runtimeclasses"),
        ("policy", "poddisruptionbudgets"),
        ("coordination.k8s.io", "leases"),
        *(("storage.k8s.io", name) for name in ("csidrivers", "csistoragecapacities", "volumeattachments", "csinodes")),
        *(
            ("admissionregistration.k8s.io", name)
            for name in (
                "validatingadmissionpolicies",
                "mutatingadmissionpolicies",
                "mutatingwebhookconfigurations",
                "validatingwebhookconfigurations",
                "mutatingadmissionpolicybindings",
                "validatingadmissionpolicybindings",
            )
        ),
    }
)
#: Kinds that a PUT can create.
_CREATED_BY_PUT: Final[frozenset[_Name]] = frozenset(
    {
        ("node.k8s.io", "runtimeclasses"),
        ("coordination.k8s.io", "leases"),
        ("", "limitranges"),
        ("", "events"),
        ("events.k8s.io", "events"),
        ("", "services"),
        ("", "endpoints"),
        *(
            ("rbac.authorization.k8s.io", name)
            for name in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
        ),
    }
)
#: Kinds that count their generations.
_COUNTED: Final[frozenset[_Name]] = frozenset(
    {
        ("scheduling.k8s.io", "priorityclasses"),
        ("discovery.k8s.io", "endpointslices"),
        ("policy", "poddisruptionbudgets"),
        *(("networking.k8s.io", name) for name in ("ingressclasses", "networkpolicies", "ingresses")),
        *(("resource.k8s.io", name) for name in ("resourceslices", "deviceclasses")),
        *(("flowcontrol.apiserver.k8s.io", name) for name in ("flowschemas", "prioritylevelconfigurations")),
        *(("apps", name) for name in ("daemonsets", "statefulsets", "deployments", "replicasets")),
        *(("batch", name) for name in ("jobs", "cronjobs")),
        *(("", name) for name in ("pods", "podtemplates", "replicationcontrollers")),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        *(
            ("admissionregistration.k8s.io", name)
            for name in (
                "validatingadmissionpolicies",
                "mutatingadmissionpolicies",
                "mutatingwebhookconfigurations",
                "validatingwebhookconfigurations",
                "mutatingadmissionpolicybindings",
                "validatingadmissionpolicybindings",
            )
        ),
    }
)
_PATH_NAMES: Final = frozenset({"roles", "rolebindings", "clusterroles", "clusterrolebindings"})
_LABEL_NAMES: Final = frozenset({"namespaces"})
_DNS_1035_NAMES: Final = frozenset({"services"})


#: The kind whose objects are stored in the form of another group.
EVENT_OF_ITS_GROUP: Final = GroupVersionKind("events.k8s.io", "v1", "Event")

#: Kinds whose updates are validated as a whole once more, which repeats some messages.
_WHOLE_UPDATES: Final[frozenset[_Name]] = frozenset(
    {
        *(
            ("", name)
            for name in ("configmaps", "secrets", "serviceaccounts", "pods", "endpoints", "persistentvolumeclaims")
        ),
        *(
            ("rbac.authorization.k8s.io", name)
            for name in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
        ),
    }
)


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
        """The problems of a name."""
        if self._judge is None:
            return super().validate_name(name, prefix=prefix)
        return self._judge(name, prefix=prefix)


def generic_definitions(group_version: GroupVersion) -> list[Definition]:
    """The definitions of a built-in group-version, without the defaults and validation of its kinds."""
    listed = kinds.resources_of(group_version)
    below: dict[str, set[str]] = {}
    for entry in listed:
        parent, slash, name = entry["name"].partition("/")
        if slash:
            below.setdefault(parent, set()).add(name)
    return [
        _generic(group_version, entry, below.get(entry["name"], set())) for entry in listed if "/" not in entry["name"]
    ]


def _generic(group_version: GroupVersion, entry: dict[str, Any], below: set[str]) -> Definition:
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
        strategy=GenericStrategy(group, resource),
        has_status="status" in below,
        scale=ScalePaths() if "scale" in below else None,
        returns_deleted=(group, resource) in _RETURN_DELETED,
        deprecation=_DEPRECATED.get((group, resource), ""),
        stored_as=("", "events") if resource == "events" else None,
        ttl=3600.0 if resource == "events" else None,
    )


def builtin_definitions(chosen: Iterable[GroupVersion] | None = None) -> list[Definition]:
    """The definitions of all built-in group-versions, or of some.

    `registry.kind_rules` has the rules of kinds that have their own.
    """
    definitions: list[Definition] = []
    for group_version in kinds.all_group_versions() if chosen is None else chosen:
        definitions += map(_with_own_rules, generic_definitions(group_version))
    return definitions


def _with_own_rules(definition: Definition) -> Definition:
    """A definition with the additions of its kind's module."""
    gvk = definition.gvk
    own = strategies.get(gvk)
    if own is not None:
        _inherit(own, definition.strategy)
    return replace(
        definition,
        strategy=own or definition.strategy,
        columns=columns.get(gvk, ()),
        selectable=selectable.get(gvk, {}),
        subresources=SUBRESOURCES.get(gvk, {}),
        row_conditions=row_conditions if gvk == POD else None,
        indexed_field="spec.nodeName" if gvk == POD else "",
        on_read=ON_READ.get(gvk),
        hidden_annotations=HIDDEN_ANNOTATIONS.get(gvk, frozenset()),
        conversion=CONVERSION if gvk == EVENT_OF_ITS_GROUP else None,
    )


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
