"""New names of field managers: the fields of the old name go to the new name.

Guarantees
- Entries of other managers stay unchanged, in their order.
- Fields that the old and the new name own through the same operation become one entry with the fields of both.
- A part of a program (``old/site``) becomes the same part of the new name (``new/site``); `moved_managers` moves exact names only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from steersman.objects import is_manager_of
from steersman.patches.field_set import FieldSet

Entry: TypeAlias = dict[str, Any]

#: Servers reject longer names of field managers.
_NAME_MAX = 128


def new_name_of(manager: str, name: str, formerly: Iterable[str]) -> str:
    """The current name of a manager; its own if it is not one of the former names."""
    for former in formerly:
        if is_manager_of(former, manager) and not is_manager_of(name, manager):
            return f"{name}{manager[len(former) :]}"[:_NAME_MAX]
    return manager


def renamed_managers(entries: Iterable[Mapping[str, Any]], name: str, formerly: Iterable[str]) -> list[Entry] | None:
    """``managedFields`` with the former names replaced; None if none of them owns anything."""
    former = tuple(formerly)
    return _renamed(entries, lambda manager: new_name_of(manager, name, former))


def moved_managers(entries: Iterable[Mapping[str, Any]], old: Iterable[str], new: str) -> list[Entry] | None:
    """``managedFields`` with the fields of the managers ``old`` moved to ``new``; None if they own nothing."""
    names = frozenset(old)
    return _renamed(entries, lambda manager: new if manager in names else manager)


def _renamed(entries: Iterable[Mapping[str, Any]], name_of: Callable[[str], str]) -> list[Entry] | None:
    found = False
    renamed: list[Entry] = []
    places: dict[tuple[str, ...], int] = {}
    for each in entries:
        entry = dict(each)
        manager = entry.get("manager") or ""
        today = name_of(manager)
        if today != manager:
            found, entry["manager"] = True, today
        place = _identity(entry)
        if place not in places:
            places[place] = len(renamed)
            renamed.append(entry)
            continue
        known = renamed[places[place]]
        joined = FieldSet.parse(known.get("fieldsV1") or {}) | FieldSet.parse(entry.get("fieldsV1") or {})
        renamed[places[place]] = {**known, "fieldsV1": joined.to_json()}
    return renamed if found else None


def _identity(entry: Entry) -> tuple[str, ...]:
    """The identity of an entry; servers keep one entry per applier, whatever version it applied."""
    operation = entry.get("operation") or ""
    version = "" if operation == "Apply" else entry.get("apiVersion") or ""
    return (entry.get("manager") or "", operation, version, entry.get("subresource") or "")
