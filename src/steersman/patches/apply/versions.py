"""Versions: the fields of a kind in each of its served versions.

Guarantees:

- An object is converted to another version only if it fits the schema there, without duplicate list items; otherwise
  the conversion raises.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from steersman.patches.applied_fields import held_set
from steersman.patches.errors import PatchError
from steersman.patches.field_set import FieldSet
from steersman.patches.merge_schema import MergeSchema


class UnknownVersion(PatchError):
    """A version of a kind that is no longer served: its managers are dropped."""


class NotConvertible(PatchError):
    """An object cannot be converted to a version, such as one that a custom resource never had."""


class Versions(Protocol):
    """The versions of a kind: how each merges, what its endpoints ignore, and how objects are converted between them.

    Results are cached with their schema: return the same `MergeSchema` each time.
    """

    def schema(self, api_version: str) -> MergeSchema:
        """The merge schema of a version. Raises `UnknownVersion`."""
        ...

    def ignored(self, api_version: str) -> FieldSet:
        """The fields that requests to this endpoint do not change, and so do not own."""
        ...

    def convert(self, tree: Mapping[str, Any], api_version: str) -> Mapping[str, Any]:
        """The object in another version. Raises `UnknownVersion` and `NotConvertible`."""
        ...


def converted(versions: Versions, tree: Mapping[str, Any], api_version: str, *, trying: str = "") -> Mapping[str, Any]:
    """An object in another version, if it fits there. Raises what ``convert`` raises, and `SchemaMismatch`.

    ``trying`` is the prefix of the error message.
    """
    try:
        found = versions.convert(tree, api_version)
    except NotConvertible as error:
        raise NotConvertible(f"{trying}: {error}" if trying else str(error)) from None
    if found is not tree:
        held_set(found, versions.schema(api_version), strict=True)
    return found
