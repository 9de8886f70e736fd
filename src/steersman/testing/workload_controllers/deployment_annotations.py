"""The annotations in which a Deployment and its ReplicaSets keep revisions and sizes. Pure.

Guarantees
- The new ReplicaSet inherits the annotations of its Deployment, except those that are only about the Deployment.
- A revision is replaced by a higher one alone, and the earlier one goes into the history.
"""

from __future__ import annotations

from steersman.kinds.apps_v1 import Deployment, ReplicaSet

#: The revision of a ReplicaSet, and of its Deployment: a number.
REVISION = "deployment.kubernetes.io/revision"
#: The earlier revisions of a ReplicaSet that became the new one again, separated by commas.
HISTORY = "deployment.kubernetes.io/revision-history"
#: How many Pods the Deployment requested when the ReplicaSet was last sized.
DESIRED = "deployment.kubernetes.io/desired-replicas"
#: How many Pods the Deployment might have then, with the surge.
MAXIMUM = "deployment.kubernetes.io/max-replicas"
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
#: The longest history, as in kube-controller-manager; the oldest revisions are dropped.
_HISTORY_CHARACTERS = 2000


def revision(replica_set: ReplicaSet) -> int:
    """The revision of a ReplicaSet; 0 if it has none."""
    try:
        return int((replica_set.metadata.annotations or {}).get(REVISION, "0"))
    except ValueError:
        return 0


def desired_size(replica_set: ReplicaSet) -> int | None:
    """How many Pods the Deployment requested when the ReplicaSet was last sized; None if it does not say."""
    return _number(replica_set, DESIRED)


def maximum_size(replica_set: ReplicaSet) -> int | None:
    """How many Pods the Deployment might have then; None if it does not say."""
    return _number(replica_set, MAXIMUM)


def _number(replica_set: ReplicaSet, annotation: str) -> int | None:
    text = (replica_set.metadata.annotations or {}).get(annotation, "")
    return int(text) if text.isdecimal() else None


def size_annotations(wanted: int, maximum: int) -> dict[str, str]:
    """The annotations in which a ReplicaSet records how many Pods its Deployment requests, and may have."""
    return {DESIRED: str(wanted), MAXIMUM: str(maximum)}


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
