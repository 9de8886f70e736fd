"""Patch documents, and how a request carries them."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from steersman.patches import JsonPatch
from steersman.wire import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH

Tree: TypeAlias = dict[str, Any]


class MergePatch(msgspec.Struct, frozen=True):
    """A JSON merge patch: the values to set; ``None`` removes a key.

    Example: ``await client.patch(Site, "home", MergePatch({"spec": {"replicas": 3, "theme": None}}))``. Names are wire names,
    such as ``readyReplicas``. A list replaces the whole list.
    """

    tree: Tree


class StrategicPatch(msgspec.Struct, frozen=True):
    """A strategic merge patch: like a merge patch, but items of keyed lists are merged by their key.

    Example: ``StrategicPatch({"spec": {"containers": [{"name": "web", "image": "nginx:1.28"}]}})``. The server supports it for
    built-in kinds only and rejects it for custom resources.
    """

    tree: Tree


Patch: TypeAlias = MergePatch | StrategicPatch | JsonPatch


def encode_patch(patch: Patch) -> tuple[str, bytes]:
    """The media type and the body of a patch."""
    given: object = patch  # not all programs are type-checked
    match given:
        case MergePatch(tree):
            return MERGE_PATCH, msgspec.json.encode(tree)
        case StrategicPatch(tree):
            return STRATEGIC_MERGE_PATCH, msgspec.json.encode(tree)
        case JsonPatch():
            return JSON_PATCH, given.encode()
        case _:
            raise TypeError(
                f"{type(given).__name__} is not a patch; write MergePatch({{...}}), StrategicPatch or JsonPatch"
            )
