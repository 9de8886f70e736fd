"""Addresses and node ports of Services: requested and allocated ones.

Guarantees
- Only one Service holds an address or port at a time, also under concurrent creation: allocation is a write to the
  store that fails if the key exists.
- The values of a Service are free again once it is gone, or if its creation failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from steersman.aio import randomness
from steersman.apiserver.errors import internal, invalid as refusal
from steersman.apiserver.registry.builtin.types.formats import ip_family, ipv4
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata
from steersman.apiserver.registry.strategy import Surroundings
from steersman.apiserver.storage import Mismatch
from steersman.objects import GroupVersionKind
from steersman.objects.field_problems import FieldProblem, invalid

#: The addresses of Services.
RANGE = IPv4Network("10.0.0.0/24")
_HOSTS = tuple(str(host) for host in RANGE.hosts())
NODE_PORTS = range(30000, 32768)
#: A dry run shows ports above this.
_TRIED = 32768
NONE = "None"

_KIND = GroupVersionKind("", "v1", "Service")
_ADDRESSES = "allocations/serviceips/"
_PORTS = "allocations/servicenodeports/"
#: Addresses at the start of the range are allocated only on request, while others are free.
_ASKED_FOR = 16
_FAMILIES = {4: "IPv4", 6: "IPv6"}
_DUAL = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"


def is_headless(spec: Tree) -> bool:
    """Whether a Service is headless."""
    return spec.get("clusterIPs") == [NONE]


def needs_address(spec: Tree) -> bool:
    """Whether a Service has an address, or declares that it has none."""
    return spec.get("type") != "ExternalName"


def needs_node_ports(spec: Tree) -> bool:
    """Whether a Service needs node ports."""
    return spec.get("type") in {"NodePort", "LoadBalancer"}


def needs_health_port(spec: Tree) -> bool:
    """Whether a Service needs a health check port."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def settle(spec: Tree) -> list[FieldProblem]:
    """Fill in the IP families. Returns problems for those that are not available."""
    if not needs_address(spec):
        return []
    unselected = spec.get("clusterIP") == NONE and not spec.get("selector")
    policy: str = spec.setdefault("ipFamilyPolicy", "RequireDualStack" if unselected else "SingleStack")
    families: list[str] = list(items(spec, "ipFamilies"))
    problems = _single(policy, items(spec, "clusterIPs"), families) + _follow(items(spec, "clusterIPs"), families)
    if problems:
        return problems
    families = families or ["IPv4"]
    if unselected:
        # Endpoints that are managed manually may use both families.
        if len(families) < 2 and policy != "SingleStack":
            families.append("IPv6" if families[0] == "IPv4" else "IPv4")
    else:
        problems = _not_here(policy, families)
    if not problems:
        spec["ipFamilies"] = families
    return problems


def _single(policy: str, addresses: list[str], families: list[str]) -> list[FieldProblem]:
    if policy != "SingleStack":
        return []
    given = ((addresses, "cluster IPs"), (families, "IP families"))
    return [invalid("spec.ipFamilyPolicy", policy, _DUAL.format(said)) for some, said in given if len(some) == 2]


def _follow(addresses: list[str], families: list[str]) -> list[FieldProblem]:
    """Add the families of addresses that lack them."""
    problems: list[FieldProblem] = []
    for index, address in enumerate(addresses[len(families) :] if NONE not in addresses else (), start=len(families)):
        family = _FAMILIES.get(ip_family(address), "")
        if family == "IPv6":
            detail = "IPv6 is not configured on this cluster"
            problems.append(invalid(f"spec.clusterIPs[{index}]", addresses, detail))
        elif family:
            families.append(family)
    return problems


