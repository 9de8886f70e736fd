"""Tables: the representation of lists that kubectl prints, `as=Table`.

Guarantees
- A row's object stays raw bytes; cells are JSON values, in the order of the columns.
- In a watch, only the first table contains columns; later `Table.columns` are empty.
"""

from typing import Any

import msgspec


class TableColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column: priority 0 is always shown, higher priorities only in a wide table."""

    name: str
    type: str
    format: str = ""
    description: str = ""
    priority: int = 0


class TableRowCondition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A condition of a row: its type, status, reason and message."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class TableRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row: its cells, and as much of the object as `includeObject` requested."""

    cells: tuple[Any, ...]
    #: Conditions of the whole row, such as that a Pod has completed.
    conditions: tuple[TableRowCondition, ...] = ()
    object: bytes | None = None


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A list of objects in the columns of their kind."""

    columns: tuple[TableColumn, ...]
    rows: tuple[TableRow, ...]
    resource_version: str = ""
    continue_: str = ""
    remaining_item_count: int | None = None


class _Meta(msgspec.Struct, rename="camel", omit_defaults=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


_NO_OBJECT = msgspec.Raw(b"")


class _Row(msgspec.Struct, omit_defaults=True):
    cells: tuple[Any, ...]
    conditions: tuple[TableRowCondition, ...] = ()
    # msgspec does not support unions with Raw, so an empty one means none
    object: msgspec.Raw = _NO_OBJECT


class _Table(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str = "meta.k8s.io/v1"
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    column_definitions: tuple[TableColumn, ...] | None = ()
    rows: tuple[_Row, ...] | None = ()


_encoder = msgspec.json.Encoder()


def print_table(table: Table) -> bytes:
    """Print a table as kube-apiserver does."""
    return _encoder.encode(
        _Table(
            kind="Table",
            metadata=_Meta(table.resource_version, table.continue_, table.remaining_item_count),
            column_definitions=table.columns,
            rows=tuple(map(_row, table.rows)),
        )
    )


def print_row(row: TableRow) -> bytes:
    """Print one row of a table."""
    return _encoder.encode(_row(row))


def _row(row: TableRow) -> _Row:
    return _Row(row.cells, row.conditions, msgspec.Raw(b"null" if row.object is None else row.object))
