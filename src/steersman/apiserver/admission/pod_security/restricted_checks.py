"""The additional checks of the level ``restricted``: a Pod must give up privileges explicitly."""

from __future__ import annotations

from itertools import chain

from steersman.apiserver.admission.pod_security.baseline_checks import proc_mounts, seccomp_profiles
from steersman.apiserver.admission.pod_security.checks import (
    CheckedPod,
    CheckFunction,
    Violation,
    check,
    counted,
    quoted_list,
    setters,
)
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items

_VOLUMES = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
#: Forbidden types of volumes, in the order in which the check looks for them.
_RESTRICTED_VOLUMES = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
)


def _escalation(pod: CheckedPod) -> Violation | None:
    found = pod.named(lambda security: security.get("allowPrivilegeEscalation") is not False)
    if not found:
        return None
    return Violation(
        "allowPrivilegeEscalation != false",
        f"{counted('container', found)} must set securityContext.allowPrivilegeEscalation=false",
    )


def _capabilities(pod: CheckedPod) -> Violation | None:
    def added(security: Tree) -> set[str]:
        return set(items(inner(security, "capabilities"), "add")) - {"NET_BIND_SERVICE"}

    failures: list[str] = []
    keeping = pod.named(lambda security: "ALL" not in items(inner(security, "capabilities"), "drop"))
    if keeping:
        failures.append(f'{counted("container", keeping)} must set securityContext.capabilities.drop=["ALL"]')
    adding = pod.named(added)
    if adding:
        values = quoted_list(sorted(set(chain.from_iterable(map(added, pod.securities)))))
        failures.append(f"{counted('container', adding)} must not include {values} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(failures)) if failures else None


def _volumes(pod: CheckedPod) -> Violation | None:
    found = {
        volume["name"]: next((name for name in _RESTRICTED_VOLUMES if volume.get(name) is not None), "unknown")
        for volume in items(pod.spec, "volumes")
        if all(volume.get(name) is None for name in _VOLUMES)
    }
    if not found:
        return None
    types, verb = sorted(set(found.values())), "uses" if len(found) == 1 else "use"
    return Violation(
        "restricted volume types",
        f"{counted('volume', list(found))} {verb} {counted('restricted volume type', types)}",
    )


def _users_not_root(pod: CheckedPod) -> Violation | None:
    reason = "runAsNonRoot != true"
    by = setters(
        pod.security.get("runAsNonRoot") is False, pod.named(lambda security: security.get("runAsNonRoot") is False)
    )
    if by:
        return Violation(reason, f"{by} must not set securityContext.runAsNonRoot=false")
    if pod.security.get("runAsNonRoot"):
        return None
    found = pod.named(lambda security: security.get("runAsNonRoot") is None)
    if not found:
        return None
    return Violation(reason, f"pod or {counted('container', found)} must set securityContext.runAsNonRoot=true")


def _users(pod: CheckedPod) -> Violation | None:
    by = setters(pod.security.get("runAsUser") == 0, pod.named(lambda security: security.get("runAsUser") == 0))
    return Violation("runAsUser=0", f"{by} must not set runAsUser=0") if by else None


def _seccomp(pod: CheckedPod) -> Violation | None:
    violation = seccomp_profiles(pod)
    if violation is not None or pod.security.get("seccompProfile") is not None:
        return violation
    found = pod.named(lambda security: security.get("seccompProfile") is None)
    if not found:
        return None
    which = f"pod or {counted('container', found)}"
    return Violation(
        "seccompProfile", f'{which} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    )


def _unless_windows(function: CheckFunction) -> CheckFunction:
    """The check, except for Pods on Windows, where its fields do not exist."""
    return lambda pod: None if pod.is_for_windows else function(pod)


def _unless_own_users(function: CheckFunction) -> CheckFunction:
    """The check, except for Pods in a user namespace of their own."""
    return lambda pod: None if pod.has_own_users else function(pod)


#: The checks by name, in the order of their messages, which follow those of the baseline.
RESTRICTED_CHECKS = {
    "allowPrivilegeEscalation": check(8, _escalation, (25, _unless_windows(_escalation))),
    "capabilities_restricted": check(
        22, _capabilities, (25, _unless_windows(_capabilities)), replaces="capabilities_baseline"
    ),
    "procMount_restricted": check(35, proc_mounts, replaces="procMount"),
    "restrictedVolumes": check(0, _volumes, replaces="hostPathVolumes"),
    "runAsNonRoot": check(0, _users_not_root, (35, _unless_own_users(_users_not_root))),
    "runAsUser": check(23, _users, (35, _unless_own_users(_users))),
    "seccompProfile_restricted": check(
        19, _seccomp, (25, _unless_windows(_seccomp)), replaces="seccompProfile_baseline"
    ),
}
