"""An informer that a test feeds by hand."""

from __future__ import annotations

from typing import Any

from steersman.cache import Informer, StoredObject
from steersman.objects import Key


def commit(
    informer: Informer[Any], scope: str, objects: dict[Key, StoredObject], version: str, *, new_epoch: bool
) -> None:
    """Replace a scope with a complete list in one go."""
    for _ in informer.replica.committing(scope, objects, version, new_epoch=new_epoch):
        pass
