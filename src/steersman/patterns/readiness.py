"""Whether an object is what its spec asks for: one function for every kind. Pure.

Guarantees
- Built-in kinds are judged as Kubernetes' own tools judge them, from the object alone: a change that its controller has
  not seen yet is never taken for done.
- Why an object is not ready is said in words, with what it says itself quoted.
- An object that is being deleted is never ready.
- It costs a few look-ups: nothing is encoded, decoded or copied.
"""

from __future__ import annotations

from steersman.objects import GroupKind, Object, PartialObjectMetadata, Unstructured
from steersman.patterns.readiness_rules import exists, rule_of
from steersman.patterns.verdicts import Readiness, items, root, waits

__all__ = ["Readiness", "readiness", "readiness_at_sight"]


def readiness(obj: Object | Unstructured) -> Readiness:
    """Whether an object is ready, and why not.

    Kinds without a rule of their own: what belongs to Kubernetes (ConfigMaps, Roles, Ingresses, ...) is ready when it exists. Custom
    kinds are judged by the conditions that are usual (Stalled, Reconciling, Ready, Available, Succeeded, ...) and by
    ``observedGeneration``, of the status and of the condition. A custom kind without any of these conditions is ready when it exists;
    only a kind declared with a status of `StatusOf` is waited for until its controller has reported something.
    """
    if isinstance(obj, Unstructured):
        group, slash, _ = obj.api_version.partition("/")
        group, kind = group if slash else "", obj.kind
    elif isinstance(obj, PartialObjectMetadata):
        raise TypeError(
            f"whether {obj.kind} {obj.key} is ready cannot be told from its metadata alone; read the whole object"
        )
    else:
        options = type(obj).__resource__
        group, kind = options.group, options.kind
    node = root(obj)
    if obj.deleting:
        held = ", ".join(str(each) for each in items(node, "metadata", "finalizers"))
        return waits("Deleting", f"it is being deleted{f'; held by {held}' if held else ''}")
    return rule_of(group, kind)(node)


def readiness_at_sight(kind: GroupKind) -> Readiness | None:
    """Whether objects of a kind are ready by being there, which nobody has to read them for; None if more decides."""
    return exists(None) if rule_of(kind.group, kind.kind) is exists else None