def _not_here(policy: str, families: list[str]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    if policy == "RequireDualStack":
        detail = "this cluster is not configured for dual-stack services"
        problems.append(invalid("spec.ipFamilyPolicy", policy, detail))
    return problems + [
        invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in enumerate(families)
        if family != "IPv4"
    ]


def out_of_range(spec: Tree, before: Tree) -> list[FieldProblem]:
    """Problems of requested values that are not available."""
    return _taken_twice(spec, before) if needs_node_ports(spec) else []


def _taken_twice(spec: Tree, before: Tree) -> list[FieldProblem]:
    held = {port.get("nodePort", 0) for port in items(before, "ports")}
    given: dict[int, int] = {}
    for index, port in enumerate(items(spec, "ports")):
        number, own = port.get("nodePort", 0), port.get("port", 0)
        # Two protocols on one port share its node port.
        if number and number not in held and given.get(own) != number:
            if number in given.values():
                return [invalid(f"spec.ports[{index}].nodePort", number, "provided port is already allocated")]
            given.setdefault(own, number)
    return []


def _not_in_range(address: IPv4Address, *, dry_run: bool) -> str:
    """The message for an address that is not available: a dry run does not search other ranges."""
    if address not in RANGE and not dry_run:
        return "the provided network does not match the current range"
    return f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {RANGE}"


def _usable(address: IPv4Address) -> bool:
    return address in RANGE and address not in {RANGE.network_address, RANGE.broadcast_address}


async def take(obj: Tree, old: Tree | None, surroundings: Surroundings, *, dry_run: bool) -> None:
    """Allocate what a Service needs, and release what it no longer needs."""
    spec: Tree = obj["spec"]
    holder = metadata(obj).get("uid", "")
    before = held(old)
    if needs_address(spec) and not is_headless(spec):
        await _address(obj, before, surroundings, holder, dry_run=dry_run)
    if needs_node_ports(spec):
        await _node_ports(obj, before, surroundings, holder, dry_run=dry_run)
    if needs_health_port(spec):
        await _health_port(spec, before, surroundings, holder, dry_run=dry_run)
    if not dry_run:
        after = held(obj)
        for key in before:
            if key not in after:
                await _free(surroundings, key, holder)


async def _address(obj: Tree, before: Sequence[str], surroundings: Surroundings, holder: str, *, dry_run: bool) -> None:
    spec: Tree = obj["spec"]
    addresses = items(spec, "clusterIPs")
    if not addresses:
        spec["clusterIP"] = await _any_address(surroundings, holder, dry_run=dry_run)
        spec["clusterIPs"] = [spec["clusterIP"]]
        return
    key = f"{_ADDRESSES}{addresses[0]}"
    address = ipv4(addresses[0])
    if key not in before and address is not None and not _usable(address):
        detail = f"failed to allocate IP {addresses[0]}: {_not_in_range(address, dry_run=dry_run)}"
        raise _refused(obj, invalid("spec.clusterIPs", addresses, detail))
    if key not in before and not await _claim(surroundings, key, holder, dry_run=dry_run):
        detail = f"failed to allocate IP {addresses[0]}: provided IP is already allocated"
        raise _refused(obj, invalid("spec.clusterIPs", addresses, detail))


async def _health_port(
    spec: Tree, before: Sequence[str], surroundings: Surroundings, holder: str, *, dry_run: bool
) -> None:
    number = spec.get("healthCheckNodePort", 0)
    key = f"{_PORTS}{number}"
    if not number:
        spec["healthCheckNodePort"] = NODE_PORTS.start if dry_run else await _any_port(surroundings, holder)
    elif key not in before and not await _claim(surroundings, key, holder, dry_run=dry_run):
        raise internal(
            f"failed to allocate requested HealthCheck NodePort {number}: provided port is already allocated"
        )


async def _node_ports(
    obj: Tree, before: Sequence[str], surroundings: Surroundings, holder: str, *, dry_run: bool
) -> None:
    spec: Tree = obj["spec"]
    given: dict[int, int] = {}
    tried: list[int] = []
    wanted = spec.get("allocateLoadBalancerNodePorts", True) or spec["type"] == "NodePort"
    for index, port in enumerate(items(spec, "ports")):
        number, own = port.get("nodePort", 0), port.get("port", 0)
        if not number and not wanted:
            continue
        if number:
            key = f"{_PORTS}{number}"
            # Two protocols on one port share its node port.
            if number not in given.values() and key not in before:
                if number not in NODE_PORTS and not dry_run:
                    detail = (
                        "provided port is not in the valid range. The range of valid ports is "
                        f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
                    )
                    raise _refused(obj, invalid(f"spec.ports[{index}].nodePort", number, detail))
                if not await _claim(surroundings, key, holder, dry_run=dry_run):
                    where = f"spec.ports[{index}].nodePort"
                    raise _refused(obj, invalid(where, number, "provided port is already allocated"))
                tried.append(number)
        else:
            asked = next(
                (one["nodePort"] for one in spec["ports"] if one.get("port") == own and one.get("nodePort")), 0
            )
            number = given.get(own) or asked
            if not number:
                # A dry run reserves nothing: any number that is not repeated works.
                number = max(tried, default=_TRIED) + 1 if dry_run else await _any_port(surroundings, holder)
                tried.append(number)
            port["nodePort"] = number
        given.setdefault(own, number)


def _refused(obj: Tree, problem: FieldProblem) -> Exception:
    return refusal(_KIND, metadata(obj).get("name", ""), [problem])


def held(obj: Tree | None) -> list[str]:
    """The keys of the values that a Service holds, each once, in the order in which the Service lists them."""
    if obj is None:
        return []
    spec: Tree = inner(obj, "spec")
    keys = [f"{_ADDRESSES}{address}" for address in items(spec, "clusterIPs") if address != NONE]
    ports = [*(port.get("nodePort") for port in items(spec, "ports")), spec.get("healthCheckNodePort")]
    keys += [f"{_PORTS}{port}" for port in ports if port]
    return list(dict.fromkeys(keys))


async def _claim(surroundings: Surroundings, key: str, holder: str, *, dry_run: bool) -> bool:
    if dry_run:
        return (await surroundings.storage.get(key))[0] is None
    try:
        await surroundings.storage.put(key, holder.encode(), expect=0)
    except Mismatch:
        return False
    return True


async def _any(surroundings: Surroundings, prefix: str, choices: list[Any], holder: str, *, dry_run: bool) -> Any:
    while choices:
        chosen = choices.pop(randomness().randrange(len(choices)))
        if await _claim(surroundings, f"{prefix}{chosen}", holder, dry_run=dry_run):
            return chosen
    return None


async def _any_address(surroundings: Surroundings, holder: str, *, dry_run: bool) -> str:
    if dry_run:
        # A dry run reserves nothing, so all get the same.
        return str(RANGE.network_address)
    for choices in (_HOSTS[_ASKED_FOR:], _HOSTS[1:_ASKED_FOR]):
        found = await _any(surroundings, _ADDRESSES, list(choices), holder, dry_run=dry_run)
        if found is not None:
            return found
    raise internal("failed to allocate a serviceIP: range is full")


async def _any_port(surroundings: Surroundings, holder: str) -> int:
    found = await _any(surroundings, _PORTS, list(NODE_PORTS), holder, dry_run=False)
    if found is None:
        raise internal("failed to allocate a nodePort: range is full")
    return found


async def give_back(obj: Tree, surroundings: Surroundings) -> None:
    """Release what a Service holds."""
    for key in held(obj):
        await _free(surroundings, key, metadata(obj).get("uid", ""))


async def _free(surroundings: Surroundings, key: str, holder: str) -> None:
    record, _ = await surroundings.storage.get(key)
    # A Service whose creation failed may name a value that another one holds.
    if record is not None and record.value == holder.encode():
        await surroundings.storage.delete(key, expect=record.modified)
