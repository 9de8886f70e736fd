"""Which controllers are shared, and which kinds a replica caches only in its ranges. Pure.

Guarantees
- A kind is divided only if no shared controller needs an object of it outside the namespace of its request.
- A controller with sources of its own, such as external objects and daemons, is not shared: its events reach one process.

Not covered: replicas of two versions of a program, if a controller is shared in only one of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from steersman.controller import Blueprint, KindLike
from steersman.objects import GroupVersionKind, Kind


def is_shared(blueprint: Blueprint) -> bool:
    """Whether all replicas run a controller, each for its own ranges. The coordinator alone runs the others."""
    return not blueprint.sources


def whole_kinds(blueprints: Iterable[Blueprint], local: Iterable[KindLike] = ()) -> frozenset[GroupVersionKind]:
    """The kinds of which every replica needs all objects.

    ``local`` are kinds whose mappers the program declares to stay in one namespace.
    """
    declared = {kind.gvk() for kind in local}
    whole: set[GroupVersionKind] = set()
    for blueprint in blueprints:
        whole |= {kind.gvk() for kind in blueprint.across_namespaces}
        by_namespace = is_shared(blueprint) and blueprint.namespaced is True
        for watch in blueprint.watches:
            if not (by_namespace and (watch.local or watch.kind.gvk() in declared)):
                whole |= {kind.gvk() for kind in (watch.kind, *watch.through)}
    return frozenset(whole)


def is_namespaced(kind: KindLike) -> bool:
    """Whether a kind is certainly namespaced."""
    return not isinstance(kind, Kind) and kind.__resource__.namespaced
