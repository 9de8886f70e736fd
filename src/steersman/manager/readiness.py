"""Which objects are not ready, and why, for the debug page and ``steersman explain``.

Guarantees
- Everything comes from the cache: no request is sent.
- An index counts the objects that are not ready (`Store.by_unmet_condition`). Its first use costs a look at every object
  of the kind, and `index_readiness` does that without blocking the event loop. Later uses cost a few decoded objects.
- Texts show no secret value of the object that they are about, and their length is bounded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from heapq import nlargest
from itertools import chain, islice, zip_longest
from typing import Any

from steersman.cache import IndexName, Informer, StoredCondition, StoredObject, condition_of
from steersman.controller import Blueprint
from steersman.debug import ReadyCondition, UnreadyObject, UnreadyObjects
from steersman.objects import GroupVersionKind, Key, parse_time
from steersman.objects.secret_values import Redaction

#: How many objects are named in all, and how many reasons of one controller.
SHOWN = 50
REASONS = 5
_MESSAGE_MAX = 2000
_REASON_MAX = 100


def summary_of(blueprint: Blueprint) -> str:
    """The condition that says whether an object of a controller is ready."""
    return blueprint.conditions[0] if blueprint.conditions else "Ready"


def ready_of(
    informers: Iterable[Informer[Any]], kind: GroupVersionKind, key: Key, *, condition: str = "Ready"
) -> ReadyCondition | None:
    """The cached Ready condition of an object; None if the object is missing or has no such condition."""
    for informer in informers:
        if informer.gvk == kind and (stored := informer.store.get(key)) is not None:
            entry = condition_of(stored, condition)
            return _shown(stored, entry, kind) if entry is not None else None
    return None


async def index_readiness(blueprints: Iterable[Blueprint], informers: Iterable[Informer[Any]]) -> None:
    """Build the indexes that `unready_objects` needs, without blocking the event loop."""
    for blueprint, informer in _reporting(blueprints, informers):
        await informer.prepare(IndexName("condition", summary_of(blueprint)))


def unready_objects(blueprints: Iterable[Blueprint], informers: Iterable[Informer[Any]]) -> tuple[UnreadyObjects, ...]:
    """The objects that are not ready, for each controller that has some."""
    unready = [
        (blueprint, informer, groups)
        for blueprint, informer in _reporting(blueprints, informers)
        if (groups := informer.store.by_unmet_condition(summary_of(blueprint)))
    ]
    budget = max(1, SHOWN // len(unready)) if unready else 0
    return tuple(_unready(blueprint, informer, groups, budget) for blueprint, informer, groups in unready)


def _reporting(
    blueprints: Iterable[Blueprint], informers: Iterable[Informer[Any]]
) -> Iterator[tuple[Blueprint, Informer[Any]]]:
    """The controllers whose objects are cached. Those of Pods and Nodes are left out: the kubelet reports these."""
    cached = {informer.kind: informer for informer in informers}
    for blueprint in blueprints:
        informer = cached.get(blueprint.primary)
        if informer is not None and (informer.gvk.group or blueprint.conditions):
            yield blueprint, informer


def _unready(
    blueprint: Blueprint,
    informer: Informer[Any],
    groups: Mapping[tuple[str, str], Collection[Key]],
    budget: int,
) -> UnreadyObjects:
    store, condition = informer.store, summary_of(blueprint)
    # One of each reason first: a rare reason must not drown in a frequent one.
    turns = chain.from_iterable(zip_longest(*(islice(keys, budget) for keys in islice(groups.values(), budget))))
    shown = [
        UnreadyObject(key=stored.key, ready=_shown(stored, entry, informer.gvk), deleting=stored.deleting)
        for key in islice(filter(None, turns), budget)
        if (stored := store.get(key)) is not None and (entry := condition_of(stored, condition)) is not None
    ]
    frequent = nlargest(REASONS, groups.items(), key=lambda group: len(group[1]))
    return UnreadyObjects(
        controller=blueprint.name,
        count=sum(map(len, groups.values())),
        of=len(store),
        reasons=tuple(
            (_reason(store.get(next(iter(keys))), *what, informer.gvk), len(keys)) for what, keys in frequent
        ),
        shown=tuple(shown),
    )


def _reason(stored: StoredObject | None, status: str, reason: str, kind: GroupVersionKind) -> str:
    condition = StoredCondition(status=status, reason=reason)
    return (_shown(stored, condition, kind).reason if stored is not None else "") or status


def _shown(stored: StoredObject, condition: StoredCondition, kind: GroupVersionKind) -> ReadyCondition:
    redacted = Redaction(stored.raw, secret=(kind.group, kind.kind) == ("", "Secret"))
    return ReadyCondition(
        condition.status,
        _cut(redacted(condition.reason or ""), _REASON_MAX),
        _cut(redacted(condition.message or ""), _MESSAGE_MAX),
        _time(condition.last_transition_time),
    )


def _time(text: str | None) -> datetime | None:
    with suppress(ValueError):
        return parse_time(text) if text else None
    return None


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
