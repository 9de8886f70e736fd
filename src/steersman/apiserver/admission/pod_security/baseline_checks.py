"""The checks of the level ``baseline``, which prevents known privilege escalations."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from steersman.apiserver.admission.pod_security.checks import (
    CheckedPod,
    CheckFunction,
    Violation,
    check,
    counted,
    plural,
    quoted_list,
    setters,
)
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.golang import quoted_in_full

_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_PROFILES = frozenset({"RuntimeDefault", "Localhost"})
_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)
_SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_syncookies",
    }
)
_SYSCTLS_27 = _SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
_SYSCTLS_29 = _SYSCTLS_27 | {
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
}
_SYSCTLS_32 = _SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
_SELINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_SELINUX_TYPES_31 = _SELINUX_TYPES | {"container_engine_t"}


def _app_armor(pod: CheckedPod) -> Violation | None:
    def is_bad(security: Tree) -> bool:
        return _profile_type(security, "appArmorProfile") not in {None, *_PROFILES}

    containers = pod.named(is_bad)
    values = _profile_types(pod, "appArmorProfile") - _PROFILES
    annotations = sorted(
        f"{key}={quoted_in_full(value)}"
        for key, value in pod.annotations.items()
        if key.startswith(_APP_ARMOR) and value not in {"", "runtime/default"} and not value.startswith("localhost/")
    )
    by = [setters(is_bad(pod.security), containers), plural("annotation", annotations) if annotations else ""]
    if not any(by):
        return None
    profiles = [*sorted(values), *annotations]
    return Violation(
        plural("forbidden AppArmor profile", profiles),
        f"{' and '.join(filter(None, by))} must not set AppArmor profile type to {quoted_list(profiles)}",
    )


def _profile_type(security: Tree, field: str) -> str | None:
    profile = security.get(field)
    return None if profile is None else profile.get("type", "")


def _profile_types(pod: CheckedPod, field: str) -> set[str]:
    """The types of profiles that a Pod and its containers set."""
    return {profile for security in pod.securities if (profile := _profile_type(security, field)) is not None}


def _capabilities(pod: CheckedPod) -> Violation | None:
    def added(security: Tree) -> set[str]:
        return set(items(inner(security, "capabilities"), "add")) - _CAPABILITIES

    containers = pod.named(added)
    if not containers:
        return None
    values = sorted(set(chain.from_iterable(map(added, pod.securities))))
    return Violation(
        "non-default capabilities",
        f"{counted('container', containers)} must not include {quoted_list(values)} in securityContext.capabilities.add",
    )


def _host_namespaces(pod: CheckedPod) -> Violation | None:
    settings = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(field)]
    return Violation("host namespaces", ", ".join(settings)) if settings else None


def _host_paths(pod: CheckedPod) -> Violation | None:
    volumes = [volume["name"] for volume in items(pod.spec, "volumes") if volume.get("hostPath") is not None]
    return Violation("hostPath volumes", counted("volume", volumes)) if volumes else None


def _host_ports(pod: CheckedPod) -> Violation | None:
    ports = {
        container.get("name", ""): {str(port["hostPort"]) for port in items(container, "ports") if port.get("hostPort")}
        for container in pod.containers
    }
    containers = [name for name, numbers in ports.items() if numbers]
    return _uses("hostPort", containers, chain.from_iterable(ports.values()))


def _uses(reason: str, containers: list[str], values: Iterable[str]) -> Violation | None:
    """The violation by containers that use forbidden values; None without containers."""
    if not containers:
        return None
    forbidden = sorted(set(values))
    listed = ", ".join(forbidden) if reason == "hostPort" else quoted_list(forbidden)
    verb = "uses" if len(containers) == 1 else "use"
    return Violation(reason, f"{counted('container', containers)} {verb} {plural(reason, forbidden)} {listed}")


def _host_addresses(pod: CheckedPod) -> Violation | None:
    hosts = {container.get("name", ""): set(_addresses(container)) for container in pod.containers}
    containers = sorted(name for name, addresses in hosts.items() if addresses)
    return _uses("probe or lifecycle host", containers, chain.from_iterable(hosts.values()))


def _addresses(container: Tree) -> Iterable[str]:
    """The hosts of a container's probes and hooks."""
    probes = [inner(container, f"{name}Probe") for name in ("liveness", "readiness", "startup")]
    hooks = [inner(inner(container, "lifecycle"), name) for name in ("postStart", "preStop")]
    for handler in (*probes, *hooks):
        for action in ("httpGet", "tcpSocket"):
            if host := inner(handler, action).get("host"):
                yield host


