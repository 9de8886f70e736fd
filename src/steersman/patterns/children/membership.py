"""Which owner an object belongs to: how children are marked, and how the mark is read.

Guarantees
- A child belongs to the one object whose uid its controller reference names. Where Kubernetes does not allow such a reference
  (a namespaced owner, and a child that is cluster-scoped or in another namespace), a label holds the uid instead.
- A name proves nothing: an object that existed before, or belongs to an earlier owner of the same name, is not ours.
- An object that another program controls is never ours, whatever its labels say.
- A label alone proves nothing either, because any program may write one. It counts only if our own field manager wrote it, under
  its current or a former name. Likewise, we *made* only the objects that our own field manager marked.
- Steersman prunes only what is marked for it: the mark must belong to the field manager of the program itself. Children that it
  keeps, declared with ``prune=False`` or adopted by their labels, are marked by a part of the program instead: ``NAME/PART``.
- If the program manages the owner references of a kind itself, only the label counts, and Steersman writes no reference. A
  controller reference that the program declared does not change that; one that another program wrote does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, TypeAlias

import msgspec

from steersman.cache import StoredView
from steersman.client import start_of_metadata
from steersman.objects import (
    Object,
    ObjectMeta,
    OwnerReference,
    Unstructured,
    encode,
    is_manager_of,
    owner_reference,
    replace,
)
from steersman.patches import pointer

#: The uid of the owner, on children that no owner reference can hold.
OWNER_UID_LABEL = "steersman.dev/owner-uid"
#: The same owner, readable for people and mappers: ``Site.web.example.com/default/home``.
OWNER_ANNOTATION = "steersman.dev/owner"
#: Where both are on an object, as JSON pointers.
LABEL_MARKS = (pointer("metadata", "labels", OWNER_UID_LABEL), pointer("metadata", "annotations", OWNER_ANNOTATION))
#: The state that declared a child, and its depth where there are several: ``replicas``, ``replicas.2``, ``2``.
STATE_LABEL = "steersman.dev/state"
#: "false" on a child that stays when no state declares it anymore.
PRUNE_ANNOTATION = "steersman.dev/prune"
#: On an object that was adopted by its labels: Steersman releases it when they no longer match, and never prunes it.
CLAIMED_ANNOTATION = "steersman.dev/claimed"

#: The parts of the program that mark children which are never pruned: declared with ``prune=False``, and adopted.
KEPT, CLAIMED = "kept-children", "claimed-children"
#: The annotation of each part. People read it, and earlier releases rely on it.
KEEPING_ANNOTATIONS = {KEPT: (PRUNE_ANNOTATION, "false"), CLAIMED: (CLAIMED_ANNOTATION, "true")}

#: What ties a child to its owner: a controller reference, a label where no reference is possible, a label beside references
#: that the program declares, or nothing.
Bond: TypeAlias = Literal["reference", "label", "label_alone", "none"]
_BY_LABEL = ("label", "label_alone")
#: The relation of an object to an owner: its child, an object without an owner, or the child of another owner.
Standing: TypeAlias = Literal["ours", "free", "other"]


def is_mark(name: str) -> bool:
    """Whether a label or an annotation of this name is one of Steersman's own marks."""
    return name.startswith("steersman.dev/")


def owner_text(owner: Object) -> str:
    """An owner as the annotation names it."""
    kind = owner.gvk().group_kind
    return f"{kind}/{owner.key.namespace}/{owner.key.name}"


def standing(metadata: ObjectMeta, uid: str, bond: Bond, managers: tuple[str, ...]) -> Standing:
    """The relation of an object to the owner with this uid, for a child with this bond."""
    controller = _controller(metadata)
    whose_label = (metadata.labels or {}).get(OWNER_UID_LABEL)
    return _standing(
        controller.uid if controller is not None else None,
        whose_label,
        uid,
        bond,
        marked=lambda of, by: marked_by(metadata, of, by, managers),
    )


def standing_of(view: StoredView, uid: str, bond: Bond) -> Standing:
    """The same for an object in the cache, without decoding it."""
    return _standing(
        view.controller_uid or None,
        view.labels.get(OWNER_UID_LABEL),
        uid,
        bond,
        marked=lambda of, by: was_marked(view, of, by),
    )


def is_far_child(view: StoredView, uid: str, namespace: str) -> bool:
    """Whether an object is a child from another namespace than its owner's: our label alone ties it to the owner's uid."""
    is_far = view.key.namespace != namespace and not view.controller_uid
    return is_far and standing_of(view, uid, "label") == "ours"


