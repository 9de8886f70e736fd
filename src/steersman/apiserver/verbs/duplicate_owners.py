"""Duplicate owner references: dropped, with a warning."""

from __future__ import annotations

from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.registry.metadata import dedupe_owners
from steersman.apiserver.request import ServerRequest

_DUPLICATE_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
)


def warn_of_duplicate_owners(request: ServerRequest, metadata: Tree, *, admitted: bool = False) -> None:
    """Drop duplicate owner references, with a warning that says whether they were found after admission."""
    duplicates = dedupe_owners(metadata)
    if duplicates:
        when = " after mutating admission happens" if admitted else ""
        request.warn(_DUPLICATE_OWNERS.format(when=when, uids=", ".join(duplicates)))
