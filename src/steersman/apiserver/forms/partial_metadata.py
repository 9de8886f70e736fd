"""Objects as metadata only: PartialObjectMetadata and PartialObjectMetadataList."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

import msgspec

from steersman.apiserver.documents import metadata_of
from steersman.apiserver.errors import not_this_form
from steersman.apiserver.forms.form import Form, ListMetadata, print_bookmark
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.storage import Record

_encode = msgspec.json.Encoder().encode
_API_VERSION = "meta.k8s.io/v1"


def partial(definition: Definition, record: Record, *, revision: int = 0) -> bytes:
    """One object as its metadata."""
    metadata = metadata_of(record, revision=revision)
    if definition.hidden_annotations:
        metadata = _without(metadata, definition.hidden_annotations)
    return b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":%b}' % metadata


def _without(metadata: bytes, hidden: frozenset[str]) -> bytes:
    tree: Tree = msgspec.json.decode(metadata)
    shown = {name: value for name, value in tree.get("annotations", {}).items() if name not in hidden}
    tree.pop("annotations", None)
    return _encode(tree | ({"annotations": shown} if shown else {}))


class PartialForm(Form):
    """Metadata only."""

    key: Hashable = "PartialObjectMetadata"

    def __init__(self, definition: Definition, *, lists: bool) -> None:
        super().__init__(definition)
        self._lists = lists
        if definition.hidden_annotations:
            self.key = ("PartialObjectMetadata", definition.gvk)

    def one(self, record: Record, *, revision: int = 0) -> bytes:
        self.check_one()
        return partial(self.definition, record, revision=revision)

    def check_one(self) -> None:
        """406 if this is a form for lists only."""
        if self._lists:
            what = f"(*{_internal(self.definition)}.{self.definition.gvk.kind})"
            raise not_this_form(
                f"you requested PartialObjectMetadataList, but the requested object is not a list {what}"
            )

    def head(self, meta: ListMetadata) -> bytes:
        """A list before its first item; 406 if this is a form for single objects only."""
        if not self._lists:
            kind = "UnstructuredList" if self.definition.custom else self.definition.list_kind
            what = f"(*{_internal(self.definition)}.{kind})"
            raise not_this_form(f"you requested PartialObjectMetadata, but the requested object is a list {what}")
        return b'{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":%b,"items":[' % _encode(
            msgspec.structs.replace(meta, shard_info=None)
        )

    def items(self, records: Iterable[Record]) -> Iterator[bytes]:
        return (partial(self.definition, record) for record in records)

    def page(self, records: Iterable[Record], meta: ListMetadata) -> bytes:
        printed = super().page(records, meta)
        # kube-apiserver prints null only here.
        return printed.removesuffix(b"[]}\n") + b"null}\n" if printed.endswith(b":[]}\n") else printed

    def bookmark(self, revision: int, *, ends_initial: bool) -> bytes:
        return print_bookmark("PartialObjectMetadata", _API_VERSION, revision, ends_initial=ends_initial)


def _internal(definition: Definition) -> str:
    """kube-apiserver's package name for a group's types."""
    if definition.custom:
        return "unstructured"
    return definition.gvk.group.partition(".")[0] or "core"