def _standing(
    controller: str | None, label: str | None, uid: str, bond: Bond, *, marked: Callable[[str, Bond], bool]
) -> Standing:
    """Decide by the controller's uid, else by the label. ``marked`` tells whether our field manager wrote the mark of a uid."""
    if label and label != uid and marked(label, "label"):
        return "other"  # the program declares the references itself, and may name a controller other than the owner
    if controller == uid:
        return "ours"
    if controller is not None and not (bond == "label_alone" and label and marked(controller, "reference")):
        return "other"
    if not label:
        return "free"
    if label != uid:
        return "other"
    return "ours" if bond != "none" and marked(uid, "label") else "free"


def marked_by(metadata: ObjectMeta, uid: str, bond: Bond, managers: tuple[str, ...]) -> bool:
    """Whether one of these field managers wrote the mark of an object, by apply or update."""
    mark = _field_of(uid, bond)
    return any(
        mark in bytes(entry.fields_v1)
        for entry in metadata.managed_fields or ()
        if any(is_manager_of(manager, entry.manager or "") for manager in managers)
    )


def was_marked(view: StoredView, uid: str, bond: Bond) -> bool:
    """The same for an object in the cache, which keeps the entries of our field manager's current and former names."""
    return _field_of(uid, bond) in view.stored.managed_fields


def was_made(view: StoredView, uid: str) -> bool:
    """Whether our own field manager wrote the mark of this owner, a reference or a label, on a cached object."""
    by_label = view.labels.get(OWNER_UID_LABEL) == uid and was_marked(view, uid, "label")
    return by_label or was_marked(view, uid, "reference")


class _Entry(msgspec.Struct, gc=False):
    """One entry of ``managedFields``."""

    manager: str = ""
    fields_v1: msgspec.Raw = msgspec.field(name="fieldsV1", default=msgspec.Raw(b"{}"))


_decoder = msgspec.json.Decoder(tuple[_Entry, ...])


@lru_cache(maxsize=128)
def _entries(managed_fields: bytes) -> tuple[_Entry, ...]:
    """The entries; cached, because a reconcile asks several times whether an object is kept, and by which part."""
    return _decoder.decode(managed_fields)


def keeping_part(manager: str) -> str:
    """The part of a program that keeps children, from the name of a field manager; empty for any other name."""
    part = manager.rpartition("/")[2]
    return part if part in KEEPING_ANNOTATIONS else ""


def managers_of(view: StoredView) -> tuple[str, ...]:
    """The field managers of this program, and of its parts, that hold fields of a cached object."""
    managed = view.stored.managed_fields
    return tuple(dict.fromkeys(entry.manager for entry in _entries(managed))) if managed else ()


def markers_of(view: StoredView, uid: str) -> tuple[str, ...]:
    """The field managers of this program, and of its parts, that hold the mark of this owner on a cached object."""
    managed = view.stored.managed_fields
    if not managed:
        return ()
    by_label = view.labels.get(OWNER_UID_LABEL) == uid
    marks = [_field_of(uid, "reference"), *((_field_of(uid, "label"),) if by_label else ())]
    return tuple(
        dict.fromkeys(
            entry.manager for entry in _entries(managed) if any(mark in bytes(entry.fields_v1) for mark in marks)
        )
    )


def kept_by(view: StoredView, uid: str) -> str:
    """The part that keeps a child: `CLAIMED`, `KEPT`, or empty for a child that is pruned when no state declares it.

    An annotation is enough to keep a child, and so is the absence of a mark by the program itself.
    """
    markers = markers_of(view, uid)
    parts = {keeping_part(marker) for marker in markers}
    annotations = view.metadata.annotations or {}
    if CLAIMED in parts or CLAIMED_ANNOTATION in annotations:
        return CLAIMED
    if annotations.get(PRUNE_ANNOTATION) == "false" or (markers and "" not in parts):
        return KEPT
    return ""


def _field_of(uid: str, bond: Bond) -> bytes:
    """The name of a mark in ``managedFields``."""
    return b'"f:%b"' % OWNER_UID_LABEL.encode() if bond in _BY_LABEL else rb'"k:{\"uid\":\"%b\"}"' % uid.encode()


def whose(metadata: ObjectMeta, owner: Object) -> str:
    """The owner of an object that is not ours, as text that follows the object's name."""
    controller = _controller(metadata)
    if controller is not None:
        if (controller.kind, controller.name) == (owner.kind, owner.metadata.name):
            return f"is controlled by an earlier {controller.kind} {controller.name} (uid {controller.uid})"
        return f"is controlled by {controller.kind} {controller.name}"
    marked = (metadata.labels or {}).get(OWNER_UID_LABEL)
    if marked:
        if marked == owner.metadata.uid:
            return "has the label of this owner, but this program did not set it"
        named = (metadata.annotations or {}).get(OWNER_ANNOTATION, "")
        kind, _, key = named.partition("/")
        return f"belongs to {kind.partition('.')[0]} {key} (uid {marked})" if key else f"belongs to the owner {marked}"
    return "has no owner"


def _controller(metadata: ObjectMeta) -> OwnerReference | None:
    return next((reference for reference in metadata.owner_references or () if reference.controller), None)


