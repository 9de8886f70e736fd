"""Addresses and node ports of Services: requested and allocated ones.

Guarantees
- Only one Service holds an address or port at a time, also under concurrent creation: allocation is a write to the
  store that fails if the key exists.
- The values of a Service are free again once it is gone or does not need them, and never before that is stored.
- A creation or a change that fails leaves nothing allocated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from steersman.aio import randomness
from steersman.apiserver.errors import internal, invalid as refusal
from steersman.apiserver.registry.builtin.types.formats import ip_family, ipv4
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata
from steersman.apiserver.registry.strategy import Surroundings
from steersman.apiserver.storage import Mismatch, Storage, settled
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
_ALLOCATIONS = "allocations/"
_ADDRESSES = f"{_ALLOCATIONS}serviceips/"
_PORTS = f"{_ALLOCATIONS}servicenodeports/"
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
    """Allocate what a Service needs. If that fails, nothing more is allocated than before."""
    allocation = _Allocation(obj, old, surroundings, dry_run=dry_run)
    try:
        await allocation.make()
    except BaseException:
        await surroundings.finished(_free(surroundings, allocation.claimed, allocation.holder))
        raise


class _Allocation:
    """The allocation of the values of one Service."""

    def __init__(self, obj: Tree, old: Tree | None, surroundings: Surroundings, *, dry_run: bool) -> None:
        self._obj = obj
        self._spec: Tree = obj["spec"]
        self._before = {*held(old)}
        self._storage = surroundings.storage
        self._dry_run = dry_run
        self.holder: str = metadata(obj).get("uid", "")
        #: The free keys below a prefix when the first of them was needed, in random order.
        self._free: dict[str, list[list[str]]] = {}
        #: The keys that this allocation has written.
        self.claimed: list[str] = []

    async def make(self) -> None:
        """Allocate everything."""
        spec = self._spec
        if needs_address(spec) and not is_headless(spec):
            await self._address()
        if needs_node_ports(spec):
            await self._node_ports()
        if needs_health_port(spec):
            await self._health_port()

    async def _address(self) -> None:
        spec = self._spec
        addresses = items(spec, "clusterIPs")
        if not addresses:
            spec["clusterIP"] = await self._any_address()
            spec["clusterIPs"] = [spec["clusterIP"]]
            return
        key = f"{_ADDRESSES}{addresses[0]}"
        address = ipv4(addresses[0])
        if key not in self._before and address is not None and not _usable(address):
            why = _not_in_range(address, dry_run=self._dry_run)
            detail = f"failed to allocate IP {addresses[0]}: {why}"
            raise _refused(self._obj, invalid("spec.clusterIPs", addresses, detail))
        if key not in self._before and not await self._claim(key):
            detail = f"failed to allocate IP {addresses[0]}: provided IP is already allocated"
            raise _refused(self._obj, invalid("spec.clusterIPs", addresses, detail))

    async def _health_port(self) -> None:
        spec = self._spec
        number = spec.get("healthCheckNodePort", 0)
        key = f"{_PORTS}{number}"
        if not number:
            spec["healthCheckNodePort"] = NODE_PORTS.start if self._dry_run else await self._any_port()
        elif key not in self._before and not await self._claim(key):
            raise internal(
                f"failed to allocate requested HealthCheck NodePort {number}: provided port is already allocated"
            )

    async def _node_ports(self) -> None:
        spec, ports = self._spec, items(self._spec, "ports")
        # Two protocols on one port share its node port.
        asked: dict[int, int] = {}
        for port in ports:
            if number := port.get("nodePort", 0):
                asked.setdefault(port.get("port", 0), number)
        given: dict[int, int] = {}
        used: set[int] = set()
        highest = 0
        wanted = spec.get("allocateLoadBalancerNodePorts", True) or spec["type"] == "NodePort"
        for index, port in enumerate(ports):
            number, own = port.get("nodePort", 0), port.get("port", 0)
            if not number and not wanted:
                continue
            if number:
                if number not in used and f"{_PORTS}{number}" not in self._before:
                    await self._given_port(number, f"spec.ports[{index}].nodePort")
                    highest = max(highest, number)
            else:
                number = given.get(own) or asked.get(own, 0)
                if not number:
                    # A dry run reserves nothing: any number that is not repeated works.
                    number = (highest or _TRIED) + 1 if self._dry_run else await self._any_port()
                    highest = max(highest, number)
                port["nodePort"] = number
            if own not in given:
                given[own] = number
                used.add(number)

    async def _given_port(self, number: int, where: str) -> None:
        if number not in NODE_PORTS and not self._dry_run:
            detail = (
                "provided port is not in the valid range. The range of valid ports is "
                f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
            )
            raise _refused(self._obj, invalid(where, number, detail))
        if not await self._claim(f"{_PORTS}{number}"):
            raise _refused(self._obj, invalid(where, number, "provided port is already allocated"))

    async def _claim(self, key: str) -> bool:
        if self._dry_run:
            return (await self._storage.get(key))[0] is None
        self.claimed.append(key)
        try:
            await self._storage.put(key, self.holder.encode(), expect=0)
        except Mismatch:
            self.claimed.pop()
            return False
        return True

    async def _any(self, prefix: str, *preferences: Sequence[Any]) -> str:
        """A free key below a prefix, from the first of these sequences of values that has one; empty if none has."""
        groups = self._free.get(prefix)
        if groups is None:
            taken = {record.key for record in (await self._storage.list(prefix)).records}
            groups = self._free[prefix] = [
                [key for value in values if (key := f"{prefix}{value}") not in taken] for values in preferences
            ]
        for keys in groups:
            while keys:
                at = randomness().randrange(len(keys))
                keys[at], keys[-1] = keys[-1], keys[at]
                if await self._claim(key := keys.pop()):
                    return key.removeprefix(prefix)
        return ""

    async def _any_address(self) -> str:
        if self._dry_run:
            # A dry run reserves nothing, so all get the same.
            return str(RANGE.network_address)
        found = await self._any(_ADDRESSES, _HOSTS[_ASKED_FOR:], _HOSTS[1:_ASKED_FOR])
        if not found:
            raise internal("failed to allocate a serviceIP: range is full")
        return found

    async def _any_port(self) -> int:
        found = await self._any(_PORTS, NODE_PORTS)
        if not found:
            raise internal("failed to allocate a nodePort: range is full")
        return int(found)


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


async def give_back(obj: Tree | None, kept: Iterable[Tree | None], surroundings: Surroundings) -> None:
    """Release what a Service holds and none of `kept` does."""
    needed = {key for other in kept for key in held(other)}
    keys = [key for key in held(obj) if key not in needed]
    await _free(surroundings, keys, metadata(obj or {}).get("uid", ""))


async def _free(surroundings: Surroundings, keys: Iterable[str], holder: str) -> None:
    for key in keys:
        record = await settled(surroundings.storage, key)
        # A Service whose creation failed may name a value that another one holds.
        if record is not None and record.value == holder.encode():
            # Another step may release it too.
            with suppress(Mismatch):
                await surroundings.storage.delete(key, expect=record.modified)


async def free_unheld(storage: Storage, services: Iterable[Tree]) -> None:
    """Release what no Service holds: a process that was killed between two writes leaves such values."""
    kept = {key for service in services for key in held(service)}
    for record in (await storage.list(_ALLOCATIONS)).records:
        if record.key not in kept:
            await storage.delete(record.key, expect=record.modified)
