"""Whose child an object is: how children are marked, and how the mark is read.

Guarantees
- A child belongs to the one object whose uid its controller reference names. Where Kubernetes allows no such reference
  (the owner lives in a namespace, the child in another one or in none) a label names the uid instead.
- A name proves nothing: an object that was there before, or belongs to an earlier owner of the same name, is not ours.
- What somebody else controls is never ours, whatever its labels say.
- A label proves nothing either, as anybody may write one: it counts only where a reference is impossible, and only if it was
  written under our own field manager. Likewise we have *made* only what our own field manager gave its mark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from steersman.cache import View
from steersman.objects import Object, ObjectMeta, OwnerReference, Unstructured, owner_reference, replace
from steersman.objects.field_managers import is_manager_of

#: The uid of the owner, on children that no owner reference can hold.
OWNER_UID_LABEL = "steersman.dev/owner-uid"
#: The same owner as people and mappers read it: ``Site.web.example.com/default/home``.
OWNER_ANNOTATION = "steersman.dev/owner"
#: The state that declared a child, and its depth where there are several: ``replicas``, ``replicas.2``, ``2``.
PHASE_LABEL = "steersman.dev/phase"
#: "false" on a child that stays when it is declared no longer.
PRUNE_ANNOTATION = "steersman.dev/prune"

#: By what a child is ours: a controller reference, a label, or nothing at all.
Bond: TypeAlias = Literal["reference", "label", "none"]
#: What an object is to an owner: its own, anybody's to take, or somebody else's.
Standing: TypeAlias = Literal["ours", "free", "other"]


def owner_text(owner: Object) -> str:
    """An owner as the annotation names it."""
    kind = owner.gvk().group_kind
    return f"{kind}/{owner.key.namespace}/{owner.key.name}"


def standing(metadata: ObjectMeta, uid: str, bond: Bond, manager: str) -> Standing:
    """What an object is to the owner with this uid, if it is to belong to it by this bond."""
    controller = _controller(metadata)
    whose_label = (metadata.labels or {}).get(OWNER_UID_LABEL)
    return _standing(
        controller.uid if controller is not None else None,
        whose_label,
        uid,
        proven=lambda: bond == "label" and marked_by(metadata, uid, bond, manager),
    )


def standing_of(view: View, uid: str, bond: Bond) -> Standing:
    """The same, of an object in the cache, without decoding it."""
    return _standing(
        view.controller_uid or None,
        view.labels.get(OWNER_UID_LABEL),
        uid,
        proven=lambda: bond == "label" and was_marked(view, uid, bond),
    )


def _standing(controller: str | None, label: str | None, uid: str, *, proven: Callable[[], bool]) -> Standing:
    """By the uid of who controls it, else by the label, which must be proven to be ours."""
    if controller is not None:
        return "ours" if controller == uid else "other"
    if not label:
        return "free"
    if label != uid:
        return "other"
    return "ours" if proven() else "free"


def marked_by(metadata: ObjectMeta, uid: str, bond: Bond, manager: str) -> bool:
    """Whether a field manager gave an object its mark: by whatever verb, one of its entries owns it."""
    mark = _field_of(uid, bond)
    return any(
        mark in bytes(entry.fields_v1)
        for entry in metadata.managed_fields or ()
        if is_manager_of(manager, entry.manager or "")
    )


def was_marked(view: View, uid: str, bond: Bond) -> bool:
    """The same, of an object in the cache, which keeps the entries of our own manager alone."""
    return _field_of(uid, bond) in view.stored.managed_fields


def _field_of(uid: str, bond: Bond) -> bytes:
    """How ``managedFields`` name a mark."""
    return b'"f:%b"' % OWNER_UID_LABEL.encode() if bond == "label" else rb'"k:{\"uid\":\"%b\"}"' % uid.encode()


def whose(metadata: ObjectMeta, owner: Object) -> str:
    """To whom an object belongs, in words that follow its name; for objects that are not ours."""
    controller = _controller(metadata)
    if controller is not None:
        if (controller.kind, controller.name) == (owner.kind, owner.metadata.name):
            return f"is controlled by an earlier {controller.kind} {controller.name} (uid {controller.uid})"
        return f"is controlled by {controller.kind} {controller.name}"
    marked = (metadata.labels or {}).get(OWNER_UID_LABEL)
    if marked:
        if marked == owner.metadata.uid:
            return "carries the label of this owner, but this program has not written it"
        named = (metadata.annotations or {}).get(OWNER_ANNOTATION, "")
        kind, _, key = named.partition("/")
        return f"belongs to {kind.partition('.')[0]} {key} (uid {marked})" if key else f"belongs to the owner {marked}"
    return "belongs to nobody"


def _controller(metadata: ObjectMeta) -> OwnerReference | None:
    return next((each for each in metadata.owner_references or () if each.controller), None)


def state_of(label: str) -> str:
    """The state that a phase label names; empty for none."""
    state = label.partition(".")[0]
    return "" if state.isdecimal() else state


def depth_of(label: str) -> int:
    """How many layers of children a phase label puts under this one, itself included."""
    last = label.rpartition(".")[2]
    return int(last) if last.isdecimal() else 1


def phase_label(state: str, depth: int, *, labels: bool) -> str:
    """The phase label of a child; empty for none."""
    if not labels:
        return str(depth) if depth > 1 else ""
    return f"{state}.{depth}" if depth > 1 else state


class Marks:
    """What is written on the children of one owner, made once for all of them."""

    __slots__ = ("_reference", "_text", "owner", "uid")

    def __init__(self, owner: Object) -> None:
        self.owner = owner
        self._reference = owner_reference(owner)
        self.uid = self._reference.uid
        self._text = owner_text(owner)

    def marked(
        self, child: Object | Unstructured, namespace: str, *, bond: Bond, phase: str, prune: bool
    ) -> Object | Unstructured:
        """A copy of a child that says whose it is; only what changes is copied, and the child itself stays as it is."""
        labels: dict[str, str] = {}
        annotations: dict[str, str] = {}
        if phase:
            labels[PHASE_LABEL] = phase
        if not prune:
            annotations[PRUNE_ANNOTATION] = "false"
        if bond == "label":
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
        # Metadata before the rest: where an object's own metadata begins is then told by a look at its bytes.
        head = {"apiVersion": child.api_version, "kind": child.kind, "metadata": metadata}
        return Unstructured({**head, **{name: value for name, value in child.tree.items() if name not in head}})
