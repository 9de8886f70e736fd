"""Owners: which object belongs to which, and which field manager to which program."""

from __future__ import annotations

import msgspec

from steersman.errors import OwnershipError
from steersman.objects.difference import to_json
from steersman.objects.document import decode
from steersman.objects.metadata import OwnerReference
from steersman.objects.options import ResourceOptions
from steersman.objects.resource import Object
from steersman.objects.unstructured import Unstructured, uid_of


def owner_reference(
    owner: Object | Unstructured, *, controller: bool = True, block_owner_deletion: bool = True
) -> OwnerReference:
    """A reference to ``owner``, which must have been read from the server, since the reference contains its uid."""
    uid = uid_of(owner)
    if not uid:
        raise OwnershipError(f"{owner.kind} {owner.key} has no uid: create or read it before making it an owner")
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.key.name,
        uid=uid,
        controller=controller or None,
        block_owner_deletion=block_owner_deletion or None,
    )


def controller_of(owned: Object | Unstructured) -> OwnerReference | None:
    """The owner that controls the object; None if there is none."""
    return next((owner for owner in _references(owned) if owner.controller), None)


def is_owned_by(owned: Object | Unstructured, owner: Object | Unstructured) -> bool:
    """Whether ``owned`` refers to exactly this ``owner``, by uid."""
    uid = uid_of(owner)
    return any(reference.uid == uid for reference in _references(owned))


def set_owner(
    owned: Object | Unstructured,
    owner: Object | Unstructured,
    *,
    controller: bool = True,
    block_owner_deletion: bool = True,
) -> None:
    """Make ``owner`` an owner of ``owned``; rejects a second controller and an owner in another namespace."""
    namespace = owner.key.namespace
    if namespace and owned.key.namespace and owned.key.namespace != namespace:
        raise OwnershipError(
            f"{owner.kind} {owner.key} cannot own {owned.kind} {owned.key}: an owner must be in the same namespace or"
            " cluster-scoped"
        )
    options: ResourceOptions | None = getattr(type(owned), "__resource__", None)
    if options is not None and not options.namespaced:
        check_cluster_scoped(owned, owner)
    reference = owner_reference(owner, controller=controller, block_owner_deletion=block_owner_deletion)
    present = controller_of(owned)
    if controller and present is not None and present.uid != reference.uid:
        raise OwnershipError(
            f"{owned.kind} {owned.key} is already controlled by {present.kind} {present.name}; pass controller=False to"
            " add another owner"
        )
    if isinstance(owned, Unstructured):
        trees = [each for each in owned.metadata.get("ownerReferences") or () if each.get("uid") != reference.uid]
        owned.metadata["ownerReferences"] = [*trees, to_json(reference)]
    else:
        others = [other for other in owned.metadata.owner_references or () if other.uid != reference.uid]
        owned.metadata.owner_references = [*others, reference]


def check_cluster_scoped(owned: Object | Unstructured, owner: Object | Unstructured) -> None:
    """Reject a namespaced owner of an object that is cluster-scoped."""
    if owner.key.namespace:
        raise OwnershipError(
            f"{owner.kind} {owner.key} cannot own {owned.kind} {owned.key}, which is cluster-scoped: the garbage"
            " collector would not find the owner and would delete the object; use a label and a finalizer"
        )


def _references(owned: Object | Unstructured) -> list[OwnerReference]:
    if isinstance(owned, Unstructured):
        trees = owned.metadata.get("ownerReferences") or ()
        return [decode(OwnerReference, msgspec.json.encode(each)) for each in trees]
    return owned.metadata.owner_references or []


def is_manager_of(program: str, manager: str) -> bool:
    """Whether a field manager belongs to a program, which writes under its own name, or to a part of it: ``NAME/PART``."""
    return manager == program or manager.startswith(f"{program}/")
