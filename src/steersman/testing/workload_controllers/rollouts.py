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
from steersman.testing.workload_controllers.hashes import canonical

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
HASH = "pod-template-hash"
#: Annotations of a Deployment that are not copied to its ReplicaSets.
_OWN = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        HISTORY,
        DESIRED,
        MAXIMUM,
    }
)
_HISTORY_CHARACTERS = 2000
_NEVER = datetime.min.replace(tzinfo=UTC)


def replicas(owner: Deployment | ReplicaSet) -> int:
    """The requested number of Pods."""
    return 1 if owner.spec.replicas is None else owner.spec.replicas


def total(sets: Iterable[ReplicaSet]) -> int:
    """The requested number of Pods of several ReplicaSets."""
    return sum(map(replicas, sets))


def available(replica_set: ReplicaSet) -> int:
    """How many Pods of a ReplicaSet are available."""
    return (replica_set.status.available_replicas or 0) if replica_set.status is not None else 0


def active(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """The ReplicaSets that request Pods."""
    return [replica_set for replica_set in sets if replicas(replica_set) > 0]


def age(replica_set: ReplicaSet) -> tuple[datetime, str]:
    """A sort key for ReplicaSets, from old to new."""
    return replica_set.metadata.creation_timestamp or _NEVER, replica_set.metadata.name or ""


def revision(replica_set: ReplicaSet) -> int:
    """The revision of a ReplicaSet; 0 if it has none."""
    try:
        return int((replica_set.metadata.annotations or {}).get(REVISION, "0"))
    except ValueError:
        return 0


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
    room = replicas(owner) + fenceposts(owner)[0] - total(sets)
    return new if room <= 0 else new + min(room, replicas(owner) - new)


def old_sizes(owner: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> dict[str, int]:
    """The new sizes of old ReplicaSets, by name; only those that change.

    Unhealthy Pods are removed first: they serve nothing and would block the rollout.
    """
    sizes = {replica_set.metadata.name or "": replicas(replica_set) for replica_set in sorted(active(old), key=age)}
    healthy = {replica_set.metadata.name or "": available(replica_set) for replica_set in active(old)}
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
        chosen = busy[0] if busy else new if new is not None else max(old, key=age, default=None)
        return {} if chosen is None else {chosen.metadata.name or "": replicas(owner)}
    if new is not None and _is_saturated(owner, new):
        return {replica_set.metadata.name or "": 0 for replica_set in active(old)}
    return _proportions(owner, busy) if is_rolling(owner) else {}


def _is_saturated(owner: Deployment, new: ReplicaSet) -> bool:
    """Whether the new ReplicaSet has all Pods, all available, and was sized for this number (``IsSaturated``)."""
    wanted = replicas(owner)
    return replicas(new) == available(new) == wanted and (new.metadata.annotations or {}).get(DESIRED) == str(wanted)


def _proportions(owner: Deployment, busy: list[ReplicaSet]) -> dict[str, int]:
    """The sizes that keep the shares of ReplicaSets in a rollout (``GetReplicaSetProportion``); the largest gets the rest."""
    allowed = replicas(owner) + fenceposts(owner)[0] if replicas(owner) > 0 else 0
    to_add, added = allowed - total(busy), 0
    # Largest first; of equal size, new ones grow and old ones shrink first.
    ordered = sorted(sorted(busy, key=age, reverse=to_add > 0), key=replicas, reverse=True)
    sizes: dict[str, int] = {}
    for replica_set in ordered:
        share = 0
        if to_add not in {0, added}:
            fraction, left = _fraction(owner, replica_set), to_add - added
            share = min(fraction, left) if to_add > 0 else max(fraction, left)
        sizes[replica_set.metadata.name or ""] = replicas(replica_set) + share
        added += share
    first = ordered[0].metadata.name or ""
    sizes[first] = max(0, sizes[first] + to_add - added)
    return sizes


def _fraction(owner: Deployment, replica_set: ReplicaSet) -> int:
    """How many Pods a ReplicaSet gains or loses by its share, rounded half up (``getReplicaSetFraction``)."""
    if replicas(owner) == 0:
        return -replicas(replica_set)
    before = _number(replica_set, MAXIMUM) or (owner.status.replicas if owner.status is not None else 0) or 0
    if before == 0:
        return 0
    size = replicas(replica_set) * (replicas(owner) + fenceposts(owner)[0]) / before
    return math.floor(size + 0.5) - replicas(replica_set)


def _number(replica_set: ReplicaSet, annotation: str) -> int | None:
    text = (replica_set.metadata.annotations or {}).get(annotation, "")
    return int(text) if text.isdecimal() else None


def is_scaled(owner: Deployment, sets: Iterable[ReplicaSet]) -> bool:
    """Whether the Deployment was scaled since its ReplicaSets were last sized."""
    wanted = [_number(replica_set, DESIRED) for replica_set in active(sets)]
    return any(size is not None and size != replicas(owner) for size in wanted)


def size_annotations(owner: Deployment) -> dict[str, str]:
    """The annotations in which a ReplicaSet records the Deployment's size."""
    return {DESIRED: str(replicas(owner)), MAXIMUM: str(replicas(owner) + fenceposts(owner)[0])}


def new_annotations(owner: Deployment, present: dict[str, str], number: int) -> dict[str, str]:
    """The annotations of the new ReplicaSet, whose revision is ``number`` or higher."""
    inherited = {name: text for name, text in (owner.metadata.annotations or {}).items() if name not in _OWN}
    annotations = present | inherited
    before = present.get(REVISION, "")
    if before and not before.isdecimal():
        return annotations
    if int(before or 0) >= number:
        return annotations
    annotations[REVISION] = str(number)
    if before:
        history = [*filter(None, present.get(HISTORY, "").split(",")), before]
        while len(",".join(history)) > _HISTORY_CHARACTERS and len(history) > 1:
            del history[0]
        annotations[HISTORY] = ",".join(history)
    return annotations
