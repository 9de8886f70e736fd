"""The columns of the tables of Kubernetes' own kinds, as ``kubectl get`` shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from steersman.apiserver.registry.builtin.tables import admission_cells, cells, structural_cells
from steersman.apiserver.registry.builtin.tables.pod_cells import pod
from steersman.apiserver.registry.builtin.types.trees import Tree
from steersman.apiserver.registry.definition import Column
from steersman.objects import GroupVersionKind

_Row = Callable[[Tree], list[Any]]
_columns = msgspec.json.Decoder(list[tuple[str, str, str, str, int]])

_ROWS: Mapping[str, _Row] = {**cells.ROWS, **structural_cells.ROWS, **admission_cells.ROWS, "Pod": pod}


@cache
def _document() -> dict[str, msgspec.Raw]:
    """The columns of each kind, decoded on demand: a server may serve few of them."""
    raw = (Path(__file__).parents[1] / "data" / "columns.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, msgspec.Raw])


def _cell(row: _Row, position: int) -> Callable[[Tree], Any]:
    pick = itemgetter(position)
    return lambda obj: pick(row(obj))


@cache
def columns_of(kind: GroupVersionKind) -> tuple[Column, ...]:
    """The table columns of a kind; empty for kinds that show only their name and creation time."""
    declared = _document().get(str(kind))
    if declared is None:
        return ()
    return tuple(
        Column(
            name=name,
            type=type_,
            format=format_,
            description=description,
            priority=priority,
            cell=_cell(_ROWS[kind.kind], position),
        )
        for position, (name, type_, format_, description, priority) in enumerate(_columns.decode(declared))
    )
