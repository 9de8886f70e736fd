"""Whether an object has become what its spec asks for: one function for every kind. Pure.

Guarantees
- Built-in kinds follow the rules of Kubernetes' own tools, from the object alone. A change that its controller has not
  observed yet never counts as done.
- The message says why an object is not ready, and quotes the object's own conditions.
- An object that is being deleted is never ready.
- It costs a few attribute reads: nothing is encoded, decoded or copied.
"""

from __future__ import annotations

from functools import cache

from steersman.objects import GroupKind, Object, PartialObjectMetadata, Unstructured
from steersman.patterns.readiness.fields import items, root
from steersman.patterns.readiness.result import Readiness, waits
from steersman.patterns.readiness.rules import exists, rule_of

__all__ = ["Readiness", "readiness_at_sight", "readiness_of"]


def readiness_of(obj: Object | Unstructured) -> Readiness:
    """Whether an object is ready, and why not.

    Kinds without a rule of their own:
    - Built-in kinds (ConfigMaps, Roles, Ingresses, ...) are ready when they exist.
    - Custom kinds are ready by their usual conditions (Stalled, Reconciling, Ready, Available, Succeeded, ...) and by
      ``observedGeneration``, of the status and of the condition.
    - A custom kind without any of these conditions is ready when it exists. Only a kind declared with a status of `Status` is not
      ready until its controller has reported something.
    """
    if isinstance(obj, Unstructured):
        group, slash, _ = obj.api_version.partition("/")
        group, kind = group if slash else "", obj.kind
    elif isinstance(obj, PartialObjectMetadata):
        raise TypeError(
            f"the readiness of {obj.kind} {obj.key} cannot be decided from its metadata alone; read the whole object"
        )
    else:
        options = type(obj).__resource__
        group, kind = options.group, options.kind
    node = root(obj)
    if obj.deleting:
        held = ", ".join(str(each) for each in items(node, "metadata", "finalizers"))
        return waits("Deleting", f"it is being deleted{f'; held by {held}' if held else ''}")
    return rule_of(group, kind)(node)


@cache
def readiness_at_sight(kind: GroupKind) -> Readiness | None:
    """The readiness of kinds whose objects are ready once they exist; None if it depends on the object."""
    return exists(None) if rule_of(kind.group, kind.kind) is exists else None
