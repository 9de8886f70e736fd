"""The containers of a Pod."""

from __future__ import annotations

from typing import Any, NamedTuple

from steersman.apiserver.registry.builtin.pods.environment import environment, environment_from
from steersman.apiserver.registry.builtin.pods.handlers import lifecycle, probes
from steersman.apiserver.registry.builtin.pods.resources import requirements
from steersman.apiserver.registry.builtin.pods.security import container_context
from steersman.apiserver.registry.builtin.pods.volumes import pull_policy
from steersman.apiserver.registry.builtin.types.file_paths import descending, no_backsteps
from steersman.apiserver.registry.builtin.types.formats import port_name, port_number
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.objects.field_problems import (
    FieldProblem,
    duplicate,
    each,
    enough,
    forbidden,
    invalid,
    missing,
    required,
    too_many,
    unsupported,
    until_enough,
)
from steersman.schemas.names import dns_label

PROTOCOLS = ("SCTP", "TCP", "UDP")
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIONS = ("Disabled", "Enabled", "IfPossible")
_RESTARTS = ("Always", "Never", "OnFailure")
_ACTIONS = ("Restart", "RestartAllContainers")
_HOOKS = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
#: Fields that an ephemeral container does not have.
_LASTING = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
)  # fmt: skip
_NOT_EPHEMERAL = "cannot be set for an Ephemeral Container"
_ONLY_SIDECARS = "may not be set for init containers without restartPolicy=Always"


class Surrounding(NamedTuple):
    """What a container's validation depends on beside itself."""

    volumes: dict[str, Tree]
    claims: frozenset[str]
    grace: int | None
    restart_policy: str
    host_users: bool
    system: str | None


def containers(path: str, given: list[Tree], around: Surrounding) -> list[FieldProblem]:
    """Validate the containers of a Pod."""
    if not given:
        return [required(path)]
    problems: list[FieldProblem] = []
    names: set[str] = set()
    for index, one in until_enough(given, problems):
        where, name = f"{path}[{index}]", one.get("name", "")
        problems += _any_container(where, one, around)
        if name in names:
            problems.append(duplicate(f"{where}.name", name))
        names.add(name)
        if "lifecycle" in one:
            problems += lifecycle(f"{where}.lifecycle", one["lifecycle"], around.grace, around.system)
        problems += probes(where, one, around.grace) + _restarts(where, one)
    return problems + _host_ports(path, given)


def init_containers(path: str, given: list[Tree], others: list[Tree], around: Surrounding) -> list[FieldProblem]:
    """Validate the init containers and sidecars."""
    problems: list[FieldProblem] = []
    names = {other.get("name", "") for other in others}
    for index, one in until_enough(given, problems):
        where, name = f"{path}[{index}]", one.get("name", "")
        problems += _any_container(where, one, around) + _restarts(where, one)
        if name in names:
            problems.append(duplicate(f"{where}.name", name))
        elif name:
            names.add(name)
        problems += _host_ports(path, [one])
        if one.get("restartPolicy") == "Always":
            if "lifecycle" in one:
                problems += lifecycle(f"{where}.lifecycle", one["lifecycle"], around.grace, around.system)
            problems += probes(where, one, around.grace)
        else:
            problems += [forbidden(f"{where}.{hook}", _ONLY_SIDECARS) for hook in _HOOKS if hook in one]
            problems += _not_restarted(f"{where}.resizePolicy", items(one, "resizePolicy"))
    return problems


def ephemeral_containers(path: str, given: list[Tree], others: list[Tree], around: Surrounding) -> list[FieldProblem]:
    """Validate the ephemeral containers of a Pod."""
    problems: list[FieldProblem] = []
    targets = {other.get("name", "") for other in others}
    names = set(targets)
    for index, one in until_enough(given, problems):
        where, name, image = f"{path}[{index}]", one.get("name", ""), one.get("image", "")
        problems += _any_container(where, one, around)
        if image != image.strip():
            problems.append(invalid(f"{where}.image", image, "must not have leading or trailing whitespace"))
        problems += [duplicate(f"{where}.name", name)] if name in names else []
        names.add(name)
        target = one.get("targetContainerName", "")
        if target and target not in targets:
            problems.append(missing(f"{where}.targetContainerName", target))
        problems += [forbidden(f"{where}.{field}", _NOT_EPHEMERAL) for field in _LASTING if one.get(field)]
        for at, mount in until_enough(items(one, "volumeMounts"), problems):
            problems += [
                forbidden(f"{where}.volumeMounts[{at}].{field}", _NOT_EPHEMERAL)
                for field in ("subPath", "subPathExpr")
                if mount.get(field)
            ]
    return problems


