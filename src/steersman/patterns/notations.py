"""Children that the server writes down otherwise than they were declared, and how the next process knows them again.

A default inside of a list, a value that is dropped: whether such an object still is what was declared cannot be told by comparing the
two. Such a child says in an annotation what it was made from.

Guarantees
- Only children of kinds for which it was seen to be needed carry the annotation.
- It costs one more request for the first of them, and none for those after it.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from steersman.client.bindings import tree_of
from steersman.controller.applies import INTENT_ANNOTATION
from steersman.objects import GroupKind, Object, Unstructured, replace

#: So many children of a kind are looked at; all of a controller's are much alike.
_LOOKED_AT = 3


class Notations:
    """What was learned about the kinds of one controller."""

    def __init__(self) -> None:
        self._odd: set[GroupKind] = set()
        self._plain: dict[GroupKind, int] = {}

    def is_odd(self, kind: GroupKind) -> bool:
        """Whether children of a kind are to say what they were made from."""
        return kind in self._odd

    def is_undecided(self, kind: GroupKind) -> bool:
        """Whether another child of the kind is to be looked at."""
        return kind not in self._odd and self._plain.get(kind, 0) < _LOOKED_AT

    def learn(self, kind: GroupKind, *, odd: bool) -> None:
        """One was looked at."""
        if odd:
            self._odd.add(kind)
        else:
            self._plain[kind] = self._plain.get(kind, 0) + 1


def says_what_it_is(raw: bytes) -> bool:
    """Whether an object carries the annotation."""
    return INTENT_ANNOTATION.encode() in raw


def saying_what_it_is(child: Object | Unstructured) -> Object | Unstructured:
    """A copy of a child that says what it is made from."""
    # sorted: a program may name the keys of a map in any order
    made_from = msgspec.json.encode(tree_of(child), order="deterministic")
    note = {INTENT_ANNOTATION: blake2b(made_from, digest_size=8).hexdigest()}
    if isinstance(child, Unstructured):
        metadata = child.metadata
        annotations: dict[str, str] = {**(metadata.get("annotations") or {}), **note}
        return Unstructured({**child.tree, "metadata": {**metadata, "annotations": annotations}})
    annotations = {**(child.metadata.annotations or {}), **note}
    return replace(child, metadata=replace(child.metadata, annotations=annotations))
