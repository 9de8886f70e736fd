"""Publishes the address and the certificate authority of a server that listens on a port.

Guarantee: after `publish_address`, the Service ``default/kubernetes`` and its endpoints point to the port, and the
ConfigMap ``kube-system/extension-apiserver-authentication`` has the authority that signs client certificates.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import msgspec

from steersman.apiserver.bootstrap.templates import ResourceTemplates, Stamp, read_templates
from steersman.apiserver.documents import decode_stored, encode_stored
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.storage import Storage


async def publish_address(registry: ResourceRegistry, storage: Storage, host: str, port: int, authority: bytes) -> None:
    """Write the address and the authority of a server into its objects, for the kinds that it serves."""
    stamp, address = Stamp(), _address(host)
    for each in (*_services(), *read_templates("address")):
        definition = registry.find(each.group, each.version, each.resource)
        for template in each.templates if definition is not None else ():
            assert definition is not None
            key = definition.prefix + template.key
            record, _ = await storage.get(key)
            if record is None and each.resource == "services":
                continue
            tree: Tree = msgspec.json.decode(stamp.fill(template)) if record is None else decode_stored(record)
            _set(definition, tree, address, port, authority.decode())
            value = encode_stored(tree)
            if record is None or record.value != value:
                await storage.put(key, value, expect=0 if record is None else record.modified)


def _services() -> list[ResourceTemplates]:
    return [template for template in read_templates("objects") if template.resource == "services"]


def _set(definition: Definition, tree: Tree, address: IPv4Address | IPv6Address, port: int, authority: str) -> None:
    match definition.resource:
        case "services":
            tree["spec"]["ports"][0]["targetPort"] = port
        case "endpoints":
            ports = [{"name": "https", "port": port, "protocol": "TCP"}]
            tree["subsets"] = [{"addresses": [{"ip": str(address)}], "ports": ports}]
        case "endpointslices":
            tree["addressType"] = f"IPv{address.version}"
            tree["endpoints"] = [{"addresses": [str(address)], "conditions": {"ready": True}}]
            tree["ports"] = [{"name": "https", "protocol": "TCP", "port": port}]
        case _:
            tree["data"] = {"client-ca-file": authority}


def _address(host: str) -> IPv4Address | IPv6Address:
    """The address of a host; loopback if the server listens on all addresses or on a host name."""
    try:
        address = ip_address(host)
    except ValueError:
        return IPv4Address("127.0.0.1")
    if address.is_unspecified:
        return ip_address("127.0.0.1" if address.version == 4 else "::1")
    return address