def state_of(label: str) -> str:
    """The state in a state label; empty without one."""
    state = label.partition(".")[0]
    return "" if state.isdecimal() else state


def depth_of(label: str) -> int:
    """The layer of a child within its state, from its state label; 1 is the first."""
    last = label.rpartition(".")[2]
    return int(last) if last.isdecimal() else 1


def state_label(state: str, depth: int, *, labels: bool) -> str:
    """The state label of a child; empty if it gets none."""
    if not labels:
        return str(depth) if depth > 1 else ""
    return f"{state}.{depth}" if depth > 1 else state


def is_of_predecessor(metadata: ObjectMeta, owner: Object) -> bool:
    """Whether a label names an earlier owner of the same name. It must be gone, because names are unique at any time."""
    label = (metadata.labels or {}).get(OWNER_UID_LABEL)
    named = (metadata.annotations or {}).get(OWNER_ANNOTATION)
    return bool(label) and label != owner.metadata.uid and named == owner_text(owner)


class Marks:
    """The marks for the children of one owner, computed once for all of them."""

    __slots__ = ("_encoded_reference", "_reference", "_text", "owner", "uid")

    def __init__(self, owner: Object) -> None:
        self.owner = owner
        self._reference = owner_reference(owner)
        self.uid = self._reference.uid
        self._text = owner_text(owner)
        self._encoded_reference = b""

    def inherits(self, view: StoredView) -> bool:
        """Whether our field manager created an object for an earlier owner of this name, and it outlived that owner."""
        controller = view.controller_uid
        free = not controller or was_marked(view, controller, "reference")
        return free and was_marked(view, self.uid, "label") and is_of_predecessor(view.metadata, self.owner)

    def marked(
        self, child: Object | Unstructured, namespace: str, *, bond: Bond, state_label: str, prune: bool
    ) -> Object | Unstructured:
        """A copy of a child with the marks of its owner. Copies only what changes, and leaves the child as it is."""
        labels: dict[str, str] = {}
        annotations: dict[str, str] = {}
        if state_label:
            labels[STATE_LABEL] = state_label
        if not prune:
            annotations[PRUNE_ANNOTATION] = "false"
        if bond in _BY_LABEL:
            labels[OWNER_UID_LABEL] = self.uid
            annotations[OWNER_ANNOTATION] = self._text
        reference = bond == "reference"
        if isinstance(child, Unstructured):
            return self._marked_tree(child, namespace, labels, annotations, reference=reference)
        metadata = child.metadata
        return replace(
            child,
            metadata=replace(
                metadata,
                namespace=namespace or None,
                labels={**(metadata.labels or {}), **labels} if labels else metadata.labels,
                annotations={**(metadata.annotations or {}), **annotations} if annotations else metadata.annotations,
                owner_references=[*(metadata.owner_references or ()), self._reference]
                if reference
                else metadata.owner_references,
            ),
        )

    def marked_bytes(self, child: Object, encoded: bytes, *, state_label: str) -> bytes | None:
        """An encoded child with the owner reference and the state label, in any order of fields.

        None if the bytes alone do not tell where the marks belong.
        """
        metadata, start = child.metadata, start_of_metadata(encoded)
        if start < 0 or metadata.owner_references is not None:
            return None
        if not self._encoded_reference:
            self._encoded_reference = b'"ownerReferences":[%b],' % encode(self._reference)
        head, tail = encoded[:start] + self._encoded_reference, encoded[start:]
        if not state_label:
            return head + tail
        mark = b'"%b":"%b"' % (STATE_LABEL.encode(), state_label.encode())
        labels = metadata.labels
        if labels is None:
            return b'%b"labels":{%b},%b' % (head, mark, tail)
        if not labels or STATE_LABEL in labels:
            return None
        # No field of the metadata before its labels holds an object.
        before, _, after = tail.partition(b'"labels":{')
        return b'%b%b"labels":{%b,%b' % (head, before, mark, after)

    def _marked_tree(
        self,
        child: Unstructured,
        namespace: str,
        labels: dict[str, str],
        annotations: dict[str, str],
        *,
        reference: bool,
    ) -> Unstructured:
        metadata = {**child.metadata}
        metadata.pop("namespace", None)
        if namespace:
            metadata["namespace"] = namespace
        if labels:
            metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
        if annotations:
            metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
        if reference:
            own = {
                "apiVersion": self._reference.api_version,
                "kind": self._reference.kind,
                "name": self._reference.name,
                "uid": self.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
            metadata["ownerReferences"] = [*(metadata.get("ownerReferences") or ()), own]
        # Metadata first: a look at the bytes then shows where the object's own metadata begins.
        head = {"apiVersion": child.api_version, "kind": child.kind, "metadata": metadata}
        return Unstructured({**head, **{name: value for name, value in child.tree.items() if name not in head}})
