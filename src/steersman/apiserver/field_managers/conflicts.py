"""Conflicts of an apply, in kube-apiserver's words.

Guarantee: the answer names every conflict: one as a sentence, several as a list for each owner.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from steersman.apiserver.errors import RequestRejected
from steersman.errors import ApiStatus, StatusCause, StatusDetails
from steersman.golang import quoted
from steersman.patches import ApplyConflict, Owner, format_path


def apply_conflict(conflicts: list[ApplyConflict]) -> RequestRejected:
    """The answer to an apply with conflicts."""
    causes = tuple(
        StatusCause(
            reason="FieldManagerConflict",
            message=f"conflict with {_owner_words(conflict.owner)}",
            field=format_path(conflict.path),
        )
        for conflict in conflicts
    )
    if len(conflicts) == 1:
        message = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        message = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(_lines_by_owner(conflicts))
    status = ApiStatus(
        status="Failure", code=409, reason="Conflict", message=message, details=StatusDetails(causes=causes)
    )
    return RequestRejected(status)


def _lines_by_owner(conflicts: Iterable[ApplyConflict]) -> Iterable[str]:
    """The fields of each owner, below a line that names it."""
    by_owner: dict[Owner, list[str]] = {}
    for conflict in conflicts:
        by_owner.setdefault(conflict.owner, []).append(format_path(conflict.path))
    for owner in sorted(by_owner, key=_identity):
        yield f"conflicts with {_owner_words(owner)}:"
        yield from (f"- {path}" for path in by_owner[owner])


def _identity(owner: Owner) -> bytes:
    """The identity by which kube-apiserver distinguishes owners: a text, which also defines their order."""
    names = ("manager", "operation", "apiVersion", "subresource")
    return msgspec.json.encode({name: value for name, value in zip(names, owner, strict=True) if value})


def _owner_words(owner: Owner) -> str:
    words = quoted(owner.manager)
    if owner.subresource:
        words += f" with subresource {quoted(owner.subresource)}"
    return f"{words} using {owner.api_version}" if owner.operation == "Update" else words
