"""Endpoints and EndpointSlices: the addresses and ports behind a Service."""

from __future__ import annotations

import re

from steersman.apiserver.registry.builtin.pods.containers import PROTOCOLS
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.formats import (
    address_warnings,
    canonical_address,
    ip_address,
    ip_family,
    port_number,
    unreachable,
)
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata
from steersman.apiserver.registry.strategy import CHANGED, WHOLE
from steersman.objects.field_problems import (
    FieldProblem,
    duplicate,
    each,
    invalid,
    required,
    too_many,
    unchanged,
    unsupported,
    until_enough,
)
from steersman.schemas.names import dns_label, dns_subdomain, label_value, qualified_name

_TYPES = ("FQDN", "IPv4", "IPv6")
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_SLICE_CONTROLLERS = frozenset({"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"})
_ENDPOINTS_CONTROLLER = ("endpoints.kubernetes.io/managed-by", "endpoint-controller")
_ENDPOINTS_MAX, _ADDRESSES_MAX, _PORTS_MAX, _HINTS_MAX = 1000, 100, 20000, 8


class EndpointsStrategy(BuiltinStrategy):
    """How Endpoints behave."""

    def fill(self, obj: Tree) -> None:
        for subset in items(obj, "subsets"):
            for port in items(subset, "ports"):
                port.setdefault("protocol", "TCP")

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        problems: list[FieldProblem] = []
        for index, subset in until_enough(items(obj, "subsets"), problems):
            problems += _subset(f"subsets[{index}]", subset)
        return problems

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Accept invalid subsets that the update does not change."""
        same = items(obj, "subsets") == items(old, "subsets")
        return [CHANGED, WHOLE, *([] if same else self.validate_create(obj))]

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        del old
        label, controller = _ENDPOINTS_CONTROLLER
        if inner(metadata(obj), "labels").get(label) == controller:
            return []
        return [
            text
            for index, subset in enumerate(items(obj, "subsets"))
            for name in ("addresses", "notReadyAddresses")
            for at, one in enumerate(items(subset, name))
            for text in address_warnings(f"subsets[{index}].{name}[{at}].ip", one.get("ip", ""))
        ]


def _subset(path: str, subset: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    names = ("addresses", "notReadyAddresses")
    if not any(subset.get(name) for name in names):
        problems.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
    for name in names:
        for index, one in until_enough(items(subset, name), problems):
            problems += _address(f"{path}.{name}[{index}]", one)
    ports = items(subset, "ports")
    for index, one in until_enough(ports, problems):
        problems += _port(f"{path}.ports[{index}]", one, named=len(ports) > 1)
    return problems


def _address(path: str, one: Tree) -> list[FieldProblem]:
    address, host, node = one.get("ip", ""), one.get("hostname", ""), one.get("nodeName")
    problems = each(f"{path}.ip", address, ip_address(address))
    problems += each(f"{path}.hostname", host, dns_label(host)) if host else []
    problems += [] if node is None else each(f"{path}.nodeName", node, dns_subdomain(node))
    return problems + each(f"{path}.ip", address, _of_host(address))


def _of_host(address: str) -> list[str]:
    return unreachable(address) if ip_family(address) else ["must be a valid IP address"]


def _port(path: str, one: Tree, *, named: bool) -> list[FieldProblem]:
    name, number = one.get("name", ""), one.get("port", 0)
    problems = [required(f"{path}.name")] if named and not name else []
    problems += each(f"{path}.name", name, dns_label(name)) if name else []
    return problems + each(f"{path}.port", number, port_number(number)) + _protocols(path, one)


def _protocols(path: str, one: Tree) -> list[FieldProblem]:
    protocol, application = one.get("protocol"), one.get("appProtocol")
    problems: list[FieldProblem] = []
    if not protocol:
        problems.append(required(f"{path}.protocol"))
    elif protocol not in PROTOCOLS:
        problems.append(unsupported(f"{path}.protocol", protocol, PROTOCOLS))
    if application is None:
        return problems
    return problems + each(f"{path}.appProtocol", application, qualified_name(application))


class EndpointSliceStrategy(BuiltinStrategy):
    """How EndpointSlices behave."""

    declared_fields = re.compile(r"addressType|endpoints\[\d+\]\.addresses")

    judges_changes = False
    #: Lists that a field manager owns even if they are empty, although empty lists are not stored.
    _lists = ("endpoints", "ports")

    def default(self, obj: Tree) -> None:
        empty = [name for name in self._lists if obj.get(name) == []]
        super().default(obj)
        for name in empty:
            obj[name] = []

    def fill(self, obj: Tree) -> None:
        for port in items(obj, "ports"):
            port.setdefault("protocol", "TCP")
            port["name"] = port.get("name") or ""

    def prepare_create(self, obj: Tree) -> None:
        for name in self._lists:
            obj[name] = obj.get(name) or None
        for endpoint in items(obj, "endpoints"):
            endpoint.pop("deprecatedTopology", None)

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        """Increase the generation also for changed labels."""
        self.prepare_create(obj)
        new, before = metadata(obj), metadata(old)
        if inner(new, "labels") != inner(before, "labels"):
            new["generation"] = before.get("generation", 0) + 1

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        return _slice(obj) + _endpoints(obj)

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that the address type does not change. Accept invalid endpoints that the update does not change."""
        same = items(obj, "endpoints") == items(old, "endpoints")
        problems = [WHOLE, *_slice(obj), *([] if same else _endpoints(obj))]
        return problems + unchanged("addressType", obj.get("addressType", ""), old.get("addressType", ""))

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        is_named = old is None and obj.get("addressType") == "FQDN"
        found = ["spec.addressType: FQDN endpoints are deprecated"] if is_named else []
        if inner(metadata(obj), "labels").get(_MANAGED_BY) in _SLICE_CONTROLLERS:
            return found
        return found + [
            text
            for index, endpoint in enumerate(items(obj, "endpoints"))
            for at, address in enumerate(items(endpoint, "addresses"))
            for text in address_warnings(f"endpoints[{index}].addresses[{at}]", address)
        ]


