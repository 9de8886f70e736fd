"""Versions: what the fields of a kind are in each version that is served of it.

Guarantees:

- An object passes into another version only if it fits the schema there, each item of a list but once; it is refused otherwise.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from steersman.patches.applied_set import held_set
from steersman.patches.errors import PatchError
from steersman.patches.field_set import FieldSet
from steersman.patches.merge_schema import MergeSchema

__all__ = ["NotConvertible", "UnknownVersion", "Versions", "converted"]


class UnknownVersion(PatchError):
    """A version of a kind that is not served any more: who owned fields in it is forgotten."""


class NotConvertible(PatchError):
    """An object cannot pass into a version, such as one that a custom resource never had: nothing can be said of its owners."""


class Versions(Protocol):
    """The versions of a kind: how each merges, what its endpoints ignore, and how objects pass from one to another.

    What is known of a schema is kept with it: give the same `MergeSchema` each time.
    """

    def schema(self, api_version: str) -> MergeSchema:
        """The merge schema of a version; raises `UnknownVersion`."""
        ...

    def ignored(self, api_version: str) -> FieldSet:
        """The fields that requests to this endpoint do not change; nobody owns them by it."""
        ...

    def convert(self, tree: Mapping[str, Any], api_version: str) -> Mapping[str, Any]:
        """The object in another version; raises `UnknownVersion` and `NotConvertible`."""
        ...


def converted(versions: Versions, tree: Mapping[str, Any], api_version: str, *, trying: str = "") -> Mapping[str, Any]:
    """An object in another version, if it fits there; raises what ``convert`` raises, and `SchemaMismatch`.

    ``trying`` is what a refusal begins with.
    """
    try:
        found = versions.convert(tree, api_version)
    except NotConvertible as error:
        raise NotConvertible(f"{trying}: {error}" if trying else str(error)) from None
    if found is not tree:
        held_set(found, versions.schema(api_version), strict=True)
    return found
