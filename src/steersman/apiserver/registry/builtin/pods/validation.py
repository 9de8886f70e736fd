"""Validation of the spec of a Pod, or of a Pod template."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.apiserver.registry.builtin.pods.containers import (
    Surrounding,
    containers,
    ephemeral_containers,
    init_containers,
)
from steersman.apiserver.registry.builtin.pods.profiles import (
    MIRROR,
    SECCOMP_CONTAINER,
    SECCOMP_POD,
    containers_with_paths,
    profile_annotations,
)
from steersman.apiserver.registry.builtin.pods.resources import pod_resources, requirements
from steersman.apiserver.registry.builtin.pods.scheduling import (
    affinity,
    gates,
    is_integer,
    tolerations,
    topology_spread,
)
from steersman.apiserver.registry.builtin.pods.security import operating_system, pod_context, shared_processes
from steersman.apiserver.registry.builtin.pods.volumes import volumes
from steersman.apiserver.registry.builtin.types.file_paths import descending
from steersman.apiserver.registry.builtin.types.formats import MAX_INT32, in_range, ip_address
from steersman.apiserver.registry.builtin.types.internal_form import printed
from steersman.apiserver.registry.builtin.types.labels import annotations, labels
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
    too_long,
    unsupported,
    until_enough,
)
from steersman.schemas.names import dns_label, dns_subdomain, dns_subdomain_with_underscores, qualified_name

_RESTARTS = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTIONS = ("PreemptLowerPriority", "Never")
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def pod_annotations(path: str, given: Mapping[str, str] | None, spec: Tree) -> list[FieldProblem]:
    """Validate the annotations with a meaning."""
    given = given or {}
    problems: list[FieldProblem] = []
    if MIRROR in given and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        problems.append(invalid(f"{path}[{MIRROR}]", given[MIRROR], detail))
    cost = given.get(_DELETION_COST)
    if cost is not None and not is_integer(cost):
        problems.append(invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer"))
    for key, profile in given.items():
        if key == SECCOMP_POD or key.startswith(SECCOMP_CONTAINER):
            problems += _seccomp_profile(f"{path}.{key}", profile)
    problems += profile_annotations(path, given, spec)
    return problems


def _seccomp_profile(path: str, profile: str) -> list[FieldProblem]:
    if profile in {"runtime/default", "docker/default", "unconfined"}:
        return []
    kind, _, file = profile.partition("/")
    return (
        descending(path, file) if kind == "localhost" else [invalid(path, profile, "must be a valid seccomp profile")]
    )


def pod_spec(path: str, spec: Tree, *, pod: Tree | None) -> list[FieldProblem]:
    """Validate a spec; `pod` is the metadata of the Pod, None for a template."""
    name = (pod or {}).get("name", "")
    good, problems = volumes(f"{path}.volumes", items(spec, "volumes"), name, is_pod=pod is not None)
    claims = items(spec, "resourceClaims")
    around = Surrounding(
        volumes=good,
        claims=frozenset(claim["name"] for claim in claims if claim.get("name")),
        grace=spec.get("terminationGracePeriodSeconds"),
        restart_policy=spec.get("restartPolicy", ""),
        host_users=spec.get("hostUsers") is not False,
        system=inner(spec, "os").get("name", "") if "os" in spec else None,
    )
    main = items(spec, "containers")
    problems += _claims(f"{path}.resourceClaims", claims)
    problems += containers(f"{path}.containers", main, around)
    first, added = items(spec, "initContainers"), items(spec, "ephemeralContainers")
    problems += init_containers(f"{path}.initContainers", first, main, around)
    problems += ephemeral_containers(f"{path}.ephemeralContainers", added, [*main, *first], around)
    problems += pod_resources(path, spec) + _host_network(path, spec, is_pod=pod is not None)
    problems += _choice(f"{path}.restartPolicy", spec.get("restartPolicy", ""), _RESTARTS)
    problems += _choice(f"{path}.dnsPolicy", spec.get("dnsPolicy", ""), _DNS)
    problems += labels(f"{path}.nodeSelector", spec.get("nodeSelector"))
    problems += pod_context(f"{path}.securityContext", spec) + shared_processes(path, spec)
    problems += affinity(f"{path}.affinity", spec.get("affinity")) + _dns(f"{path}.dnsConfig", spec)
    for index, gate in until_enough(items(spec, "readinessGates"), problems):
        condition = gate.get("conditionType", "")
        problems += each(f"{path}.readinessGates[{index}].conditionType", condition, qualified_name(condition))
    problems += gates(f"{path}.schedulingGates", items(spec, "schedulingGates"))
    problems += topology_spread(f"{path}.topologySpreadConstraints", items(spec, "topologySpreadConstraints"))
    problems += _users(path, spec) + _host_name(path, spec) + _names(path, spec)
    problems += operating_system(path, spec, containers_with_paths(path, spec))
    return problems + _file_keys(path, spec)


def _choice(path: str, value: str, known: tuple[str, ...]) -> list[FieldProblem]:
    if value in known:
        return []
    return [unsupported(path, value, known) if value else required(path)]


def _names(path: str, spec: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            problems += each(f"{path}.{name}", spec[name], dns_subdomain(spec[name]))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None:
        problems += each(f"{path}.activeDeadlineSeconds", deadline, in_range(deadline, 1, MAX_INT32))
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            problems += each(f"{path}.{name}", spec[name], dns_label(spec[name]))
    problems += tolerations(f"{path}.tolerations", items(spec, "tolerations"))
    problems += _aliases(f"{path}.hostAliases", items(spec, "hostAliases"))
    for name in ("priorityClassName", "runtimeClassName"):
        if name in spec:
            problems += each(f"{path}.{name}", spec[name], dns_subdomain(spec[name]))
    if "preemptionPolicy" in spec:
        problems += _choice(f"{path}.preemptionPolicy", spec["preemptionPolicy"], _PREEMPTIONS)
    if spec.get("overhead"):
        problems += requirements(f"{path}.overhead", {"limits": spec["overhead"]})
    return problems


def _aliases(path: str, given: list[Tree]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for index, alias in until_enough(given, problems):
        where, address = f"{path}[{index}]", alias.get("ip", "")
        problems += each(f"{where}.ip", address, ip_address(address))
        for position, host in until_enough(items(alias, "hostnames"), problems):
            problems += each(f"{where}.hostnames[{position}]", host, dns_subdomain(host))
    return problems


def _claims(path: str, given: list[Tree]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    names = ("resourceClaimName", "resourceClaimTemplateName")
    for index, claim in until_enough(given, problems):
        where, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            problems.append(required(f"{where}.name"))
        elif name in seen:
            problems.append(duplicate(f"{where}.name", name))
        else:
            problems += each(f"{where}.name", name, dns_label(name))
            seen.add(name)
        shown = printed(claim, "core.PodResourceClaim")
        if all(one in claim for one in names):
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            problems.append(invalid(where, shown, detail))
        if not any(one in claim for one in names):
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            problems.append(invalid(where, shown, detail))
        for one in names:
            if one in claim:
                problems += each(f"{where}.{one}", claim[one], dns_subdomain(claim[one]))
    return problems


def _host_network(path: str, spec: Tree, *, is_pod: bool) -> list[FieldProblem]:
    if not spec.get("hostNetwork"):
        return []
    detail = "must match `containerPort` when `hostNetwork` is true"
    return enough(
        invalid(f"{path}.containers[{index}].ports[{position}].hostPort", port.get("hostPort", 0), detail)
        for index, one in enumerate(items(spec, "containers"))
        for position, port in enumerate(items(one, "ports"))
        if (is_pod or port.get("hostPort", 0)) and port.get("hostPort", 0) != port.get("containerPort", 0)
    )


def _dns(path: str, spec: Tree) -> list[FieldProblem]:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{path}.nameservers", detail)]
    if config is None:
        return []
    return _resolver(path, items(config, "nameservers"), items(config, "searches"), items(config, "options"))


def _resolver(path: str, servers: list[str], searches: list[str], options: list[Tree]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    if len(servers) > 3:
        problems.append(invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers"))
    for index, server in until_enough(servers, problems):
        problems += each(f"{path}.nameservers[{index}]", server, ip_address(server))
    if len(searches) > 32:
        problems.append(invalid(f"{path}.searches", searches, "must not have more than 32 search paths"))
    if len(" ".join(searches).encode()) > 2048:
        detail = "must not have more than 2048 characters (including spaces) in the search list"
        problems.append(invalid(f"{path}.searches", searches, detail))
    for index, search in until_enough(searches, problems):
        if search != ".":
            judged = search.removesuffix(".")
            problems += each(f"{path}.searches[{index}]", judged, dns_subdomain_with_underscores(judged))
    for index, option in until_enough(options, problems):
        if not option.get("name"):
            problems.append(required(f"{path}.options[{index}]", "must not be empty"))
    return problems


def _users(path: str, spec: Tree) -> list[FieldProblem]:
    if spec.get("hostUsers") is not False:
        return []
    detail = "when `hostUsers` is false"
    fields = (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC"))
    problems = [forbidden(f"{path}.{shown}", detail) for name, shown in fields if spec.get(name)]
    return problems + [
        forbidden(f"{where}.volumeDevices", detail)
        for where, one in containers_with_paths(path, spec)
        if one.get("volumeDevices")
    ]


def _host_name(path: str, spec: Tree) -> list[FieldProblem]:
    name = spec.get("hostnameOverride")
    if name is None:
        return []
    where = f"{path}.hostnameOverride"
    problems: list[FieldProblem] = []
    if spec.get("setHostnameAsFQDN"):
        problems.append(forbidden(where, "may not be specified when setHostnameAsFQDN is true"))
    if spec.get("hostNetwork"):
        problems.append(forbidden(where, "may not be specified when hostNetwork is true"))
    if len(name.encode()) > 64:
        problems.append(too_long(where, 64))
    return problems + each(where, name, dns_subdomain(name))


def _file_keys(path: str, spec: Tree) -> list[FieldProblem]:
    sources = {volume.get("name", ""): volume for volume in items(spec, "volumes")}
    problems: list[FieldProblem] = []
    for where, one in containers_with_paths(path, spec):
        for index, variable in until_enough(items(one, "env"), problems):
            reference = inner(variable, "valueFrom").get("fileKeyRef")
            if reference is None:
                continue
            name, at = reference.get("volumeName", ""), f"{where}.env[{index}].valueFrom.fileKeyRef.volumeName"
            if name not in sources:
                problems.append(missing(at, name))
            elif "emptyDir" not in sources[name]:
                problems.append(invalid(at, name, "referenced volume must be of type emptyDir"))
    return problems


def pod_template(path: str, template: Tree) -> list[FieldProblem]:
    """Validate a Pod template."""
    meta, spec = inner(template, "metadata"), inner(template, "spec")
    problems = labels(f"{path}.labels", meta.get("labels"))
    problems += annotations(f"{path}.annotations", meta.get("annotations"))
    problems += pod_annotations(f"{path}.annotations", meta.get("annotations"), spec)
    problems += pod_spec(f"{path}.spec", spec, pod=None)
    if spec.get("ephemeralContainers"):
        problems.append(
            forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")
        )
    return problems
