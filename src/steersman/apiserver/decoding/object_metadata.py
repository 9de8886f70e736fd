"""The last step of an object that a client sends, in a body or by a patch: its metadata is checked and tidied."""

from __future__ import annotations

from steersman.apiserver.decoding.rejections import unhandled
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.registry.metadata import check_shape, tidy


def read_metadata(definition: Definition, tree: Tree) -> None:
    """Normalize the metadata of an object, in place; empty if it has none. 400 if its types are wrong."""
    metadata = tree.get("metadata")
    if metadata is None:
        tree["metadata"] = {}
        return
    wrong = check_shape(metadata)
    if wrong is not None:
        raise unhandled(definition.gvk, definition.gvk, wrong)
    tree["metadata"] = tidy(metadata)