def _not_restarted(path: str, policies: list[Tree]) -> list[FieldProblem]:
    detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return enough(
        invalid(f"{path}[{index}].restartPolicy", "RestartContainer", detail)
        for index, policy in enumerate(policies)
        if policy.get("restartPolicy") == "RestartContainer"
    )


def _any_container(path: str, one: Tree, around: Surrounding) -> list[FieldProblem]:
    name = one.get("name", "")
    problems = each(f"{path}.name", name, dns_label(name)) if name else [required(f"{path}.name")]
    if not one.get("image"):
        problems.append(required(f"{path}.image"))
    policy, known = one.get("terminationMessagePolicy", ""), ("File", "FallbackToLogsOnError")
    if policy not in known:
        where = f"{path}.terminationMessagePolicy"
        problems.append(unsupported(where, policy, known) if policy else required(where))
    mounts, devices = items(one, "volumeMounts"), items(one, "volumeDevices")
    problems += ports(f"{path}.ports", items(one, "ports"))
    problems += environment(f"{path}.env", items(one, "env"))
    problems += environment_from(f"{path}.envFrom", items(one, "envFrom"))
    problems += _mounts(f"{path}.volumeMounts", mounts, devices, one, around.volumes)
    problems += _devices(f"{path}.volumeDevices", devices, mounts, around.volumes)
    problems += pull_policy(f"{path}.imagePullPolicy", one.get("imagePullPolicy", ""))
    problems += requirements(f"{path}.resources", inner(one, "resources"), claims=around.claims)
    problems += _resizes(f"{path}.resizePolicy", items(one, "resizePolicy"), around.restart_policy)
    context = one.get("securityContext")
    return problems + container_context(f"{path}.securityContext", context, host_users=around.host_users)


def ports(path: str, given: list[Tree]) -> list[FieldProblem]:
    """Validate the ports of a container."""
    problems: list[FieldProblem] = []
    names: set[str] = set()
    for index, port in until_enough(given, problems):
        where, name = f"{path}[{index}]", port.get("name", "")
        if name:
            wrong = port_name(name)
            problems += each(f"{where}.name", name, wrong)
            if not wrong and name in names:
                problems.append(duplicate(f"{where}.name", name))
            if not wrong:
                names.add(name)
        number, host = port.get("containerPort", 0), port.get("hostPort", 0)
        if number:
            problems += each(f"{where}.containerPort", number, port_number(number))
        else:
            problems.append(required(f"{where}.containerPort"))
        if host:
            problems += each(f"{where}.hostPort", host, port_number(host))
        protocol = port.get("protocol", "")
        if not protocol:
            problems.append(required(f"{where}.protocol"))
        elif protocol not in PROTOCOLS:
            problems.append(unsupported(f"{where}.protocol", protocol, PROTOCOLS))
    return problems


