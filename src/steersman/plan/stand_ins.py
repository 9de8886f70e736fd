"""Stand-ins for the values that a server picks at random, so that a plan is the same each time. Pure.

Guarantees
- The same object in the same place gets the same uid, the same generated name, the same addresses and ports.
- Only values that the program did not send are replaced.
- A stand-in has the form of the real value, so that a reconcile can use it in another object.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any, cast

import msgspec

from steersman.plan.trees import Tree, part

#: The characters of generated names.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
#: The volume that kube-apiserver adds to a Pod, with a random suffix.
_TOKEN_VOLUME = re.compile(rb'"kube-api-access-[a-z0-9]{5}"')
#: Addresses for documentation: no cluster uses them.
_IPV4, _IPV6 = "192.0.2.", "2001:db8::"
_FIRST_NODE_PORT, _NODE_PORTS = 30000, 2768


def generated_name(prefix: str, *place: object) -> str:
    """The name of an object that asks the server for one; ``place`` tells apart those with the same prefix."""
    digest = _digest(prefix, *place)
    return prefix + "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:_SUFFIX_LENGTH])


def planned_uid(*place: object) -> str:
    """The uid of a planned object."""
    digits = _digest("uid", *place).hex()
    # the form of a random uid: version 4, variant 8
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def with_stand_ins(made: Tree, sent: Tree, name: str, *place: object) -> Tree:
    """An object that the server would create, with stand-ins for its random values; ``name`` replaces its name."""
    metadata = part(made, "metadata")
    body = msgspec.json.encode(made)
    replaced = {str(metadata.get("uid") or ""): planned_uid(*place, name)}
    if metadata.get("name") != name:
        replaced[str(metadata.get("name") or "")] = name
    for real, stand_in in replaced.items():
        if real:
            body = body.replace(msgspec.json.encode(real), msgspec.json.encode(stand_in))
    if made.get("kind") == "Pod":
        body = _TOKEN_VOLUME.sub(msgspec.json.encode(generated_name("kube-api-access-", *place, name)), body)
    tree: Tree = msgspec.json.decode(body)
    if (made.get("kind"), made.get("apiVersion")) == ("Service", "v1"):
        tree["spec"] = _service_spec(part(tree, "spec"), part(sent, "spec"), *place, name)
    return tree


def _service_spec(spec: Tree, sent: Tree, *place: object) -> Tree:
    found = dict(spec)
    addresses = cast("list[str]", spec.get("clusterIPs") or [])
    if not sent.get("clusterIP") and not sent.get("clusterIPs") and addresses and "None" not in addresses:
        number = 1 + _digest("address", *place)[0] % 254
        found["clusterIPs"] = [f"{_IPV6 if ':' in address else _IPV4}{number}" for address in addresses]
        found["clusterIP"] = found["clusterIPs"][0]
    wanted = {(port.get("port"), port.get("protocol") or "TCP"): port for port in _ports(sent)}
    if ports := _ports(spec):
        found["ports"] = [
            _with_node_port(each, wanted.get((each.get("port"), each.get("protocol"))), *place) for each in ports
        ]
    if found.get("healthCheckNodePort") and not sent.get("healthCheckNodePort"):
        found["healthCheckNodePort"] = _node_port("health", *place)
    return found


def _with_node_port(port: Tree, sent: Tree | None, *place: object) -> Tree:
    if not port.get("nodePort") or (sent or {}).get("nodePort"):
        return port
    return {**port, "nodePort": _node_port(port.get("port"), port.get("protocol"), *place)}


def _node_port(*place: object) -> int:
    return _FIRST_NODE_PORT + int.from_bytes(_digest("port", *place)[:4]) % _NODE_PORTS


def _ports(spec: Tree) -> list[Any]:
    return cast("list[Any]", spec.get("ports") or [])


def _digest(*values: object) -> bytes:
    return blake2b("\0".join(map(str, values)).encode(), digest_size=16).digest()
