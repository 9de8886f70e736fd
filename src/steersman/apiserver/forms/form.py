"""A form of answer: how one object, a list, an event and a bookmark of a resource are printed.

Guarantees
- Whole objects are copies of stored bytes, without decoding.
- Forms with the same `key` print the same bytes, so that watchers can share them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

import msgspec

from steersman.apiserver.documents import joined_items, printed_items, served, whole
from steersman.apiserver.registry.builtin.strategy import definition_of
from steersman.apiserver.registry.builtin.types.canonical_form import empty, knows
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.storage import Record

_encode = msgspec.json.Encoder().encode


class ShardInfo(msgspec.Struct, frozen=True):
    """The shard of a list."""

    selector: str


class ListMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The metadata of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None
    #: Only lists of whole built-in objects show it.
    shard_info: ShardInfo | None = None


class Form:
    """How objects of a resource are printed."""

    #: Distinguishes forms that print different bytes.
    key: Hashable = None

    def __init__(self, definition: Definition) -> None:
        self.definition = definition

    def one(self, record: Record, *, revision: int = 0) -> bytes:
        """One object, at its own revision or at that of an event."""
        raise NotImplementedError

    def head(self, meta: ListMetadata) -> bytes:
        """A list before its first item: its last field holds the items."""
        raise NotImplementedError

    def items(self, records: Iterable[Record]) -> Iterator[bytes]:
        """Objects as items of a list."""
        raise NotImplementedError

    def joined(self, records: Iterable[Record], before: bytes = b"", after: bytes = b"") -> bytes:
        """Objects as items of a list, separated by commas, between two texts."""
        return b"".join((before, b",".join(self.items(records)), after))

    def page(self, records: Iterable[Record], meta: ListMetadata) -> bytes:
        """A whole list."""
        return self.joined(records, self.head(meta), b"]}\n")

    def bookmark(self, revision: int, *, ends_initial: bool) -> bytes:
        """An object that holds only a revision."""
        raise NotImplementedError

    def next_event(self) -> Form:
        """The form of the events after the first."""
        return self


class WholeForm(Form):
    """Whole objects."""

    def __init__(self, definition: Definition) -> None:
        super().__init__(definition)
        self.key = None if definition.conversion is None else definition.gvk

    def one(self, record: Record, *, revision: int = 0) -> bytes:
        if self.definition.on_read is not None and not revision:
            record = self.definition.on_read(record)
        return whole(served(self.definition, record), revision=revision)

    def head(self, meta: ListMetadata) -> bytes:
        definition = self.definition
        return b'{"kind":"%b","apiVersion":"%b","metadata":%b,"items":[' % (
            definition.list_kind.encode(),
            definition.gvk.api_version.encode(),
            _encode(_told_of_custom(meta) if definition.custom else meta),
        )

    def items(self, records: Iterable[Record]) -> Iterator[bytes]:
        return printed_items(self._served(records), kind=self._kind())

    def joined(self, records: Iterable[Record], before: bytes = b"", after: bytes = b"") -> bytes:
        return joined_items(self._served(records), before, after, kind=self._kind())

    def _served(self, records: Iterable[Record]) -> Iterable[Record]:
        definition = self.definition
        if definition.conversion is not None:
            records = (served(definition, record) for record in records)
        return records if definition.on_read is None else map(definition.on_read, records)

    def _kind(self) -> str:
        """What an item begins with: those of built-in kinds omit their kind."""
        gvk = self.definition.gvk
        return f'{{"kind":"{gvk.kind}","apiVersion":"{gvk.api_version}",' if self.definition.custom else ""

    def bookmark(self, revision: int, *, ends_initial: bool) -> bytes:
        gvk = self.definition.gvk
        blank = blank_object(self.definition)
        # Some kinds store fields of their own as annotations, even if they are not set.
        noted = {"deprecated.daemonset.template.generation": "0"} if gvk.kind == "DaemonSet" else {}
        return print_bookmark(
            gvk.kind, gvk.api_version, revision, ends_initial=ends_initial, blank=blank, annotations=noted
        )


def _told_of_custom(meta: ListMetadata) -> Tree:
    """The metadata of a list of custom resources, which always holds ``continue``."""
    metadata: Tree = {"continue": meta.continue_}
    if meta.remaining_item_count is not None:
        metadata["remainingItemCount"] = meta.remaining_item_count
    return metadata | {"resourceVersion": meta.resource_version}


class BetaForm(Form):
    """Another form, labeled with the older version of its group, which is otherwise the same."""

    def __init__(self, form: Form) -> None:
        super().__init__(form.definition)
        self._form = form
        self.key = ("v1beta1", form.key)

    def one(self, record: Record, *, revision: int = 0) -> bytes:
        return _as_beta(self._form.one(record, revision=revision))

    def head(self, meta: ListMetadata) -> bytes:
        return _as_beta(self._form.head(meta))

    def items(self, records: Iterable[Record]) -> Iterator[bytes]:
        return map(_as_beta, self._form.items(records))

    def page(self, records: Iterable[Record], meta: ListMetadata) -> bytes:
        return _as_beta(self._form.page(records, meta))

    def bookmark(self, revision: int, *, ends_initial: bool) -> bytes:
        return _as_beta(self._form.bookmark(revision, ends_initial=ends_initial))

    def next_event(self) -> Form:
        following = self._form.next_event()
        return self if following is self._form else BetaForm(following)


def _as_beta(printed: bytes) -> bytes:
    return printed.replace(b'"apiVersion":"meta.k8s.io/v1"', b'"apiVersion":"meta.k8s.io/v1beta1"')


def blank_object(definition: Definition) -> Tree:
    """An empty object of a kind."""
    name = definition_of(definition.gvk)
    if definition.custom or not knows(name):
        return {}
    blank = {field: value for field, value in empty(name).items() if field not in {"kind", "apiVersion", "metadata"}}
    if definition.scale is not None and "spec" in blank:
        # kube-apiserver's internal form of these kinds has no absent number.
        blank["spec"] = {"replicas": 0} | blank["spec"]
    return blank


def print_bookmark(
    kind: str,
    api_version: str,
    revision: int,
    *,
    ends_initial: bool,
    blank: Tree | None = None,
    annotations: Tree | None = None,
) -> bytes:
    """The object of a bookmark."""
    metadata: dict[str, object] = {"resourceVersion": str(revision)}
    shown = (annotations or {}) | ({"k8s.io/initial-events-end": "true"} if ends_initial else {})
    if shown:
        metadata["annotations"] = shown
    return _encode({"kind": kind, "apiVersion": api_version, "metadata": metadata} | (blank or {}))
