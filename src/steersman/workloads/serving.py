"""The services of a workload: those that its annotation names, their Endpoints, and whether clients can use their addresses.

Guarantees
- `producers` is pure: it reads the annotation ``service-producer`` and rejects an invalid one with a sentence.
- `unserved` is pure: it says why clients must not use the address of a Service, at which another program may listen.
- `keep_endpoints` makes the Endpoints that a workload owns exactly the given set. A new address is created before the old
  one is deleted, so a service that moves always has an endpoint.
- An Endpoint has its workload as its controller: the garbage collector deletes it with the workload.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from steersman.controller import Context
from steersman.errors import AlreadyExists
from steersman.objects import Object, ObjectMeta, find_condition
from steersman.workloads.kinds.executable import ExecutableReplicaSet
from steersman.workloads.kinds.service import SERVED, Endpoint, EndpointSpec, Service

#: The annotation of an Executable or a Container that lists the services it serves.
ANNOTATION = "service-producer"
#: The annotation of an Endpoint: the pid of the process whose tree must listen there.
PROCESS = "steersman.dev/process"
#: The longest part of an Endpoint's name that comes from its workload and its service.
_NAME_PART = 100


class InvalidProducers(ValueError):
    """The annotation ``service-producer`` of an object is invalid. The message says what to write."""


class Producer(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A service that a workload serves."""

    service_name: str
    service_namespace: str = ""
    address: str | None = None
    """The address at which the workload listens; by default 127.0.0.1."""
    port: int | None = None
    """The port at which the workload listens; by default an allocated one. For a container: its port inside."""


def producers(obj: Object) -> tuple[Producer, ...]:
    """The services that a workload serves, by its annotation; empty without one. Raises `InvalidProducers`."""
    own = obj.spec.template.annotations if isinstance(obj, ExecutableReplicaSet) else obj.metadata.annotations
    text = (own or {}).get(ANNOTATION)
    if text is None:
        return ()
    where = f"{obj.kind} {obj.key.name}: annotation {ANNOTATION}"
    try:
        declared = msgspec.json.decode(text, type=tuple[Producer, ...])
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidProducers(
            f'{where} must be a JSON list such as [{{"serviceName": "web", "port": 8080}}] ({error})'
        ) from None
    for index, producer in enumerate(declared):
        if not producer.service_name:
            raise InvalidProducers(f"{where}: entry {index} has an empty serviceName")
        if producer.port is not None and not 1 <= producer.port <= 65535:
            raise InvalidProducers(
                f"{where}: the port of service {producer.service_name} must be 1 to 65535 (got {producer.port})"
            )
    names = [producer.service_name for producer in declared]
    for name in names:
        if names.count(name) > 1:
            raise InvalidProducers(f"{where} lists service {name} twice; a workload serves a service at one address")
    return declared


def produced(obj: Object) -> tuple[str, ...]:
    """The names of the services that a workload serves; empty if its annotation is invalid."""
    try:
        return tuple(producer.service_name for producer in producers(obj))
    except InvalidProducers:
        return ()


def unserved(service: Service) -> str:
    """Why clients must not use the address of a Service, such as ``port 80 is in use by nginx``; else empty.

    A Service without a status is not served yet.
    """
    if service.status is None:
        return f"Service {service.key.name} has no address yet"
    condition = find_condition(service.status.conditions, SERVED)
    return condition.message if condition is not None and condition.status != "True" else ""


def is_settled(service: Service) -> bool:
    """Whether the status has the address of the present spec: after an edit, it has the old one for a moment."""
    return service.status is not None and service.status.observed_generation in {None, service.generation}


def process_behind(endpoint: Endpoint) -> int:
    """The process whose tree must listen at an Endpoint; 0 if any may, such as that of a container runtime."""
    text = (endpoint.metadata.annotations or {}).get(PROCESS, "")
    return int(text) if text.isdigit() else 0


async def keep_endpoints(
    ctx: Context, owner: Object, served: Mapping[str, tuple[str, int]], *, process: int = 0
) -> None:
    """Make the Endpoints of a workload exactly ``served``, a map from a service's name to an address and a port.

    ``process`` is the one whose tree must listen there; the proxy connects to no other program.
    With an empty map it deletes all of them. The controller that calls it watches Endpoints: ``.owns(Endpoint)``.
    """
    wanted = {_name(owner, service, *at): (service, *at) for service, at in served.items()}
    present = {existing.key.name: existing for existing in await ctx.client.owned_by(Endpoint, owner)}
    for name, (service, address, port) in wanted.items():
        if name not in present:
            spec = EndpointSpec(service_name=service, address=address, port=port)
            metadata = ObjectMeta(name=name, annotations={PROCESS: str(process)} if process else None)
            try:
                await ctx.client.create(Endpoint(metadata=metadata, spec=spec), owner=owner)
            except AlreadyExists:
                # The name says what it is and whose: an earlier reconcile created it, and the cache has yet to see it.
                continue
    for name, endpoint in present.items():
        if name not in wanted and not endpoint.deleting:
            await ctx.client.delete(endpoint, missing_ok=True)


def _name(owner: Object, service: str, address: str, port: int) -> str:
    """A name that is the same for the same workload and address, and different for any other."""
    text = "\0".join((owner.uid, service, address, str(port)))
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return f"{owner.key.name[:_NAME_PART].rstrip('-.')}-{service[:_NAME_PART].rstrip('-.')}-{digest}"
