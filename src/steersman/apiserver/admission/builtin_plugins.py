"""The admission plugins of a server, by their kube-apiserver names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from steersman.apiserver.admission.attributes import Plugin
from steersman.apiserver.admission.certificate_subjects import CertificateSubjects
from steersman.apiserver.admission.claim_growth import ClaimGrowth
from steersman.apiserver.admission.class_defaults import default_ingress_class, default_storage_class
from steersman.apiserver.admission.limit_ranges import LimitRanges
from steersman.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from steersman.apiserver.admission.node_readiness import NodeTaints, PodTolerations
from steersman.apiserver.admission.pod_accounts import PodAccounts
from steersman.apiserver.admission.pod_priorities import PodPriorities
from steersman.apiserver.admission.pod_resizes import NodeFeatures, PodResizes
from steersman.apiserver.admission.pod_runtimes import PodRuntimes
from steersman.apiserver.admission.pod_security import PodSecurity
from steersman.apiserver.admission.pod_topology import PodTopology
from steersman.apiserver.admission.signer_permissions import approval_permission, signing_permission
from steersman.apiserver.admission.storage_protection import StorageProtection
from steersman.objects import nearest

#: In the order in which they are called.
BUILTIN_PLUGINS: Mapping[str, Callable[[], Plugin]] = {
    "NamespaceLifecycle": NamespaceLifecycle,
    "LimitRanger": LimitRanges,
    "ServiceAccount": PodAccounts,
    "TaintNodesByCondition": NodeTaints,
    "PodSecurity": PodSecurity,
    "Priority": PodPriorities,
    "DefaultTolerationSeconds": PodTolerations,
    "DefaultStorageClass": default_storage_class,
    "StorageObjectInUseProtection": StorageProtection,
    "PersistentVolumeClaimResize": ClaimGrowth,
    "RuntimeClass": PodRuntimes,
    "CertificateApproval": approval_permission,
    "CertificateSigning": signing_permission,
    "CertificateSubjectRestriction": CertificateSubjects,
    "DefaultIngressClass": default_ingress_class,
    "PodTopologyLabels": PodTopology,
    "NodeDeclaredFeatureValidator": NodeFeatures,
    "PodResizeValidator": PodResizes,
}
#: Plugins that stored objects configure; they run last.
REGISTERED_PLUGINS = (
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
)
_KNOWN = (*BUILTIN_PLUGINS, *REGISTERED_PLUGINS)
#: Off by default, so that a test can create Pods without creating service accounts first.
_OFF = frozenset({"ServiceAccount"})


def chosen_plugins(enable: Iterable[str], disable: Iterable[str]) -> frozenset[str]:
    """The names of the plugins that a server runs. Raises ValueError for an unknown name."""
    enabled, disabled = _names("enable", enable), _names("disable", disable)
    both = sorted(enabled & disabled)
    if both:
        raise ValueError(f"{both[0]} is in enable_admission_plugins and in disable_admission_plugins: choose one")
    return (frozenset(_KNOWN) - _OFF | enabled) - disabled


def _names(verb: str, names: Iterable[str]) -> frozenset[str]:
    option = f"{verb}_admission_plugins"
    if isinstance(names, str):
        raise TypeError(f"{option} must be a list of names: write {option}=[{names!r}]")
    found = frozenset(names)
    for name in sorted(found - frozenset(_KNOWN)):
        near = nearest(name, _KNOWN)
        hint = f"did you mean {near}? " if near else ""
        raise ValueError(
            f"{option}: {name!r} is not an admission plugin of this server; {hint}available: {', '.join(_KNOWN)}"
        )
    return found
