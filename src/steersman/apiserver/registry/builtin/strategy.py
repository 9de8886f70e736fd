"""The common behavior of Kubernetes' own kinds.

Guarantees
- `BuiltinStrategy.default` leaves an object in the canonical form of its type, with the defaults of the kind.
- If a kind has a status, creating or updating the object itself does not set it, and updating the status sets nothing
  else.
"""

from __future__ import annotations

from steersman.apiserver.registry.builtin.types.canonical_form import canonical, empty, knows
from steersman.apiserver.registry.builtin.types.trees import Tree, metadata, subtree, take
from steersman.apiserver.registry.strategy import Strategy
from steersman.objects import GroupVersionKind
from steersman.schemas.names import dns_label, dns_subdomain, path_segment

__all__ = ["BuiltinStrategy", "definition_of", "metadata", "restore_metadata", "subtree"]


def definition_of(kind: GroupVersionKind) -> str:
    """The name of a kind's type among the shapes."""
    return f"{kind.group.partition('.')[0] or 'core'}.{kind.version}.{kind.kind}"


def restore_metadata(obj: Tree, old: Tree) -> None:
    """Restore the metadata that an update of a subresource may not change."""
    for name in ("deletionTimestamp", "labels", "annotations", "finalizers", "ownerReferences"):
        take(metadata(obj), metadata(old), name)


class BuiltinStrategy(Strategy):
    """One of Kubernetes' own kinds: structural only, unless a subclass adds rules."""

    #: Fields that an update of the status restores.
    status_keeps: tuple[str, ...] = ("spec",)
    #: Whether an update of the status also restores labels, annotations, finalizers and owners.
    status_keeps_metadata = False
    #: "subdomain", "label", "path" for what fits into a path, or "any": the same, and prefixes may be dots.
    names = "subdomain"

    def __init__(self, kind: GroupVersionKind, *, has_status: bool = False) -> None:
        self.kind = kind
        self.definition = definition_of(kind)
        self.has_status = has_status

    def default(self, obj: Tree) -> None:
        """Normalize the object to the form of its type, and fill in defaults."""
        if knows(self.definition):
            made = canonical(obj, self.definition, in_place=True)
            obj.clear()
            obj.update(made)
        self.fill(obj)

    def fill(self, obj: Tree) -> None:
        """Fill in the kind's defaults; the object is in canonical form."""

    def empty_status(self) -> Tree:
        """The status of a new object."""
        status = f"{self.definition}Status"
        return empty(status) if knows(status) else {}

    def prepare_create(self, obj: Tree) -> None:
        """Clear the status."""
        if self.has_status:
            obj["status"] = self.empty_status()

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        """Restore the status."""
        if self.has_status:
            take(obj, old, "status")

    def prepare_status(self, obj: Tree, old: Tree) -> None:
        """Restore everything but the status."""
        for field in self.status_keeps:
            take(obj, old, field)
        if self.status_keeps_metadata:
            restore_metadata(obj, old)

    def validate_name(self, name: str, *, prefix: bool = False) -> list[str]:
        match self.names:
            case "path":
                return path_segment(name)
            case "any":
                return path_segment(name, prefix=prefix)
            case "label":
                return dns_label(name, prefix=prefix)
            case _:
                return dns_subdomain(name, prefix=prefix)
