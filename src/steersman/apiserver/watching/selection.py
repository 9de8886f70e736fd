"""The objects of a resource that a list, a watch or a deletion selects.

Guarantees
- A selection by namespace and name checks only keys; labels and fields are decoded only if needed.
- An invalid selector, or one for a field that a kind does not offer, is rejected with kube-apiserver's message.
"""

from __future__ import annotations

from collections.abc import Callable

from steersman.apiserver.errors import bad_request
from steersman.apiserver.registry.definition import Definition
from steersman.apiserver.storage import Record
from steersman.apiserver.watching.matchers import FieldMatcher, LabelMatcher, ShardMatcher
from steersman.apiserver.watching.selector_errors import field_problem, label_problem
from steersman.apiserver.watching.watched_change import WatchedChange, fields_of, is_converted, labels_of, uid_of
from steersman.apiserver.watching.window import Window
from steersman.errors import SelectorError
from steersman.objects import FieldSelector, Selector
from steersman.wire import ShardSelector, namespace_hash, shard_hash

_ALWAYS = ("metadata.name", "metadata.namespace")


class Selection:
    """Objects of one resource by namespace, name, labels, fields and shard."""

    __slots__ = (
        *("_definition", "_field_matcher", "_fields", "_label_matcher", "_labels", "_shard_matcher"),
        *("name", "prefix", "shards"),
    )

    def __init__(
        self, definition: Definition, *, namespace: str = "", name: str = "", labels: str = "", fields: str = ""
    ) -> None:
        self._definition = definition
        #: The selected shard, which `select_shards` sets.
        self.shards: ShardSelector | None = None
        self._shard_matcher: ShardMatcher | None = None
        self._labels = _read_labels(labels)
        self._label_matcher = None if self._labels is None else LabelMatcher(self._labels)
        self._fields = _read_fields(definition, fields)
        self._field_matcher = None if self._fields is None else FieldMatcher(self._fields)
        if name and self._fields is not None and self._fields.required_value("metadata.name") != name:
            raise bad_request("fieldSelector metadata.name doesn't match requested name")
        #: The key prefix of the objects.
        self.prefix = definition.prefix
        if definition.namespaced and namespace:
            self.prefix += f"{namespace}/"
        if self._fields is not None:
            name = name or self._fields.required_value("metadata.name") or ""
        #: The selected name, if it is a single one.
        self.name = name

    def select_shards(self, shards: ShardSelector | None) -> None:
        """Select a shard, or all. kube-apiserver reads that selector when everything else is checked."""
        self.shards = shards
        self._shard_matcher = None if shards is None else ShardMatcher(shards)

    @property
    def by_content(self) -> bool:
        """Whether the objects themselves must be checked, not only their keys."""
        return self.has_selectors or self.shards is not None or bool(self.name)

    @property
    def has_selectors(self) -> bool:
        """Whether labels or fields are selected. Without them, kube-apiserver counts the remaining objects of a list."""
        return self._labels is not None or self._fields is not None

    @property
    def has_index(self) -> bool:
        """Whether kube-apiserver finds the objects by an index."""
        index = self._definition.indexed_field
        return bool(index) and self._fields is not None and self._fields.required_value(index) is not None

    def is_indexed(self, record: Record) -> bool:
        """Whether the index contains an object."""
        index = self._definition.indexed_field
        assert self._fields is not None, "nothing is found by an index unless a field is selected"
        return fields_of(self._definition, record).get(index, "") == self._fields.required_value(index)

    def takes_all(self, key: str) -> bool:
        """Whether a key has the selected namespace and name."""
        return key.startswith(self.prefix) and (not self.name or key.endswith(f"/{self.name}"))

    def matches(self, record: Record, window: Window | None) -> bool:
        """Whether an object below `prefix` is selected; a window caches the labels of current objects."""
        if self.name and not record.key.endswith(f"/{self.name}"):
            return False
        if not self._in_shard(record.key, lambda: shard_hash(uid_of(record))):
            return False
        if self._label_matcher is not None:
            is_cached = window is not None and not is_converted(self._definition)
            labels = window.labels(record) if window is not None and is_cached else labels_of(record)
            if not self._label_matcher.matches(labels):
                return False
        return self._field_matcher is None or self._field_matcher.matches(
            self._reader(record.key, lambda: fields_of(self._definition, record))
        )

    def matches_change(self, change: WatchedChange, *, previous: bool) -> bool:
        """Whether an object is selected after a change, or was before it."""
        if (change.previous if previous else change.record) is None or not self.takes_all(change.key):
            return False
        if not self.in_shard(change):
            return False
        if self._label_matcher is not None and not self._label_matcher.matches(change.labels(previous=previous)):
            return False
        if self._field_matcher is None:
            return True
        definition = self._definition
        return self._field_matcher.matches(
            self._reader(change.key, lambda: change.fields(definition, previous=previous))
        )

    def in_shard(self, change: WatchedChange) -> bool:
        """Whether the changed object is in the selected shard, in which it always stays."""
        return self._in_shard(change.key, lambda: change.uid_hash)

    def _in_shard(self, key: str, uid_hash: Callable[[], int]) -> bool:
        shards = self._shard_matcher
        return shards is None or shards.takes(
            namespace_hash(self._namespace(key)) if shards.by_namespace else uid_hash()
        )

    def _namespace(self, key: str) -> str:
        return key.split("/")[2] if self._definition.namespaced else ""

    def _reader(self, key: str, others: Callable[[], dict[str, str]]) -> Callable[[str], str]:
        known: dict[str, str] | None = None

        def read(field: str) -> str:
            nonlocal known
            if field == "metadata.name":
                return key.rpartition("/")[2]
            if field == "metadata.namespace":
                return self._namespace(key)
            if known is None:
                known = others()
            return known.get(field, "")

        return read


def _read_labels(text: str) -> Selector | None:
    if not text:
        return None
    try:
        selector = Selector.parse(text)
    except SelectorError as error:
        raise bad_request(label_problem(text, error)) from None
    return selector or None


def check_syntax(labels: str, fields: str) -> None:
    """400 for invalid selectors, before any other check of a request."""
    _read_labels(labels)
    if fields and not fields.startswith(("=", "!=")):
        _parse_fields(fields)


def _parse_fields(text: str) -> FieldSelector:
    try:
        return FieldSelector.parse(text)
    except SelectorError:
        raise bad_request(field_problem(text)) from None


def _read_fields(definition: Definition, text: str) -> FieldSelector | None:
    if not text:
        return None
    if text.startswith(("=", "!=")):
        raise _unknown_field(definition, "")
    selector = _parse_fields(text)
    for requirement in selector.requirements:
        if requirement.field not in _ALWAYS and requirement.field not in definition.selectable:
            raise _unknown_field(definition, requirement.field)
    return selector or None


def _unknown_field(definition: Definition, name: str) -> Exception:
    if definition.gvk.group == "batch" and definition.selectable:
        return bad_request(f'field label "{name}" not supported for {definition.gvk.kind}')
    if definition.custom or definition.selectable:
        return bad_request(f"field label not supported: {name}")
    return bad_request(f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"')
