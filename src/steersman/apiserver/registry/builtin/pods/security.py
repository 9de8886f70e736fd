"""Security contexts of Pods and containers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from steersman.apiserver.registry.builtin.types.file_paths import descending
from steersman.apiserver.registry.builtin.types.formats import MAX_INT32, in_range
from steersman.apiserver.registry.builtin.types.internal_form import printed
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.objects.field_problems import (
    FieldProblem,
    duplicate,
    each,
    forbidden,
    invalid,
    required,
    too_long,
    unsupported,
    until_enough,
)

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_PROC_MOUNTS = ("Default", "Unmasked")
_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"({_SEGMENT}[\./])*{_SEGMENT}"
_IPC = {"kernel/sem", "kernel/shm_rmid_forced"}
_LONGEST_PROFILE = 4095
_NOT_WINDOWS = "cannot be set for a windows pod"


def _ids(path: str, context: Tree, names: tuple[str, ...]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for name in names:
        if name in context:
            problems += each(f"{path}.{name}", context[name], in_range(context[name], 0, MAX_INT32))
    return problems


def seccomp(path: str, profile: Tree | None) -> list[FieldProblem]:
    """Validate a seccomp profile."""
    if profile is None:
        return []
    type_, local = profile.get("type", ""), profile.get("localhostProfile")
    problems: list[FieldProblem] = []
    if not type_:
        problems.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif type_ not in _PROFILES:
        problems.append(unsupported(f"{path}.type", type_, _PROFILES))
    if type_ == "Localhost":
        if local is None:
            problems.append(required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost"))
        else:
            problems += descending(f"{path}.localhostProfile", local)
    elif local is not None:
        shown = printed(profile, "core.SeccompProfile")
        detail = "can only be set when seccomp type is Localhost"
        problems.append(invalid(f"{path}.localhostProfile", shown, detail))
    return problems


def app_armor(path: str, profile: Tree | None) -> list[FieldProblem]:
    """Validate an AppArmor profile."""
    if profile is None:
        return []
    type_, local = profile.get("type", ""), profile.get("localhostProfile")
    where = f"{path}.localhostProfile"
    if type_ == "Localhost":
        needed = "must be set when AppArmor type is Localhost"
        if local is None:
            return [required(where, needed)]
        problems: list[FieldProblem] = []
        if local.strip() != local:
            problems.append(invalid(where, local, "must not be padded with whitespace"))
        elif not local:
            problems.append(required(where, needed))
        return problems + ([too_long(where, _LONGEST_PROFILE)] if len(local.encode()) > _LONGEST_PROFILE else [])
    if type_ in _PROFILES:
        return [] if local is None else [invalid(where, local, "can only be set when AppArmor type is Localhost")]
    if not type_:
        return [required(f"{path}.type", "type is required when appArmorProfile is set")]
    return [unsupported(f"{path}.type", type_, _PROFILES)]


def container_context(path: str, context: Tree | None, *, host_users: bool) -> list[FieldProblem]:
    """Validate the security context of a container."""
    if context is None:
        return []
    problems = _ids(path, context, ("runAsUser", "runAsGroup"))
    mount = context.get("procMount")
    if mount is not None:
        if mount not in _PROC_MOUNTS:
            problems.append(unsupported(f"{path}.procMount", mount, _PROC_MOUNTS))
        if host_users and mount == "Unmasked":
            problems.append(invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    problems += seccomp(f"{path}.seccompProfile", context.get("seccompProfile"))
    if context.get("allowPrivilegeEscalation") is False:
        shown = printed(context, "core.SecurityContext")
        denied = "cannot set `allowPrivilegeEscalation` to false and"
        if context.get("privileged"):
            problems.append(invalid(path, shown, f"{denied} `privileged` to true"))
        added = items(inner(context, "capabilities"), "add")
        problems += [
            invalid(path, shown, f"{denied} `capabilities.Add` {one}") for one in added if one == "CAP_SYS_ADMIN"
        ]
    return problems + app_armor(f"{path}.appArmorProfile", context.get("appArmorProfile"))


def pod_context(path: str, spec: Tree) -> list[FieldProblem]:
    """Validate the security context of a Pod."""
    context = spec.get("securityContext")
    if context is None:
        return []
    problems = _ids(path, context, ("fsGroup", "runAsUser", "runAsGroup"))
    for index, group in until_enough(items(context, "supplementalGroups"), problems):
        problems += each(f"{path}.supplementalGroups[{index}]", group, in_range(group, 0, MAX_INT32))
    problems += _sysctls(f"{path}.sysctls", items(context, "sysctls"), spec)
    problems += _one_of(path, context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"))
    problems += seccomp(f"{path}.seccompProfile", context.get("seccompProfile"))
    problems += app_armor(f"{path}.appArmorProfile", context.get("appArmorProfile"))
    problems += _one_of(path, context, "supplementalGroupsPolicy", ("Merge", "Strict"))
    return problems + _one_of(path, context, "seLinuxChangePolicy", ("MountOption", "Recursive"))


def shared_processes(path: str, spec: Tree) -> list[FieldProblem]:
    """Check that the containers of a Pod do not share two kinds of process namespaces."""
    if not (spec.get("shareProcessNamespace") and spec.get("hostPID")):
        return []
    detail = "ShareProcessNamespace and HostPID cannot both be enabled"
    return [invalid(f"{path}.shareProcessNamespace", True, detail)]


def _one_of(path: str, context: Tree, name: str, known: tuple[str, ...]) -> list[FieldProblem]:
    value = context.get(name)
    return [] if value is None or value in known else [unsupported(f"{path}.{name}", value, known)]


def _sysctls(path: str, given: list[Tree], spec: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    for index, one in until_enough(given, problems):
        where, name = f"{path}[{index}].name", one.get("name", "")
        if not name:
            problems.append(required(where))
        elif len(name) > 253 or not re.fullmatch(_SYSCTL, name):
            problems.append(invalid(where, name, f"must have at most 253 characters and match regex ^{_SYSCTL}$"))
        elif name in seen:
            problems.append(duplicate(where, name))
        space = _kernel_namespace(name)
        if spec.get("hostNetwork") and space == "net":
            problems.append(invalid(where, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and space == "ipc":
            problems.append(invalid(where, name, "may not be specified when 'hostIPC' is true"))
        seen.add(name)
    return problems


def _kernel_namespace(name: str) -> str:
    # Either character may separate the parts; the first one found is the separator.
    first = next((sign for sign in name if sign in "./"), "/")
    parts = name if first == "/" else name.translate(str.maketrans("./", "/."))
    if parts.startswith("net/"):
        return "net"
    return "ipc" if parts in _IPC or parts.startswith(("kernel/msg", "kernel/shm", "fs/mqueue/")) else ""


def operating_system(path: str, spec: Tree, containers: Iterable[tuple[str, Tree]]) -> list[FieldProblem]:
    """Fields that a Pod may not set for its operating system."""
    system = spec.get("os")
    if system is None:
        return []
    name = system.get("name", "")
    if not name:
        return [required(f"{path}.os.name")]
    if name not in {"linux", "windows"}:
        return [unsupported(f"{path}.os", name, ("linux", "windows"))]
    context: Tree = inner(spec, "securityContext")
    if name == "linux":
        detail = "windows options cannot be set for a linux pod"
        paths = [f"{path}.securityContext"] if "windowsOptions" in context else []
        paths += [
            f"{at}.securityContext" for at, one in containers if "windowsOptions" in inner(one, "securityContext")
        ]
        return [forbidden(f"{at}.windowsOptions", detail) for at in paths]
    found = [f"{path}.{at}" for at, value in _pod_fields(spec, context) if value]
    for at, one in containers:
        found += [f"{at}.securityContext.{name}" for name in _LINUX_ONLY if name in inner(one, "securityContext")]
    return [forbidden(at, _NOT_WINDOWS) for at in found]


_LINUX_ONLY = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def _pod_fields(spec: Tree, context: Tree) -> list[tuple[str, Any]]:
    def inside(name: str) -> tuple[str, Any]:
        return f"securityContext.{name}", name in context

    return [
        inside("appArmorProfile"),
        inside("seLinuxOptions"),
        inside("seccompProfile"),
        inside("fsGroup"),
        inside("fsGroupChangePolicy"),
        inside("sysctls"),
        *map(
            inside, ("runAsUser", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy")
        ),
        ("hostUsers", "hostUsers" in spec),
        ("hostPID", spec.get("hostPID")),
        ("hostIPC", spec.get("hostIPC")),
        ("shareProcessNamespace", "shareProcessNamespace" in spec),
    ]