def _slice(obj: Tree) -> list[FieldProblem]:
    type_, ports = obj.get("addressType", ""), items(obj, "ports")
    problems: list[FieldProblem] = []
    if type_ not in _TYPES:
        problems.append(unsupported("addressType", type_, _TYPES) if type_ else required("addressType"))
    if len(ports) > _PORTS_MAX:
        return [*problems, too_many("ports", len(ports), _PORTS_MAX)]
    names: set[str] = set()
    for index, port in until_enough(ports, problems):
        path, name = f"ports[{index}]", port.get("name", "")
        problems += each(f"{path}.name", name, dns_label(name)) if name else []
        problems += [duplicate(f"{path}.name", name)] if name in names else []
        names.add(name)
        problems += _protocols(path, port)
    return problems


def _endpoints(obj: Tree) -> list[FieldProblem]:
    given, type_ = items(obj, "endpoints"), obj.get("addressType", "")
    if len(given) > _ENDPOINTS_MAX:
        return [too_many("endpoints", len(given), _ENDPOINTS_MAX)]
    problems: list[FieldProblem] = []
    for index, endpoint in until_enough(given, problems):
        path, addresses = f"endpoints[{index}]", items(endpoint, "addresses")
        if not addresses:
            problems.append(required(f"{path}.addresses", "must contain at least 1 address"))
        elif len(addresses) > _ADDRESSES_MAX:
            problems.append(too_many(f"{path}.addresses", len(addresses), _ADDRESSES_MAX))
        for at, address in until_enough(addresses, problems):
            problems += _typed(f"{path}.addresses", at, address, type_)
        for name, judge in (("nodeName", dns_subdomain), ("hostname", dns_label)):
            value = endpoint.get(name)
            problems += [] if value is None else each(f"{path}.{name}", value, judge(value))
        problems += _hints(f"{path}.hints", inner(endpoint, "hints"))
    return problems


def _typed(path: str, index: int, address: str, type_: str) -> list[FieldProblem]:
    where = f"{path}[{index}]"
    if type_ == "FQDN":
        return _domain(where, address)
    if type_ not in _TYPES:
        return []
    family = 6 if type_ == "IPv6" else 4
    wrong = canonical_address(address) if family == 6 else ip_address(address)
    if wrong:
        return each(where, address, wrong)
    problems = [] if ip_family(address) == family else [invalid(path, address, f"must be an {type_} address")]
    return problems + each(where, address, unreachable(address))


def _domain(path: str, name: str) -> list[FieldProblem]:
    if not name:
        return [required(path)]
    name = name.removesuffix(".")
    wrong = dns_subdomain(name)
    if wrong:
        return [invalid(path, name, ",".join(wrong))]
    if "." not in name:
        return [invalid(path, name, "should be a domain with at least two segments separated by dots")]
    label = next((one for one in name.split(".") if dns_label(one)), None)
    return [] if label is None else [invalid(path, label, ",".join(dns_label(label)))]


def _hints(path: str, hints: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for field, judge in (("forZones", label_value), ("forNodes", dns_subdomain)):
        given = [one.get("name", "") for one in items(hints, field)]
        if len(given) > _HINTS_MAX:
            return [*problems, too_many(f"{path}.{field}", len(given), _HINTS_MAX)]
        for index, name in enumerate(given):
            where = f"{path}.{field}[{index}].name"
            problems += [duplicate(where, name)] if name in given[:index] else []
            problems += each(where, name, judge(name))
    return problems
