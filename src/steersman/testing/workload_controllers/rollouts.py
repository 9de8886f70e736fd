"""The arithmetic of a rollout: how many Pods each ReplicaSet of a Deployment may have. Pure.

Guarantees
- A rolling update requests at most ``replicas + maxSurge`` Pods and keeps ``replicas - maxUnavailable`` available.
- Scaling a Deployment during a rollout scales its ReplicaSets in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from steersman.kinds.apps_v1 import Deployment, ReplicaSet
from steersman.objects import scaled_value
from steersman.testing.workload_controllers.deployment_annotations import desired_size, maximum_size
from steersman.testing.workload_controllers.hashes import canonical

#: The label that tells the Pods of a Deployment's ReplicaSets apart.
HASH = "pod-template-hash"
#: The age of a ReplicaSet without a creation time: it counts as the oldest.
_NEVER = datetime.min.replace(tzinfo=UTC)


def replicas(owner: Deployment | ReplicaSet) -> int:
    """The requested number of Pods."""
    return 1 if owner.spec.replicas is None else owner.spec.replicas


def total(sets: Iterable[ReplicaSet]) -> int:
    """The requested number of Pods of several ReplicaSets."""
    return sum(map(replicas, sets))


def name_of(replica_set: ReplicaSet) -> str:
    """The name of a ReplicaSet."""
    return replica_set.metadata.name or ""


def available(replica_set: ReplicaSet) -> int:
    """How many Pods of a ReplicaSet are available."""
    return (replica_set.status.available_replicas or 0) if replica_set.status is not None else 0


def active(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """The ReplicaSets that request Pods."""
    return [replica_set for replica_set in sets if replicas(replica_set) > 0]


def age(replica_set: ReplicaSet) -> tuple[datetime, str]:
    """A sort key for ReplicaSets, from old to new."""
    return replica_set.metadata.creation_timestamp or _NEVER, name_of(replica_set)


def is_rolling(owner: Deployment) -> bool:
    """Whether the strategy is RollingUpdate."""
    return owner.spec.strategy is None or owner.spec.strategy.type != "Recreate"


def fenceposts(owner: Deployment) -> tuple[int, int]:
    """How many Pods above the requested number are allowed, and how many may be missing.

    As ``ResolveFenceposts`` of kube-controller-manager: not both are zero.
    """
    if not is_rolling(owner):
        return 0, 0
    update = owner.spec.strategy.rolling_update if owner.spec.strategy is not None else None
    surge = update.max_surge if update is not None and update.max_surge is not None else 0
    unavailable = update.max_unavailable if update is not None and update.max_unavailable is not None else 0
    most = scaled_value(surge, replicas(owner), rounding="up")
    fewer = scaled_value(unavailable, replicas(owner), rounding="down")
    if most == 0 and fewer == 0:
        # Rounding left no room; allow one.
        fewer = 1
    return most, min(fewer, replicas(owner))


def maximum(owner: Deployment) -> int:
    """How many Pods a Deployment may have: those requested, and the surge."""
    return replicas(owner) + fenceposts(owner)[0]


def find_new(owner: Deployment, sets: Iterable[ReplicaSet]) -> ReplicaSet | None:
    """The oldest ReplicaSet with the template of the Deployment."""
    wanted = canonical(owner.spec.template)
    return next((replica_set for replica_set in sorted(sets, key=age) if same_template(wanted, replica_set)), None)


def same_template(wanted: dict[str, object], replica_set: ReplicaSet) -> bool:
    """Whether a ReplicaSet has this template, ignoring the hash in its labels."""
    assert replica_set.spec.template is not None
    tree = canonical(replica_set.spec.template)
    labels = tree.get("metadata", {}).get("labels", {})
    labels.pop(HASH, None)
    if not labels and "labels" in tree.get("metadata", {}):
        del tree["metadata"]["labels"]
    return tree == wanted


def new_size(owner: Deployment, sets: Iterable[ReplicaSet], new: int) -> int:
    """How many Pods the new ReplicaSet, which has ``new`` now, may request."""
    if not is_rolling(owner):
        return replicas(owner)
    room = maximum(owner) - total(sets)
    return new if room <= 0 else new + min(room, replicas(owner) - new)


def old_sizes(owner: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> dict[str, int]:
    """The new sizes of old ReplicaSets, by name; only those that change.

    Unhealthy Pods are removed first: they serve nothing and would block the rollout.
    """
    sizes = {name_of(replica_set): replicas(replica_set) for replica_set in sorted(active(old), key=age)}
    healthy = {name_of(replica_set): available(replica_set) for replica_set in active(old)}
    least = replicas(owner) - fenceposts(owner)[1]
    # What the new ReplicaSet still misses must not be paid for by the old ones.
    missing_of_new = replicas(new) - available(new)
    budget = sum(sizes.values()) + replicas(new) - least - missing_of_new
    # A status that was written before its ReplicaSet shrank counts Pods that are about to go: wait for the next one.
    outdated = any(available(each) > replicas(each) for each in (new, *active(old)))
    if not sizes or budget <= 0 or outdated:
        return {}
    unhealthy = {name: size - healthy[name] for name, size in sizes.items()}
    reduced = _cut(sizes, unhealthy, budget)
    spare = sum(healthy.values()) + available(new) - least
    reduced = _cut(reduced, reduced, spare)
    return {name: size for name, size in reduced.items() if size != sizes[name]}


def _cut(sizes: dict[str, int], most: dict[str, int], budget: int) -> dict[str, int]:
    """The sizes less up to ``most`` Pods each, and ``budget`` in all, in their order."""
    reduced: dict[str, int] = {}
    for name, size in sizes.items():
        cut = min(max(0, budget), most[name])
        reduced[name] = size - cut
        budget -= cut
    return reduced


def scaled_sizes(owner: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> dict[str, int]:
    """The size of each ReplicaSet after the Deployment was scaled, by name."""
    everything = [*old, *([new] if new is not None else [])]
    busy = active(everything)
    if len(busy) <= 1:
        newest = new if new is not None else max(old, key=age, default=None)
        chosen = busy[0] if busy else newest
        return {} if chosen is None else {name_of(chosen): replicas(owner)}
    if new is not None and _is_saturated(owner, new):
        return {name_of(replica_set): 0 for replica_set in active(old)}
    return _proportions(owner, busy) if is_rolling(owner) else {}


def _is_saturated(owner: Deployment, new: ReplicaSet) -> bool:
    """Whether the new ReplicaSet has all Pods, all available, and was sized for this number (``IsSaturated``)."""
    wanted = replicas(owner)
    return replicas(new) == available(new) == wanted and desired_size(new) == wanted


def _proportions(owner: Deployment, busy: list[ReplicaSet]) -> dict[str, int]:
    """The sizes that keep the shares of ReplicaSets in a rollout (``GetReplicaSetProportion``); the largest gets the rest."""
    allowed = maximum(owner) if replicas(owner) > 0 else 0
    to_add, added = allowed - total(busy), 0
    # Largest first; of equal size, new ones grow and old ones shrink first.
    ordered = sorted(sorted(busy, key=age, reverse=to_add > 0), key=replicas, reverse=True)
    sizes: dict[str, int] = {}
    for replica_set in ordered:
        share = 0
        if to_add not in {0, added}:
            fraction, left = _fraction(owner, replica_set), to_add - added
            share = min(fraction, left) if to_add > 0 else max(fraction, left)
        sizes[name_of(replica_set)] = replicas(replica_set) + share
        added += share
    first = name_of(ordered[0])
    sizes[first] = max(0, sizes[first] + to_add - added)
    return sizes


def _fraction(owner: Deployment, replica_set: ReplicaSet) -> int:
    """How many Pods a ReplicaSet gains or loses by its share, rounded half up (``getReplicaSetFraction``)."""
    if replicas(owner) == 0:
        return -replicas(replica_set)
    before = maximum_size(replica_set) or (owner.status.replicas if owner.status is not None else 0) or 0
    if before == 0:
        return 0
    size = replicas(replica_set) * maximum(owner) / before
    return math.floor(size + 0.5) - replicas(replica_set)


def is_scaled(owner: Deployment, sets: Iterable[ReplicaSet]) -> bool:
    """Whether the Deployment was scaled since its ReplicaSets were last sized."""
    wanted = [desired_size(replica_set) for replica_set in active(sets)]
    return any(size is not None and size != replicas(owner) for size in wanted)
