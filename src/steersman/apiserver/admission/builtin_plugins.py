"""The admission plugins of a server, by their kube-apiserver names.

Guarantees
- The module of a plugin is imported when a server that runs it serves a resource that it acts on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import NamedTuple

from steersman.apiserver.admission.plugins import Plugin
from steersman.objects import nearest

_ROOM = __name__.rpartition(".")[0]


class BuiltinPlugin(NamedTuple):
    """How to make a plugin, and when a server needs it."""

    #: A module of this package, and its class or function.
    maker: str
    #: The plugin has no effect on a server that serves none of these resources.
    resources: str

    def make(self) -> Plugin:
        """Import the module, and make the plugin."""
        module, _, name = self.maker.rpartition(".")
        return getattr(import_module(f"{_ROOM}.{module}"), name)()


_TEMPLATES = "cronjobs daemonsets deployments jobs podtemplates replicasets replicationcontrollers statefulsets"
_CLAIMS, _REQUESTS = "persistentvolumeclaims", "certificatesigningrequests"
#: In the order in which they are called.
BUILTIN_PLUGINS: Mapping[str, BuiltinPlugin] = {
    "NamespaceLifecycle": BuiltinPlugin("namespace_lifecycle.NamespaceLifecycle", "namespaces"),
    "LimitRanger": BuiltinPlugin("limit_ranges.LimitRanges", f"pods {_CLAIMS}"),
    "ServiceAccount": BuiltinPlugin("pod_accounts.PodAccounts", "pods"),
    "TaintNodesByCondition": BuiltinPlugin("node_readiness.NodeTaints", "nodes"),
    "PodSecurity": BuiltinPlugin("pod_security.PodSecurity", f"namespaces pods {_TEMPLATES}"),
    "Priority": BuiltinPlugin("pod_priorities.PodPriorities", "pods priorityclasses"),
    "DefaultTolerationSeconds": BuiltinPlugin("node_readiness.PodTolerations", "pods"),
    "DefaultStorageClass": BuiltinPlugin("class_defaults.default_storage_class", _CLAIMS),
    "StorageObjectInUseProtection": BuiltinPlugin(
        "storage_protection.StorageProtection", f"{_CLAIMS} persistentvolumes volumeattributesclasses"
    ),
    "PersistentVolumeClaimResize": BuiltinPlugin("claim_growth.ClaimGrowth", _CLAIMS),
    "RuntimeClass": BuiltinPlugin("pod_runtimes.PodRuntimes", "pods"),
    "CertificateApproval": BuiltinPlugin("signer_permissions.approval_permission", _REQUESTS),
    "CertificateSigning": BuiltinPlugin("signer_permissions.signing_permission", _REQUESTS),
    "ClusterTrustBundleAttest": BuiltinPlugin("signer_permissions.BundlePermission", "clustertrustbundles"),
    "CertificateSubjectRestriction": BuiltinPlugin("certificate_subjects.CertificateSubjects", _REQUESTS),
    "DefaultIngressClass": BuiltinPlugin("class_defaults.default_ingress_class", "ingresses"),
    "PodTopologyLabels": BuiltinPlugin("pod_topology.PodTopology", "pods"),
    "NodeDeclaredFeatureValidator": BuiltinPlugin("pod_resizes.NodeFeatures", "pods"),
    "PodResizeValidator": BuiltinPlugin("pod_resizes.PodResizes", "pods"),
}
#: Plugins that objects of admissionregistration.k8s.io configure, in the order in which they are called, after those above.
STORED_PLUGINS = (
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
)
#: ResourceQuota is called last.
_KNOWN = (*BUILTIN_PLUGINS, *STORED_PLUGINS, "ResourceQuota")
_ALWAYS = BuiltinPlugin("signer_permissions.PodCertificatePermission", "podcertificaterequests")
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


def builtin_plugins(names: Iterable[str], served: Iterable[str]) -> list[Plugin]:
    """The plugins with these names that have an effect on a server of the ``served`` resources, in their order."""
    chosen, resources = frozenset(names), frozenset(served)
    found = [
        each.make()
        for name, each in BUILTIN_PLUGINS.items()
        if name in chosen and not resources.isdisjoint(each.resources.split())
    ]
    # A check that kube-apiserver makes whatever plugins are chosen.
    return found + [_ALWAYS.make()] * ("podcertificaterequests" in resources)
