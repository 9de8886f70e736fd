"""An annotation with the hash of the intent, for kinds whose objects the server normalizes.

A default inside a list or a dropped value makes the stored object differ from the intent, so comparing the two proves nothing.
Children of such kinds carry the hash of the intent that they were made from. The next process compares hashes.

Guarantees
- Only children of kinds that the server was seen to normalize carry the annotation, and all that are written from then
  on do: also those whose write was on its way.
- Every write is examined until then: the first child that the server normalizes may come after many that it does not.
- It costs one more request for that child and those written at the same time, and none for later ones.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from steersman.controller import INTENT_ANNOTATION
from steersman.objects import GroupKind, Object, Unstructured, replace, tree_of


class NormalizedKinds:
    """What one controller has learned about the normalization of its kinds."""

    def __init__(self) -> None:
        self._normalized: set[GroupKind] = set()

    def is_normalized(self, kind: GroupKind) -> bool:
        """Whether children of a kind carry the annotation."""
        return kind in self._normalized

    def learn(self, kind: GroupKind) -> None:
        """Record that the server normalized a child of the kind."""
        self._normalized.add(kind)


def has_intent_annotation(raw: bytes) -> bool:
    """Whether an object carries the annotation."""
    return INTENT_ANNOTATION.encode() in raw


def with_intent_annotation(child: Object | Unstructured) -> Object | Unstructured:
    """A copy of a child with the hash of its intent."""
    # Sorted, because a program may build a map in any order.
    made_from = msgspec.json.encode(tree_of(child), order="deterministic")
    note = {INTENT_ANNOTATION: blake2b(made_from, digest_size=8).hexdigest()}
    if isinstance(child, Unstructured):
        metadata = child.metadata
        annotations: dict[str, str] = {**(metadata.get("annotations") or {}), **note}
        return Unstructured({**child.tree, "metadata": {**metadata, "annotations": annotations}})
    annotations = {**(child.metadata.annotations or {}), **note}
    return replace(child, metadata=replace(child.metadata, annotations=annotations))
