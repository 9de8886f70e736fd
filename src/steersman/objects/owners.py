"""Owners: which object belongs to which, and which field manager to which program."""

from __future__ import annotations

from steersman.errors import OwnershipError
from steersman.objects.metadata import OwnerReference
from steersman.objects.options import ResourceOptions
from steersman.objects.resource import Object


def owner_reference(owner: Object, *, controller: bool = True, block_owner_deletion: bool = True) -> OwnerReference:
    """A reference to ``owner``, which must have been read from the server, since the reference contains its uid."""
    if not owner.metadata.uid:
        raise OwnershipError(f"{owner.kind} {owner.key} has no uid: create or read it before making it an owner")
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.metadata.name or "",
        uid=owner.metadata.uid,
        controller=controller or None,
        block_owner_deletion=block_owner_deletion or None,
    )


def controller_of(owned: Object) -> OwnerReference | None:
    """The owner that controls the object; None if there is none."""
    return next((owner for owner in owned.metadata.owner_references or () if owner.controller), None)


def is_owned_by(owned: Object, owner: Object) -> bool:
    """Whether ``owned`` refers to exactly this ``owner``, by uid."""
    return any(reference.uid == owner.metadata.uid for reference in owned.metadata.owner_references or ())


def set_owner(owned: Object, owner: Object, *, controller: bool = True, block_owner_deletion: bool = True) -> None:
    """Make ``owner`` an owner of ``owned``; rejects a second controller and an owner in another namespace."""
    namespace = owner.metadata.namespace
    if namespace and owned.metadata.namespace and owned.metadata.namespace != namespace:
        raise OwnershipError(
            f"{owner.kind} {owner.key} cannot own {owned.kind} {owned.key}: an owner must be in the same namespace or"
            " cluster-scoped"
        )
    options: ResourceOptions | None = getattr(type(owned), "__resource__", None)
    if namespace and options is not None and not options.namespaced:
        raise OwnershipError(
            f"{owner.kind} {owner.key} cannot own {owned.kind} {owned.key}, which is cluster-scoped: the garbage"
            " collector would not find the owner and would delete the object; use a label and a finalizer"
        )
    reference = owner_reference(owner, controller=controller, block_owner_deletion=block_owner_deletion)
    present = controller_of(owned)
    if controller and present is not None and present.uid != reference.uid:
        raise OwnershipError(
            f"{owned.kind} {owned.key} is already controlled by {present.kind} {present.name}; pass controller=False to"
            " add another owner"
        )
    others = [other for other in owned.metadata.owner_references or () if other.uid != reference.uid]
    owned.metadata.owner_references = [*others, reference]


def is_manager_of(program: str, manager: str) -> bool:
    """Whether a field manager belongs to a program, which writes under its own name, or to a part of it: ``NAME/PART``."""
    return manager == program or manager.startswith(f"{program}/")