def _host_ports(path: str, given: list[Tree]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    taken: set[str] = set()
    for index, one in until_enough(given, problems):
        for position, port in until_enough(items(one, "ports"), problems):
            if port.get("hostPort", 0):
                key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
                if key in taken:
                    problems.append(duplicate(f"{path}[{index}].ports[{position}].hostPort", key))
                taken.add(key)
    return problems


def _mounts(path: str, given: list[Tree], devices: list[Tree], one: Tree, known: dict[str, Tree]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    places: set[str] = set()
    for index, mount in until_enough(given, problems):
        where, name, place = f"{path}[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            problems.append(required(f"{where}.name"))
        if name not in known:
            problems.append(missing(f"{where}.name", name))
        if not place:
            problems.append(required(f"{where}.mountPath"))
        if place in places:
            problems.append(invalid(f"{where}.mountPath", place, "must be unique"))
        places.add(place)
        if any(device.get("name", "") == name for device in devices):
            problems.append(invalid(f"{where}.name", name, "must not already exist in volumeDevices"))
        if any(device.get("devicePath", "") == place for device in devices):
            problems.append(invalid(f"{where}.mountPath", place, "must not already exist as a path in volumeDevices"))
        problems += _sub_paths(path, where, mount) + _propagation(path, mount, one)
    return problems


def _sub_paths(path: str, where: str, mount: Tree) -> list[FieldProblem]:
    fixed, expanded = mount.get("subPath", ""), mount.get("subPathExpr", "")
    problems = descending(f"{path}.subPath", fixed)
    if fixed and expanded:
        problems.append(invalid(f"{where}.subPathExpr", expanded, "subPathExpr and subPath are mutually exclusive"))
    return problems + descending(f"{path}.subPathExpr", expanded)


def _propagation(path: str, mount: Tree, one: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    mode, recursion = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    if mode is not None:
        if mode not in _PROPAGATIONS:
            problems.append(unsupported(f"{path}.mountPropagation", mode, _PROPAGATIONS))
        if mode == "Bidirectional" and not inner(one, "securityContext").get("privileged"):
            detail = "Bidirectional mount propagation is available only to privileged containers"
            problems.append(forbidden(f"{path}.mountPropagation", detail))
    where = f"{path}.recursiveReadOnly"
    if recursion in {"Enabled", "IfPossible"}:
        if not mount.get("readOnly"):
            problems.append(forbidden(where, "may only be specified when readOnly is true"))
        if mode not in {None, "None"}:
            detail = "may only be specified when mountPropagation is None or not specified"
            problems.append(forbidden(where, detail))
    elif recursion not in {None, "Disabled"}:
        problems.append(unsupported(where, recursion, _RECURSIONS))
    return problems


def _devices(path: str, given: list[Tree], mounts: list[Tree], known: dict[str, Tree]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    names: set[str] = set()
    places: set[str] = set()
    for index, device in until_enough(given, problems):
        where, name, place = f"{path}[{index}]", device.get("name", ""), device.get("devicePath", "")
        if not name:
            problems.append(required(f"{where}.name"))
        if name in names:
            problems.append(invalid(f"{where}.name", name, "must be unique"))
        if name not in known:
            problems.append(missing(f"{where}.name", name))
        elif not {"persistentVolumeClaim", "ephemeral"} & set(known[name]):
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            problems.append(invalid(f"{where}.name", name, detail))
        if not place:
            problems.append(required(f"{where}.devicePath"))
        if place in places:
            problems.append(invalid(f"{where}.devicePath", place, "must be unique"))
        if place and no_backsteps("", place):
            problems.append(invalid(f"{where}.devicePath", place, "can not contain backsteps ('..')"))
        else:
            places.add(place)
        problems += _not_mounted(where, name, place, mounts)
        names |= {name} - {""}
    return problems


def _not_mounted(where: str, name: str, place: str, mounts: list[Tree]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    if any(mount.get("name", "") == name for mount in mounts):
        problems.append(invalid(f"{where}.name", name, "must not already exist in volumeMounts"))
    if any(mount.get("mountPath", "") == place for mount in mounts):
        detail = "must not already exist as a path in volumeMounts"
        problems.append(invalid(f"{where}.devicePath", place, detail))
    return problems


def _resizes(path: str, policies: list[Tree], restart_policy: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    seen: set[Any] = set()
    for index, policy in until_enough(policies, problems):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            problems.append(duplicate(f"{path}[{index}]", resource))
        seen.add(resource)
        for value, known in ((resource, ("cpu", "memory")), (restart, ("NotRequired", "RestartContainer"))):
            if value not in known:
                problems.append(unsupported(path, value, known) if value else required(path))
        if restart_policy == "Never" and restart != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            problems.append(invalid(path, restart, detail))
    return problems


def _restarts(path: str, one: Tree) -> list[FieldProblem]:
    policy, rules = one.get("restartPolicy"), items(one, "restartPolicyRules")
    where = f"{path}.restartPolicy"
    problems: list[FieldProblem] = []
    if policy is None:
        if not rules:
            return []
        problems.append(required(where, "must specify restartPolicy when restart rules are used"))
    elif policy not in _RESTARTS:
        problems.append(unsupported(where, policy, _RESTARTS))
    if len(rules) > 20:
        problems.append(too_many(f"{path}.restartPolicyRules", len(rules), 20))
    for index, rule in until_enough(rules, problems):
        at, codes = f"{path}.restartPolicyRules[{index}]", rule.get("exitCodes")
        if rule.get("action", "") not in _ACTIONS:
            problems.append(unsupported(f"{at}.action", rule.get("action", ""), _ACTIONS))
        if codes is None:
            problems.append(required(f"{at}.exitCodes", "must be specified"))
            continue
        if codes.get("operator", "") not in {"In", "NotIn"}:
            problems.append(unsupported(f"{at}.exitCodes.operator", codes.get("operator", ""), ("In", "NotIn")))
        if len(items(codes, "values")) > 255:
            problems.append(too_many(f"{at}.exitCodes.values", len(codes["values"]), 255))
    return problems