def _privileged(pod: CheckedPod) -> Violation | None:
    containers = pod.named(lambda security: security.get("privileged"))
    if not containers:
        return None
    return Violation("privileged", f"{counted('container', containers)} must not set securityContext.privileged=true")


def proc_mounts(pod: CheckedPod) -> Violation | None:
    """Check that /proc has the default mask."""
    containers = pod.named(lambda security: security.get("procMount", "Default") != "Default")
    if not containers:
        return None
    values = quoted_list(sorted({security.get("procMount", "Default") for security in pod.securities} - {"Default"}))
    by = counted("container", containers)
    return Violation("procMount", f"{by} must not set securityContext.procMount to {values}")


def _proc_mounts_35(pod: CheckedPod) -> Violation | None:
    return None if pod.has_own_users else proc_mounts(pod)


def _se_linux(allowed: frozenset[str]) -> CheckFunction:
    def is_bad(security: Tree) -> bool:
        options = inner(security, "seLinuxOptions")
        return options.get("type", "") not in allowed or bool(options.get("user") or options.get("role"))

    def function(pod: CheckedPod) -> Violation | None:
        by = setters(is_bad(pod.security), pod.named(is_bad))
        if not by:
            return None
        every = [inner(security, "seLinuxOptions") for security in pod.securities]
        types = sorted({options.get("type", "") for options in every} - allowed)
        reasons = [counted("type", types)] if types else []
        reasons += [
            f"{field} may not be set" for field in ("user", "role") if any(options.get(field) for options in every)
        ]
        return Violation("seLinuxOptions", f"{by} set forbidden securityContext.seLinuxOptions: {'; '.join(reasons)}")

    return function


def _seccomp_annotations(pod: CheckedPod) -> Violation | None:
    keys = {_SECCOMP_POD, *(_SECCOMP_CONTAINER + container.get("name", "") for container in pod.containers)}
    annotations = sorted(
        f"{key}={quoted_in_full(value)}"
        for key in keys
        if (value := pod.annotations.get(key)) is not None
        and value not in {"runtime/default", "docker/default"}
        and not value.startswith("localhost/")
    )
    if not annotations:
        return None
    return Violation("seccompProfile", f"forbidden {plural('annotation', annotations)} {', '.join(annotations)}")


def seccomp_profiles(pod: CheckedPod) -> Violation | None:
    """Check that every seccomp profile is the runtime's default or one of the node."""

    def is_bad(security: Tree) -> bool:
        return _profile_type(security, "seccompProfile") not in {None, *_PROFILES}

    by = setters(is_bad(pod.security), pod.named(is_bad))
    if not by:
        return None
    values = quoted_list(sorted(_profile_types(pod, "seccompProfile") - _PROFILES))
    return Violation("seccompProfile", f"{by} must not set securityContext.seccompProfile.type to {values}")


def _sysctls(allowed: frozenset[str]) -> CheckFunction:
    def function(pod: CheckedPod) -> Violation | None:
        names = [sysctl["name"] for sysctl in items(pod.security, "sysctls") if sysctl["name"] not in allowed]
        return Violation("forbidden sysctls", ", ".join(names)) if names else None

    return function


def _host_processes(pod: CheckedPod) -> Violation | None:
    def is_bad(security: Tree) -> bool:
        return bool(inner(security, "windowsOptions").get("hostProcess"))

    by = setters(is_bad(pod.security), pod.named(is_bad))
    if not by:
        return None
    return Violation("hostProcess", f"{by} must not set securityContext.windowsOptions.hostProcess=true")


#: The checks by name, in the order of their messages.
BASELINE_CHECKS = {
    "appArmorProfile": check(0, _app_armor),
    "capabilities_baseline": check(0, _capabilities),
    "hostNamespaces": check(0, _host_namespaces),
    "hostPathVolumes": check(0, _host_paths),
    "hostPorts": check(0, _host_ports),
    "hostProbesAndHostLifecycle": check(34, _host_addresses),
    "privileged": check(0, _privileged),
    "procMount": check(0, proc_mounts, (35, _proc_mounts_35)),
    "seLinuxOptions": check(0, _se_linux(_SELINUX_TYPES), (31, _se_linux(_SELINUX_TYPES_31))),
    "seccompProfile_baseline": check(0, _seccomp_annotations, (19, seccomp_profiles)),
    "sysctls": check(
        0, _sysctls(_SYSCTLS), (27, _sysctls(_SYSCTLS_27)), (29, _sysctls(_SYSCTLS_29)), (32, _sysctls(_SYSCTLS_32))
    ),
    "windowsHostProcess": check(0, _host_processes),
}
