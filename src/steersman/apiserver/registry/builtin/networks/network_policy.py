"""NetworkPolicies: the allowed ingress and egress traffic of the selected Pods."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steersman.apiserver.registry.builtin.pods.containers import PROTOCOLS
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.formats import cidr, cidr_warnings, network, port_name, port_number
from steersman.apiserver.registry.builtin.types.labels import label_selector
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, subtree
from steersman.objects.field_problems import (
    FieldProblem,
    each,
    forbidden,
    invalid,
    required,
    unsupported,
    until_enough,
)

_TYPES = ("Ingress", "Egress")
_PROTOCOLS = ("TCP", "UDP", "SCTP")


class NetworkPolicyStrategy(BuiltinStrategy):
    """How NetworkPolicies behave."""

    declared_fields = re.compile(r"spec\.(ingress|egress)\[\d+\]\.(from|to)\[\d+\]\.ipBlock\.cidr")

    def fill(self, obj: Tree) -> None:
        spec: Tree = obj["spec"]
        spec.setdefault("policyTypes", ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])
        for rule in (*items(spec, "ingress"), *items(spec, "egress")):
            for port in items(rule, "ports"):
                port.setdefault("protocol", "TCP")

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        return _spec(subtree(obj, "spec"), frozenset())

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Accept invalid CIDRs that are already in the stored object."""
        blocks = [block for _, block in _blocks(old)]
        known = {text for block in blocks for text in (block.get("cidr", ""), *items(block, "except"))}
        return _spec(subtree(obj, "spec"), frozenset(known))

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        del old
        found: list[str] = []
        for path, block in _blocks(obj):
            found += cidr_warnings(f"{path}.cidr", block["cidr"])
            for index, text in enumerate(items(block, "except")):
                found += cidr_warnings(f"{path}.except[{index}]", text)
        return found


def _blocks(obj: Tree) -> Iterator[tuple[str, Tree]]:
    spec = subtree(obj, "spec")
    for rules, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(items(spec, rules)):
            for at, peer in enumerate(items(rule, peers)):
                if "ipBlock" in peer:
                    yield f"spec.{rules}[{index}].{peers}[{at}].ipBlock", inner(peer, "ipBlock")


def _spec(spec: Tree, known: frozenset[str]) -> list[FieldProblem]:
    problems = label_selector("spec.podSelector", spec.get("podSelector"))
    for rules, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in until_enough(items(spec, rules), problems):
            path = f"spec.{rules}[{index}]"
            for at, port in until_enough(items(rule, "ports"), problems):
                problems += _port(f"{path}.ports[{at}]", port)
            for at, peer in until_enough(items(rule, peers), problems):
                problems += _peer(f"{path}.{peers}[{at}]", peer, known)
    types = items(spec, "policyTypes")
    if len(types) > len(_TYPES):
        return [*problems, invalid("spec.policyTypes", types, "may not specify more than two policyTypes")]
    return problems + [
        unsupported(f"spec.policyTypes[{index}]", type_, _TYPES)
        for index, type_ in enumerate(types)
        if type_ not in _TYPES
    ]


def _port(path: str, port: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    protocol, number, end = port.get("protocol"), port.get("port"), port.get("endPort")
    if protocol is not None and protocol not in PROTOCOLS:
        problems.append(unsupported(f"{path}.protocol", protocol, _PROTOCOLS))
    if number is None:
        detail = "may not be specified when `port` is not specified"
        return problems if end is None else [*problems, invalid(f"{path}.endPort", end, detail)]
    if isinstance(number, str):
        if end is not None:
            problems.append(invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric"))
        return problems + each(f"{path}.port", number, port_name(number))
    problems += each(f"{path}.port", number, port_number(number))
    if end is not None:
        if end < number:
            problems.append(invalid(f"{path}.endPort", end, "must be greater than or equal to `port`"))
        problems += each(f"{path}.endPort", end, port_number(end))
    return problems


def _peer(path: str, peer: Tree, known: frozenset[str]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for name in ("podSelector", "namespaceSelector"):
        problems += label_selector(f"{path}.{name}", peer.get(name))
    block = peer.get("ipBlock")
    if block is not None:
        problems += _block(f"{path}.ipBlock", block, known)
    others = sum(peer.get(name) is not None for name in ("podSelector", "namespaceSelector"))
    if block is None and not others:
        problems.append(required(path, "must specify a peer"))
    elif block is not None and others:
        problems.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return problems


def _block(path: str, block: Tree, known: frozenset[str]) -> list[FieldProblem]:
    whole: str = block.get("cidr", "")
    if not whole:
        return [required(f"{path}.cidr")]
    problems = [] if whole in known else each(f"{path}.cidr", whole, cidr(whole))
    outer = network(whole)
    if outer is None:
        return problems
    for index, text in until_enough(items(block, "except"), problems):
        where = f"{path}.except[{index}]"
        problems += [] if text in known else each(where, text, cidr(text))
        part = network(text)
        if part is None:
            continue
        is_inside = part.version == outer.version and part.network_address in outer
        if not is_inside or outer.prefixlen >= part.prefixlen:
            problems.append(invalid(where, text, "must be a strict subset of `cidr`"))
    return problems
