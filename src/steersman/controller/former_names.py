"""The check of ``formerly=``, which managers and controllers share. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from steersman.objects import is_manager_of


def check_formerly(formerly: object, name: str, where: str, *, bearer: str) -> tuple[str, ...]:
    """The earlier names of a manager or a controller as a tuple. Raises if one of them cannot be an earlier name.

    The current ``name`` cannot be one, nor can the manager of which ``name`` is a part, as ``shop`` is of ``shop/site``.
    ``where`` begins the error, and ``bearer`` is what has the names: "manager" or "controller".
    """
    if isinstance(formerly, str):
        raise TypeError(f'{where}: formerly="{formerly}" is one name; write formerly=("{formerly}",)')
    if not isinstance(formerly, Iterable):
        raise TypeError(f'{where}: formerly={formerly!r}: pass the earlier names, such as formerly=("{name}-old",)')
    names = tuple(cast("Iterable[object]", formerly))
    if names and not name:
        raise ValueError(f"{where}: formerly={names!r} also needs the current name; write name=... too")
    for former in names:
        if not isinstance(former, str) or not former or is_manager_of(former, name):
            raise ValueError(
                f"{where}: formerly={names!r}: {former!r} is not an earlier name of {bearer} {name}; list the names that the"
                f" {bearer} had before"
            )
    return cast("tuple[str, ...]", names)
