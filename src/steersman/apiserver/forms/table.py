"""Objects as rows of a table, as kubectl shows them.

Guarantees
- A kind without its own columns has the engine's defaults: its name and its creation time.
- In a watch only the first table has column definitions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import msgspec

from steersman.apiserver.documents import decode_stored, served, whole
from steersman.apiserver.forms.form import Form, ListMetadata, blank_object
from steersman.apiserver.forms.partial_metadata import partial
from steersman.apiserver.registry.ages import since
from steersman.apiserver.registry.definition import Column, Definition, Tree
from steersman.apiserver.storage import Record
from steersman.wire import Table, TableColumn, TableRow, TableRowCondition, print_row, print_table

_NAME = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
_CREATED = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed "
    "to be set in happens-before order across separate operations. Clients may not set this value. It is represented "
    "in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)

#: How a list without items ends.
_NO_ROWS = b'"rows":[]}\n'
#: Go's zero time.
_ZERO_TIME = "0001-01-01T00:00:00Z"


def name_cell(obj: Tree) -> Any:
    """The cell of the column Name."""
    return obj["metadata"]["name"]


def created_cell(obj: Tree) -> Any:
    """The cell of the column Created At."""
    return obj["metadata"].get("creationTimestamp", "")


def age_cell(obj: Tree) -> Any:
    """The cell of the column Age."""
    return since(obj["metadata"].get("creationTimestamp"))


NAME_COLUMN = Column(name="Name", format="name", description=_NAME, cell=name_cell)
CREATED_COLUMN = Column(name="Created At", type="date", description=_CREATED, cell=created_cell)
#: For kinds with their own columns.
AGE_COLUMN = Column(name="Age", description=_CREATED, cell=age_cell)
#: A custom resource's Age is a date column; kubectl and the engine print it the same way.
CUSTOM_AGE_COLUMN = Column(name="Age", type="date", description=_CREATED, cell=age_cell)


def columns_of(definition: Definition) -> tuple[Column, ...]:
    """The columns of a kind's tables."""
    if definition.custom:
        return (NAME_COLUMN, *definition.columns)
    return definition.columns or (NAME_COLUMN, CREATED_COLUMN)


class TableForm(Form):
    """Rows of a table; `include` selects how much of the object each row holds: "Metadata", "Object" or "None"."""

    def __init__(self, definition: Definition, *, include: str, headers: bool = True) -> None:
        super().__init__(definition)
        self._include = include
        self._headers = headers
        self.key: Hashable = ("Table", definition.gvk, include, headers)

    def one(self, record: Record, *, revision: int = 0) -> bytes:
        """A table of one row."""
        table = Table(
            columns=self._columns(),
            rows=(self._row(record, revision),),
            resource_version=str(revision or record.modified or ""),
        )
        return self._printed(table)

    def head(self, meta: ListMetadata) -> bytes:
        """A table before its first row."""
        table = Table(
            columns=self._columns(),
            rows=(),
            resource_version=meta.resource_version,
            continue_=meta.continue_,
            remaining_item_count=meta.remaining_item_count,
        )
        return self._printed(table).removesuffix(b"]}")

    def items(self, records: Iterable[Record]) -> Iterator[bytes]:
        """Rows."""
        choose = self.definition.default_of
        if choose is None:
            return (_escaped(print_row(self._row(record, 0))) for record in records)
        listed = list(records)
        chosen = choose([decode_stored(record) for record in listed])
        return (_escaped(print_row(self._listed(record, chosen))) for record in listed)

    def page(self, records: Iterable[Record], meta: ListMetadata) -> bytes:
        """A table of many rows."""
        printed = super().page(records, meta)
        is_created = (_is_created(self.definition, column) for column in columns_of(self.definition))
        if not any(is_created) or not printed.endswith(_NO_ROWS):
            return printed
        # kube-apiserver prints null for kinds without their own columns, and for definitions.
        return printed.removesuffix(b"[]}\n") + b"null}\n"

    def bookmark(self, revision: int, *, ends_initial: bool) -> bytes:
        """A table with one empty row that holds a revision."""
        metadata = b'{"resourceVersion":"%d"%b}' % (
            revision,
            b',"annotations":{"k8s.io/initial-events-end":"true"}' if ends_initial else b"",
        )
        blank: Tree = {"metadata": {"name": ""}} | blank_object(self.definition)
        cells = tuple(_blank_cell(self.definition, column, blank) for column in columns_of(self.definition))
        held = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":%b}' % metadata
        row = TableRow(cells=cells, object=None if self._include == "None" else held)
        return self._printed(Table(columns=self._columns(), rows=(row,), resource_version=str(revision)))

    def next_event(self) -> TableForm:
        """The same without column definitions."""
        return self if not self._headers else TableForm(self.definition, include=self._include, headers=False)

    def _printed(self, table: Table) -> bytes:
        printed = _escaped(print_table(table))
        if self._headers:
            return printed
        return printed.replace(b'"columnDefinitions":[]', b'"columnDefinitions":null', 1)

    def _columns(self) -> tuple[TableColumn, ...]:
        if not self._headers:
            return ()
        return tuple(
            TableColumn(
                name=column.name,
                type=column.type,
                format=column.format,
                description=column.description,
                priority=column.priority,
            )
            for column in columns_of(self.definition)
        )

    def _listed(self, record: Record, chosen: str) -> TableRow:
        """The row of a list whose default has the name ``chosen``."""
        row = self._row(record, 0)
        name, *rest = row.cells
        return row if not chosen or name != chosen else msgspec.structs.replace(row, cells=(f"{name} (default)", *rest))

    def _row(self, record: Record, revision: int) -> TableRow:
        record = served(self.definition, record)
        obj = decode_stored(record)
        cells = tuple(_cell(column, obj) for column in columns_of(self.definition))
        conditions_of = self.definition.row_conditions
        conditions = (
            tuple(TableRowCondition(**each) for each in conditions_of(obj)) if conditions_of is not None else ()
        )
        match self._include:
            case "None":
                return TableRow(cells=cells, conditions=conditions)
            case "Object":
                return TableRow(cells=cells, conditions=conditions, object=whole(record, revision=revision))
            case _:
                shown = partial(self.definition, record, revision=revision)
                return TableRow(cells=cells, conditions=conditions, object=shown)


def _escaped(printed: bytes) -> bytes:
    """With < and > as Go escapes them. Its &, an escape too, is left: clients read both alike."""
    return printed.replace(b"<", b"\\u003c").replace(b">", b"\\u003e")


def _is_created(definition: Definition, column: Column) -> bool:
    """Whether this is the server's own column Created At, and not one that a custom definition names so."""
    return column.name == CREATED_COLUMN.name and not definition.custom


def _blank_cell(definition: Definition, column: Column, blank: Tree) -> Any:
    """The cell of an object without values."""
    if _is_created(definition, column):
        return _ZERO_TIME
    return None if column is CUSTOM_AGE_COLUMN else _cell(column, blank)


def _cell(column: Column, obj: Tree) -> Any:
    try:
        return column.cell(obj)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError):
        # An object stored before a rule existed must not break the table of all others.
        return None
