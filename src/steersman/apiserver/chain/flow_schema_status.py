"""The condition ``Dangling`` of a FlowSchema: whether its priority level is missing.

Guarantee: the condition, its messages and its field manager are those of kube-apiserver.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from steersman.aio import utc_now
from steersman.apiserver.documents import decode_stored, encode_stored
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.storage import Record, Storage, StorageError
from steersman.golang import quoted
from steersman.objects import format_time

_MANAGER: Final = "api-priority-and-fairness-config-consumer-v1"
_PARTS: Final = (".", "f:lastTransitionTime", "f:message", "f:reason", "f:status", "f:type")
_FIELDS: Final[Tree] = {"f:status": {"f:conditions": {'k:{"type":"Dangling"}': {part: {} for part in _PARTS}}}}


def level_condition(level: str, *, exists: bool) -> dict[str, str]:
    """The condition of a FlowSchema for its priority level, without a time."""
    says = "and it exists" if exists else "but there is no such object"
    return {
        "type": "Dangling",
        "status": "False" if exists else "True",
        "reason": "Found" if exists else "NotFound",
        "message": f"This FlowSchema references the PriorityLevelConfiguration object named {quoted(level)} {says}",
    }


async def write_condition(storage: Storage, record: Record, condition: dict[str, str]) -> None:
    """Write the condition into a stored FlowSchema. If the FlowSchema has changed since, the next request retries."""
    tree: Tree = decode_stored(record)
    time = format_time(utc_now())
    made = {name: condition[name] for name in ("type", "status")} | {"lastTransitionTime": time}
    tree["status"] = {"conditions": [made | {name: condition[name] for name in ("reason", "message")}]}
    metadata: Tree = tree["metadata"]
    entries: list[Tree] = metadata.get("managedFields") or []
    others = [entry for entry in entries if entry.get("manager") != _MANAGER]
    metadata["managedFields"] = [_entry(tree["apiVersion"], time), *others]
    with suppress(StorageError):
        await storage.put(record.key, encode_stored(tree), expect=record.modified)


def _entry(api_version: str, time: str) -> dict[str, Any]:
    return {
        "manager": _MANAGER,
        "operation": "Apply",
        "apiVersion": api_version,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": _FIELDS,
        "subresource": "status",
    }
