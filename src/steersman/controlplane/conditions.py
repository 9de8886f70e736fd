"""The conditions of a terminating namespace, in kube-controller-manager's wording.

Guarantees: pure. All five conditions are always set; the transition time changes only with the status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from steersman.kinds.core_v1 import Namespace, NamespaceCondition, NamespaceStatus

CONTENT_FAILURE = "NamespaceDeletionContentFailure"
CONTENT_REMAINING = "NamespaceContentRemaining"
FINALIZERS_REMAINING = "NamespaceFinalizersRemaining"

#: Each condition with its reason and message if there is no problem.
_WELL = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    CONTENT_FAILURE: ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    CONTENT_REMAINING: ("ContentRemoved", "All content successfully removed"),
    FINALIZERS_REMAINING: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}

#: Problems: a condition with its reason and message.
Problems = dict[str, tuple[str, str]]


def content_problems(failures: Sequence[str], remaining: Mapping[str, int], finalizers: Mapping[str, int]) -> Problems:
    """The problems for failures and for remaining objects, by resource and by finalizer."""
    problems: Problems = {}
    if failures:
        words = ", ".join(sorted(failures))
        problems[CONTENT_FAILURE] = (
            "ContentDeletionFailed",
            f"Failed to delete all resource types, {len(failures)} remaining: {words}",
        )
    if remaining:
        words = ", ".join(sorted(f"{resource} has {count} resource instances" for resource, count in remaining.items()))
        problems[CONTENT_REMAINING] = ("SomeResourcesRemain", f"Some resources are remaining: {words}")
    if finalizers:
        words = ", ".join(sorted(f"{name} in {count} resource instances" for name, count in finalizers.items()))
        problems[FINALIZERS_REMAINING] = (
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {words}",
        )
    return problems


def set_conditions(namespace: Namespace, problems: Problems, now: datetime) -> bool:
    """Set all conditions of a namespace; returns whether any changed."""
    status = namespace.status = namespace.status or NamespaceStatus()
    conditions = list(status.conditions or ())
    known = {condition.type: condition for condition in conditions}
    changed = False
    for name, well in _WELL.items():
        reason, message = problems.get(name, well)
        value = "True" if name in problems else "False"
        found = known.get(name)
        if found is None:
            conditions.append(
                NamespaceCondition(type=name, status=value, reason=reason, message=message, last_transition_time=now)
            )
            changed = True
        elif (found.status, found.reason, found.message) != (value, reason, message):
            if found.status != value:
                found.last_transition_time = now
            found.status, found.reason, found.message = value, reason, message
            changed = True
    if changed:
        status.conditions = conditions
    return changed
