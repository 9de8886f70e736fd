"""Ports of a service: ``[ADDRESS:][PUBLISHED:]TARGET[/PROTOCOL]``, ranges, and the long form."""

from __future__ import annotations

import ipaddress
import re
from typing import Literal, cast

from steersman.application.model import Port
from steersman.application.syntax.nodes import MapNode, Node, ScalarNode, described, scalar
from steersman.application.syntax.report import shown
from steersman.application.syntax.values import Values

_SHORT = re.compile(
    r"(?:(?P<address>\[[^\]]*\]|[^:\[\]]*):)??(?:(?P<published>[0-9]*(?:-[0-9]+)?):)?(?P<target>[0-9]+(?:-[0-9]+)?)"
    r"(?:/(?P<protocol>.*))?",
    re.DOTALL,
)
_RANGE = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_LONG = ("target", "published", "host_ip", "protocol", "name")
_PORTS_MAX = 1000
_PORT_MAX = 65535


def read_ports(values: Values, node: Node | None) -> tuple[Port, ...]:
    """The ports of a service."""
    found: dict[Port, None] = {}
    for item in values.items(node, "ports"):
        if isinstance(item, ScalarNode):
            ports = _short(values, item)
        elif isinstance(item, MapNode):
            ports = _long(values, item)
        else:
            values.report.error(item, f"a port must be a string or a mapping, not {described(item)}")
            ports = []
        found.update(dict.fromkeys(ports))
        if len(found) > _PORTS_MAX:
            values.report.error(item, f"a service has at most {_PORTS_MAX} ports")
            break
    return tuple(found)


def read_expose(values: Values, node: Node | None) -> tuple[int, ...]:
    """The ports of ``expose``."""
    found: dict[int, None] = {}
    for item in values.items(node, "expose"):
        text = values.text(item, "an item of expose")
        if text is None:
            continue
        numbers = _numbers(values, scalar(item, text.partition("/")[0]), "an exposed port")
        found.update(dict.fromkeys(numbers[:_PORTS_MAX]))
    return tuple(found)


def _short(values: Values, node: ScalarNode) -> list[Port]:
    found = _SHORT.fullmatch(node.text)
    if found is None:
        values.report.error(node, f"a port must be [ADDRESS:][PUBLISHED:]TARGET[/PROTOCOL], not {shown(node.text)}")
        return []
    targets = _numbers(values, scalar(node, found["target"]), "a port")
    if 0 in targets:
        values.report.error(node, f"a port must be a number from 1 to {_PORT_MAX}, not {shown(node.text)}")
        return []
    published = _numbers(values, scalar(node, found["published"]), "a port") if found["published"] else []
    address = _address(values, scalar(node, found["address"])) if found["address"] else None
    protocol = _protocol(values, scalar(node, found["protocol"])) if found["protocol"] is not None else "tcp"
    return _paired(values, node, targets, published, protocol=protocol, address=address, name=None)


def _long(values: Values, node: MapNode) -> list[Port]:
    values.check_keys(node, "a port", _LONG, ("mode", "app_protocol"))
    protocol_node, address_node, published_node = node.get("protocol"), node.get("host_ip"), node.get("published")
    protocol = _protocol(values, protocol_node) if protocol_node is not None else "tcp"
    address = _address(values, address_node) if address_node is not None else None
    published = _numbers(values, published_node, "published") if published_node is not None else []
    target = values.integer(node.get("target"), "target", least=1, most=_PORT_MAX)
    name = values.text(node.get("name"), "the name of a port")
    if node.get("target") is None:
        if node.origin.is_compose:
            values.report.error(node, "a port needs a target")
            return []
        return [
            Port(published=number, protocol=protocol, host_address=address, name=name)
            for number in published[:1] or [None]
        ]
    return _paired(values, node, [target] if target else [], published, protocol=protocol, address=address, name=name)


def _paired(
    values: Values,
    node: Node,
    targets: list[int],
    published: list[int],
    *,
    protocol: Literal["tcp", "udp"],
    address: str | None,
    name: str | None,
) -> list[Port]:
    """Each target with its published port: ranges of equal length, or the first port of a range for a single target."""
    if published and len(targets) == 1:
        # Compose takes any free port of the range; here a service keeps its port, so it needs a fixed one.
        published = published[:1]
    if published and len(targets) != len(published):
        if targets:
            values.report.error(node, "the published range and the target range must have the same length")
        return []
    return [
        Port(published=outer, target=inner, protocol=protocol, host_address=address, name=name)
        for inner, outer in zip(targets, published or [None] * len(targets), strict=True)
    ]


def _numbers(values: Values, node: Node, what: str) -> list[int]:
    text = values.text(node, what)
    found = _RANGE.fullmatch(text) if text is not None else None
    if found is None:
        if text is not None:
            values.report.error(node, f"{what} must be a number or a range such as 8000-8010, not {shown(text)}")
        return []
    first, last = int(found[1]), int(found[2] or found[1])
    if not first <= last <= _PORT_MAX:
        values.report.error(
            node, f"{what} must be at most {_PORT_MAX}, and a range must ascend (got {shown(found[0])})"
        )
        return []
    if last - first >= _PORTS_MAX:
        values.report.error(node, f"{what}: a range has at most {_PORTS_MAX} ports (got {shown(found[0])})")
        return []
    return list(range(first, last + 1))


def _address(values: Values, node: Node) -> str | None:
    text = values.text(node, "the address of a port")
    if text is None:
        return None
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        values.report.error(node, f"the address of a port must be an IP address, not {shown(text)}")
        return None


def _protocol(values: Values, node: Node) -> Literal["tcp", "udp"]:
    lowered = scalar(node, node.text.lower()) if isinstance(node, ScalarNode) else node
    return cast("Literal['tcp', 'udp']", values.choice(lowered, "the protocol of a port", ("tcp", "udp")) or "tcp")
