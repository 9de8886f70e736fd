"""Reset fields: fields that an endpoint always restores, so that a write there does not own them.

Guarantee: the fields of every kind and subresource are those of kube-apiserver 1.37.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from steersman.apiserver.registry.definition import Definition
from steersman.patches import FieldSet, PathElement

_Name = tuple[str, str]

#: Kinds whose status update does not change metadata.
_ONLY_STATUS: Final[frozenset[_Name]] = frozenset(
    {
        ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("apiregistration.k8s.io", "apiservices"),
        ("certificates.k8s.io", "podcertificaterequests"),
        ("flowcontrol.apiserver.k8s.io", "flowschemas"),
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
        ("networking.k8s.io", "servicecidrs"),
        ("resource.k8s.io", "devicetaintrules"),
        ("resource.k8s.io", "resourceclaims"),
        ("storage.k8s.io", "csinodes"),
        ("storage.k8s.io", "volumeattachments"),
        ("storagemigration.k8s.io", "storageversionmigrations"),
    }
)
#: Endpoints that restore other fields than usual.
_SPECIAL: Final[Mapping[tuple[str, str, str], tuple[str, ...]]] = {
    ("apps", "deployments", "status"): ("spec", "metadata.labels"),
    ("", "pods", "status"): ("spec", "metadata.deletionTimestamp", "metadata.ownerReferences"),
    ("", "namespaces", "finalize"): ("status",),
    ("certificates.k8s.io", "certificatesigningrequests", ""): ("spec", "status"),
    ("certificates.k8s.io", "certificatesigningrequests", "status"): ("spec", "status.conditions"),
    ("certificates.k8s.io", "certificatesigningrequests", "approval"): ("spec", "status.certificate"),
}


def reset_fields(definition: Definition, subresource: str) -> FieldSet:
    """The fields that a write to a resource, or to one of its subresources, does not change."""
    name = (definition.gvk.group, definition.resource)
    special = _SPECIAL.get((*name, subresource))
    if special is not None:
        return _set(special)
    if subresource == "status":
        return _set(("metadata", "spec") if definition.custom or name in _ONLY_STATUS else ("spec",))
    return _set(("status",) if definition.has_status and not subresource else ())


@cache
def _set(paths: tuple[str, ...]) -> FieldSet:
    return FieldSet(tuple(PathElement.field(name) for name in path.split(".")) for path in paths)
