"""Services: their types, ports, addresses and policies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from steersman.apiserver.registry.builtin.pods.containers import PROTOCOLS
from steersman.apiserver.registry.builtin.service_addresses import (
    NONE,
    give_back,
    is_headless,
    needs_address,
    needs_health_port,
    needs_node_ports,
    out_of_range,
    settle,
    take,
)
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.formats import (
    cidr,
    ip_address,
    ip_family,
    port,
    port_number,
    unreachable,
)
from steersman.apiserver.registry.builtin.types.internal_form import printed
from steersman.apiserver.registry.builtin.types.labels import labels
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata, subtree
from steersman.apiserver.registry.strategy import CHANGED, Surroundings
from steersman.objects.field_problems import (
    FieldProblem,
    duplicate,
    each,
    enough,
    forbidden,
    invalid,
    required,
    unsupported,
    until_enough,
)
from steersman.schemas.names import dns_label, dns_subdomain, qualified_name

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_INSIDE = ("ClusterIP", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")
_POLICIES = ("Cluster", "Local")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_ONLY_BALANCED = "may only be used when `type` is 'LoadBalancer'"
_LONGEST_AFFINITY = 86400
_CHANGED = "may not change once set"


def _is_external(spec: Mapping[str, Any]) -> bool:
    type_ = spec.get("type")
    return type_ in {"LoadBalancer", "NodePort"} or (type_ == "ClusterIP" and bool(spec.get("externalIPs")))


class ServiceStrategy(BuiltinStrategy):
    """How Services behave."""

    names = "label"
    create_on_update = True
    allocates = True

    def fill(self, obj: Tree) -> None:
        spec: Tree = obj["spec"]
        _fill_affinity(spec)
        type_ = spec.setdefault("type", "ClusterIP")
        for one in items(spec, "ports"):
            one.setdefault("protocol", "TCP")
            one["targetPort"] = one.get("targetPort") or one["port"]
        if _is_external(spec):
            spec.setdefault("externalTrafficPolicy", "Cluster")
        if type_ in _INSIDE:
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if type_ == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
            for ingress in items(subtree(obj, "status", "loadBalancer"), "ingress"):
                if ingress.get("ip"):
                    ingress.setdefault("ipMode", "VIP")

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        """Keep the allocated values of the Service, and drop those that its new type does not have."""
        super().prepare_update(obj, old)
        new, before = obj["spec"], old["spec"]
        _keep_given(new, before)
        _one_address(new, before)
        _drop(new, before)
        if new.get("type") != "LoadBalancer":
            obj["status"] = dict(inner(obj, "status")) | {"loadBalancer": {}}

    async def allocate(self, obj: Tree, old: Tree | None, surroundings: Surroundings, *, dry_run: bool) -> None:
        await take(obj, old, surroundings, dry_run=dry_run)

    async def release(self, obj: Tree | None, kept: Iterable[Tree | None], surroundings: Surroundings) -> None:
        await give_back(obj, kept, surroundings)

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        """Validate a new Service, with its address in both fields."""
        spec: Tree = obj["spec"]
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        return self._asked(obj, None) or self._judge(obj, None)

    def validate_unallocated(self, obj: Tree) -> list[FieldProblem]:
        return self._judge(obj, None)

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Addresses, families and classes are immutable."""
        asked = self._asked(obj, old)
        if asked:
            return asked
        new, before = obj["spec"], old["spec"]
        problems = [CHANGED, *_same_addresses(new, before), *_same_families(new, before)]
        if new.get("type") == "LoadBalancer" == before.get("type"):
            class_ = new.get("loadBalancerClass")
            if class_ != before.get("loadBalancerClass"):
                problems.append(invalid("spec.loadBalancerClass", class_, _CHANGED))
        problems += _class(new)
        moved = new.get("healthCheckNodePort") != before.get("healthCheckNodePort")
        if needs_health_port(new) and needs_health_port(before) and moved:
            problems.append(forbidden("spec.healthCheckNodePort", "field is immutable"))
        return problems + self._judge(obj, old)

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings about deprecated fields."""
        del old
        found: list[str] = []
        spec: Tree = obj["spec"]
        is_name = spec.get("type") == "ExternalName"
        if spec.get("type") == "ClusterIP" and spec.get("clusterIP") == "None":
            ignored = [name for name in ("loadBalancerIP", "externalIPs") if spec.get(name)]
            ignored += ["SessionAffinity"] if spec.get("sessionAffinity") != "None" else []
            found += [f"spec.{name} is ignored for headless services" for name in ignored]
        elif spec.get("externalIPs") and not is_name:
            found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
        if spec.get("externalIPs") and is_name:
            found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
        if spec.get("externalName") and not is_name:
            found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
        if spec.get("trafficDistribution") == "PreferClose":
            found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
        return found

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        path = "status.loadBalancer.ingress"
        given = items(subtree(obj, "status", "loadBalancer"), "ingress")
        if given and obj["spec"].get("type") != "LoadBalancer":
            return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
        known = {one.get("ip") for one in items(subtree(old, "status", "loadBalancer"), "ingress")}
        problems: list[FieldProblem] = []
        for index, one in until_enough(given, problems):
            problems += _ingress(f"{path}[{index}]", one, known)
        return problems

    @staticmethod
    def _asked(obj: Tree, old: Tree | None) -> list[FieldProblem]:
        """Problems that are reported before all others, because the values cannot be allocated."""
        spec, before = obj["spec"], inner(old or {}, "spec")
        if not needs_address(spec):
            return []
        if "ipFamilyPolicy" not in spec and "ipFamilyPolicy" in before:
            spec["ipFamilyPolicy"] = before["ipFamilyPolicy"]
        return _addresses(spec, before) or settle(spec) or out_of_range(spec, before)

    @staticmethod
    def _judge(obj: Tree, old: Tree | None) -> list[FieldProblem]:
        spec, before = obj["spec"], inner(old or {}, "spec")
        problems = _type(spec)
        names: set[str] = set()
        given = items(spec, "ports")
        for index, one in until_enough(given, problems):
            problems += _port(f"spec.ports[{index}]", one, names, named=len(given) > 1)
        problems += labels("spec.selector", spec.get("selector")) + _affinity(spec)
        problems += _addresses(spec, before)
        for index, address in until_enough(items(spec, "externalIPs"), problems):
            where = f"spec.externalIPs[{index}]"
            wrong = [] if address in (items(before, "externalIPs")) else ip_address(address)
            problems += each(where, address, wrong or unreachable(address))
        if spec.get("type") not in _TYPES:
            problems.append(unsupported("spec.type", spec.get("type", ""), _TYPES))
        problems += _unique(spec, given) + _ranges(obj, old)
        if "allocateLoadBalancerNodePorts" in spec and spec.get("type") != "LoadBalancer":
            problems.append(forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCED))
        return problems + _class(spec) + _policies(spec)


def _fill_affinity(spec: Tree) -> None:
    affinity = spec.setdefault("sessionAffinity", "None")
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP" and subtree(spec, "sessionAffinityConfig", "clientIP").get("timeoutSeconds") is None:
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}


def _ingress(path: str, one: Tree, known: set[Any]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    address, mode, host = one.get("ip", ""), one.get("ipMode"), one.get("hostname", "")
    if address and address not in known:
        problems += each(f"{path}.ip", address, ip_address(address))
    if mode is None:
        problems += [required(f"{path}.ipMode", "must be specified when `ip` is set")] if address else []
    elif not address:
        problems.append(forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set"))
    elif mode not in {"Proxy", "VIP"}:
        problems.append(unsupported(f"{path}.ipMode", mode, ("Proxy", "VIP")))
    if host:
        problems += each(f"{path}.hostname", host, dns_subdomain(host))
        if ip_family(host):
            problems.append(invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address"))
    return problems


def _type(spec: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    type_ = spec.get("type")
    if not spec.get("ports") and not is_headless(spec) and type_ != "ExternalName":
        problems.append(required("spec.ports"))
    if type_ in {"LoadBalancer", "NodePort"} and is_headless(spec):
        detail = f"may not be set to 'None' for {type_} services"
        problems.append(invalid("spec.clusterIPs[0]", NONE, detail))
    if type_ == "ExternalName":
        detail = "may not be set for ExternalName services"
        names = ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        problems += [forbidden(f"spec.{name}", detail) for name in names if spec.get(name)]
        name = spec.get("externalName", "").removesuffix(".")
        problems += each("spec.externalName", name, dns_subdomain(name)) if name else [required("spec.externalName")]
    return problems


def _port(path: str, one: Tree, names: set[str], *, named: bool) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    name = one.get("name", "")
    if name:
        problems += each(f"{path}.name", name, dns_label(name))
        if name in names:
            problems.append(duplicate(f"{path}.name", name))
        names.add(name)
    elif named:
        problems.append(required(f"{path}.name"))
    problems += each(f"{path}.port", one.get("port", 0), port_number(one.get("port", 0)))
    if one.get("protocol") not in PROTOCOLS:
        problems.append(unsupported(f"{path}.protocol", one.get("protocol", ""), PROTOCOLS))
    target = one.get("targetPort", 0)
    problems += each(f"{path}.targetPort", target, port(target))
    application = one.get("appProtocol")
    return problems + (
        [] if application is None else each(f"{path}.appProtocol", application, qualified_name(application))
    )


def _affinity(spec: Tree) -> list[FieldProblem]:
    kind, config = spec.get("sessionAffinity"), spec.get("sessionAffinityConfig")
    if kind not in _AFFINITIES:
        return [unsupported("spec.sessionAffinity", kind, _AFFINITIES)]
    if kind == "ClientIP":
        seconds = subtree(spec, "sessionAffinityConfig", "clientIP").get("timeoutSeconds", 0)
        if not 0 < seconds <= _LONGEST_AFFINITY:
            where = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            return [invalid(where, seconds, f"must be greater than 0 and less than {_LONGEST_AFFINITY}")]
        return []
    detail = "must not be set when session affinity is None"
    return [] if config is None else [forbidden("spec.sessionAffinityConfig", detail)]


def _addresses(spec: Tree, before: Tree) -> list[FieldProblem]:
    if not needs_address(spec):
        return []
    given, families = items(spec, "clusterIPs"), items(spec, "ipFamilies")
    problems = _both_fields(spec.get("clusterIP", ""), given)
    seen: set[str] = set()
    for index, family in until_enough(families, problems):
        if family not in {"IPv4", "IPv6"}:
            problems.append(unsupported(f"spec.ipFamilies[{index}]", family, ("IPv4", "IPv6")))
        if family in seen:
            problems.append(duplicate(f"spec.ipFamilies[{index}]", family))
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        problems.append(unsupported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES))
    wrong = _each_address(given, before)
    problems += wrong
    if len(given) > 2:
        problems.append(invalid("spec.clusterIPs", given, "may only hold up to 2 values"))
    return problems if wrong else problems + _by_family(spec, given, families)


def _both_fields(address: str, given: list[str]) -> list[FieldProblem]:
    if address and not given:
        return [required("spec.clusterIPs")]
    if address and given[0] != address:
        return [invalid("spec.clusterIPs", given, "first value must match `clusterIP`")]
    if not address and given:
        return [invalid("spec.clusterIPs", given, "must be empty when `clusterIP` is not specified")]
    return []


def _each_address(given: list[str], before: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    known = items(before, "clusterIPs")
    for index, one in until_enough(given, problems):
        if index == 0 and one == NONE:
            if len(given) > 1:
                problems.append(invalid("spec.clusterIPs", given, "'None' must be the first and only value"))
        elif one not in known:
            problems += each(f"spec.clusterIPs[{index}]", one, ip_address(one))
    return problems


def _by_family(spec: Tree, given: list[str], families: list[str]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    if len(given) > 1 and len({ip_family(one) for one in given}) < 2:
        detail = "may specify no more than one IP for each IP family"
        problems.append(invalid("spec.clusterIPs", given, detail))
    for index, (one, family) in until_enough(() if is_headless(spec) else zip(given, families, strict=False), problems):
        if family in {"IPv4", "IPv6"} and family[-1] != str(ip_family(one)):
            detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            problems.append(invalid(f"spec.clusterIPs[{index}]", one, detail))
    return problems


def _repeated(given: list[Tree], name: str) -> Iterator[tuple[int, Tree]]:
    """The ports whose protocol and number already occurred."""
    seen: set[tuple[Any, Any]] = set()
    for index, one in enumerate(given):
        key = (one.get("protocol"), one.get(name))
        if key in seen:
            yield index, one
        seen.add(key)


def _unique(spec: Tree, given: list[Tree]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    if spec.get("type") == "ClusterIP":
        detail = "may not be used when `type` is 'ClusterIP'"
        problems += enough(
            forbidden(f"spec.ports[{i}].nodePort", detail) for i, one in enumerate(given) if one.get("nodePort")
        )
    for index, one in _repeated(given, "nodePort"):
        if one.get("nodePort"):
            problems.append(duplicate(f"spec.ports[{index}].nodePort", one["nodePort"]))
    for index, one in _repeated(given, "port"):
        key = {"protocol": one.get("protocol"), "port": one.get("port")}
        problems.append(duplicate(f"spec.ports[{index}]", printed(key, "core.ServicePort")))
    return problems


def _ranges(obj: Tree, old: Tree | None) -> list[FieldProblem]:
    spec, before = obj["spec"], inner(old or {}, "spec")
    given = items(spec, "loadBalancerSourceRanges")
    problems: list[FieldProblem] = []
    balanced = spec.get("type") == "LoadBalancer"
    if given:
        path = "spec.LoadBalancerSourceRanges"
        problems += [] if balanced else [forbidden(path, _ONLY_BALANCED)]
        known = {one.strip() for one in items(before, "loadBalancerSourceRanges")}
        for index, one in until_enough(map(str.strip, given), problems):
            problems += [] if one in known else each(f"{path}[{index}]", one, cidr(one))
        return problems
    noted = inner(metadata(obj), "annotations").get(_SOURCE_RANGES)
    if noted is None:
        return []
    path = f"metadata.annotations[{_SOURCE_RANGES}]"
    problems += [] if balanced else [forbidden(path, _ONLY_BALANCED)]
    same = old is not None and inner(metadata(old), "annotations").get(_SOURCE_RANGES) == noted
    for one in noted.strip().split(",") if noted.strip() and not same else ():
        problems += each(path, one.strip(), cidr(one.strip()))
    return problems


def _class(spec: Tree) -> list[FieldProblem]:
    class_ = spec.get("loadBalancerClass")
    if class_ is None:
        return []
    if spec.get("type") != "LoadBalancer":
        return [forbidden("spec.loadBalancerClass", _ONLY_BALANCED)]
    return each("spec.loadBalancerClass", class_, qualified_name(class_))


def _policies(spec: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    outside, health = spec.get("externalTrafficPolicy", ""), spec.get("healthCheckNodePort", 0)
    if not _is_external(spec):
        if outside:
            detail = "may only be set for externally-accessible services"
            problems.append(invalid("spec.externalTrafficPolicy", outside, detail))
    elif outside not in _POLICIES:
        problems.append(unsupported("spec.externalTrafficPolicy", outside, _POLICIES))
    if not needs_health_port(spec) and health:
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        problems.append(invalid("spec.healthCheckNodePort", health, detail))
    elif health:
        problems += each("spec.healthCheckNodePort", health, port_number(health))
    inside = spec.get("internalTrafficPolicy")
    if inside is not None and inside not in _POLICIES:
        problems.append(unsupported("spec.internalTrafficPolicy", inside, _POLICIES))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        problems.append(unsupported("spec.trafficDistribution", distribution, _DISTRIBUTIONS))
    return problems


def _keep_given(new: Tree, before: Tree) -> None:
    if needs_address(before) and needs_address(new):
        for name in ("clusterIP", "clusterIPs"):
            if not new.get(name) and before.get(name):
                new[name] = before[name]
    if needs_node_ports(before) and needs_node_ports(new):
        numbers = {one.get("name", ""): one.get("nodePort", 0) for one in items(before, "ports")}
        used = {one.get("nodePort", 0) for one in items(new, "ports")}
        for one in items(new, "ports"):
            number = numbers.get(one.get("name", ""), 0)
            if not one.get("nodePort") and number and number not in used:
                one["nodePort"] = number
    if needs_health_port(before) and needs_health_port(new) and before.get("healthCheckNodePort"):
        new.setdefault("healthCheckNodePort", before["healthCheckNodePort"])


def _one_address(new: Tree, before: Tree) -> None:
    if new.get("clusterIP", "") != before.get("clusterIP", "") and new.get("clusterIPs") == before.get("clusterIPs"):
        # A client whose types have only one of the two fields changes only that one.
        if new.get("clusterIP"):
            new["clusterIPs"] = [new["clusterIP"]]
        else:
            new.pop("clusterIPs", None)


def _drop(new: Tree, before: Tree) -> None:
    if needs_address(before) and not needs_address(new):
        if all(new.get(name) == before.get(name) for name in ("clusterIP", "clusterIPs")):
            new.pop("clusterIP", None)
            new.pop("clusterIPs", None)
        for name in ("ipFamilies", "ipFamilyPolicy"):
            _drop_same(new, before, name)
    if needs_node_ports(before) and not needs_node_ports(new):
        held = {one.get("nodePort", 0) for one in items(before, "ports")} | {0}
        if all(one.get("nodePort", 0) in held for one in items(new, "ports")):
            for one in items(new, "ports"):
                one.pop("nodePort", None)
    if needs_health_port(before) and not needs_health_port(new):
        _drop_same(new, before, "healthCheckNodePort")
    if before.get("type") == "LoadBalancer" != new.get("type"):
        _drop_same(new, before, "allocateLoadBalancerNodePorts")
        _drop_same(new, before, "loadBalancerClass")
    if _is_external(before) and not _is_external(new):
        _drop_same(new, before, "externalTrafficPolicy")


def _drop_same(new: Tree, before: Tree, name: str) -> None:
    if new.get(name) == before.get(name):
        new.pop(name, None)


def _same_addresses(new: Tree, before: Tree) -> list[FieldProblem]:
    if not needs_address(new) or not needs_address(before) or (is_headless(new) and is_headless(before)):
        return []
    given, held = items(new, "clusterIPs"), items(before, "clusterIPs")
    if len(given) == len(held):
        pairs = enumerate(zip(given, held, strict=True))
        return [invalid(f"spec.clusterIPs[{index}]", given, _CHANGED) for index, (one, was) in pairs if one != was]
    if held and given and given[0] != held[0]:
        return [invalid("spec.clusterIPs[0]", given, _CHANGED)]
    return []


def _same_families(new: Tree, before: Tree) -> list[FieldProblem]:
    if not needs_address(new) or not needs_address(before) or is_headless(new) or is_headless(before):
        return []
    given, held = items(new, "ipFamilies"), items(before, "ipFamilies")
    if len(given) == len(held):
        return [
            invalid("spec.ipFamilies[0]", given, _CHANGED) for one, was in zip(given, held, strict=True) if one != was
        ]
    return []
