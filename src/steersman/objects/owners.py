"""Owners: which object belongs to which, what a child is named, and which field manager belongs to which program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, cast

import msgspec

from steersman.errors import OwnershipError
from steersman.objects.difference import to_json
from steersman.objects.document import decode, encode_custom
from steersman.objects.metadata import OwnerReference
from steersman.objects.options import ResourceOptions
from steersman.objects.resource import Object
from steersman.objects.struct import Struct
from steersman.objects.unstructured import Unstructured, uid_of

#: The alphabet of generated names: without vowels, so that no name spells a word.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_HASH_CHARACTERS = 10
#: The longest name that is also a valid label value, and the name of a Pod or a Service.
_NAME_CHARACTERS_MAX = 63


def owner_reference(
    owner: Object | Unstructured, *, controller: bool = True, block_owner_deletion: bool = True
) -> OwnerReference:
    """A reference to ``owner``, which must have been read from the server, since the reference contains its uid."""
    _check_owner(owner)
    uid = uid_of(owner)
    if not uid:
        raise OwnershipError(f"{owner.kind} {owner.key} has no uid: create or read it before making it an owner")
    if owner.kind == "PartialObjectMetadata":
        raise OwnershipError(
            f"{owner.key} was read as metadata alone, which does not name its kind; read the owner with client.get(KIND, key)"
        )
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
    _check_owner(owner)
    namespace = owner.key.namespace
    if namespace and owned.key.namespace and owned.key.namespace != namespace:
        raise OwnershipError(
            f"{owner.kind} {owner.key} cannot own {owned.kind} {owned.key}: an owner must be in the same namespace or"
            f" cluster-scoped; write namespace={namespace!r} in the metadata of the {owned.kind}, or leave the owner out"
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
    _check_owner(owner)
    if owner.key.namespace:
        raise OwnershipError(
            f"{owner.kind} {owner.key} cannot own {owned.kind} {owned.key}, which is cluster-scoped: the garbage"
            " collector would not find the owner and would delete the object; use a label and a finalizer"
        )


def _check_owner(owner: object) -> None:
    if not isinstance(owner, (Object, Unstructured)):
        raise TypeError(
            f"{owner!s:.100} is not an object, and cannot be an owner; pass the object that you read: owner=site"
        )


def _references(owned: Object | Unstructured) -> list[OwnerReference]:
    if isinstance(owned, Unstructured):
        trees = owned.metadata.get("ownerReferences") or ()
        return [decode(OwnerReference, msgspec.json.encode(tree)) for tree in trees]
    return owned.metadata.owner_references or []


def hashed_name(parent: Object | Unstructured | str, data: object, collisions: int = 0) -> str:
    """The name of a child that is replaced, not changed, when ``data`` changes: ``hashed_name(site, site.spec.settings)``.

    The same parent, data and count give the same name, in every process; other data give another name. The order of map
    keys and unset fields do not matter. ``data`` is anything that JSON can hold: a spec, a map, a list, a text.
    If another object already has the name, raise ``collisions`` by one and store it in the parent's status, as the
    ``collisionCount`` of a Deployment. A name has at most 63 characters: a longer parent's name is cut.
    """
    name = parent if isinstance(parent, str) else parent.key.name
    if not name:
        raise ValueError("hashed_name: the parent has no name; pass an object or a text with one")
    if collisions < 0:
        raise ValueError(f"hashed_name of {name}: collisions must be at least 0 (got {collisions})")
    content = msgspec.json.encode([name, collisions, _plain(data)], enc_hook=encode_custom, order="deterministic")
    rest, digits = int.from_bytes(blake2b(content, digest_size=8).digest()), ""
    for _ in range(_HASH_CHARACTERS):
        rest, digit = divmod(rest, len(_ALPHABET))
        digits += _ALPHABET[digit]
    return f"{name[: _NAME_CHARACTERS_MAX - _HASH_CHARACTERS - 1].rstrip('-.')}-{digits}"


def _plain(data: object) -> Any:
    """A JSON tree without nulls."""
    if isinstance(data, Unstructured):
        return _plain(data.tree)
    if isinstance(data, Struct):
        return _plain(to_json(data))
    if isinstance(data, Mapping):
        entries = cast("Mapping[str, object]", data)
        return {name: _plain(value) for name, value in entries.items() if value is not None}
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return [_plain(each) for each in cast("Sequence[object]", data)]
    return data


def is_manager_of(program: str, manager: str) -> bool:
    """Whether a field manager belongs to a program, which writes under its own name, or to a part of it: ``NAME/PART``."""
    return manager == program or manager.startswith(f"{program}/")
