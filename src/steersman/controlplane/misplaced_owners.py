"""The Event about a reference to an owner in another namespace.

Guarantee: best effort. A failure to write the Event is logged and not retried.
"""

from __future__ import annotations

import logging

from steersman.aio import utc_now
from steersman.client import Verbs
from steersman.controlplane.graph import Node
from steersman.controlplane.object_changes import Owner
from steersman.errors import ApiError
from steersman.objects import ObjectMeta

_log = logging.getLogger("steersman.controlplane")

_COMPONENT = "garbage-collector-controller"


async def report_misplaced(client: Verbs, node: Node, owner: Owner) -> None:
    """Report on a dependent that its owner is not in its namespace."""
    # Imported late, because these kinds take long to import and such a reference is rare.
    from steersman.kinds.core_v1 import Event, EventSource, ObjectReference  # noqa: PLC0415

    metadata, moment = node.metadata, utc_now()
    called = (
        f"[{owner.api_version}/{owner.kind}, namespace: {metadata.namespace}, name: {owner.name}, uid: {owner.uid}]"
    )
    seconds = moment.replace(microsecond=0)
    event = Event(
        metadata=ObjectMeta(
            # Unique per object, like the names that kube-controller-manager uses.
            name=f"{metadata.name}.{int(moment.timestamp() * 1_000_000_000):x}",
            namespace=metadata.namespace or "default",
        ),
        involved_object=ObjectReference(
            api_version=node.gvk.api_version,
            kind=node.gvk.kind,
            name=metadata.name,
            namespace=metadata.namespace or None,
            uid=metadata.uid,
        ),
        type="Warning",
        reason="OwnerRefInvalidNamespace",
        message=f'ownerRef {called} does not exist in namespace "{metadata.namespace}"',
        first_timestamp=seconds,
        last_timestamp=seconds,
        count=1,
        source=EventSource(component=_COMPONENT),
        reporting_component=_COMPONENT,
    )
    try:
        await client.create(event)
    except ApiError as error:
        _log.info("cannot write the event about the owner of %s %s: %s", node.gvk.kind, metadata.name, error)
