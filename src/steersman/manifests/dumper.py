"""Objects -> manifests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import yaml

from steersman.golang import YamlBlockDumper
from steersman.objects import SERVER_METADATA, Object, Tree, Unstructured, to_json


def dump_manifests(objects: Iterable[Object | Unstructured], *, server_fields: bool = False) -> str:
    """The objects as YAML documents, in the given order; `load_manifests` reads them back.

    Fields are sorted, as kubectl prints them, so that equal objects give equal texts. What the server wrote is left
    out: the status, managedFields, uid, resourceVersion and their like. ``server_fields=True`` keeps it.
    Values of Secrets are printed.
    """
    trees = [obj.tree if isinstance(obj, Unstructured) else to_json(obj) for obj in objects]
    if not server_fields:
        trees = [_without_server_fields(tree) for tree in trees]
    if not trees:
        return ""
    text: str = yaml.dump_all(trees, Dumper=YamlBlockDumper, explicit_start=True, width=120, allow_unicode=True)
    return text


def _without_server_fields(tree: Tree) -> Tree:
    kept = {name: value for name, value in tree.items() if name != "status"}
    if isinstance(metadata := kept.get("metadata"), dict):
        named = cast("Tree", metadata)
        kept["metadata"] = {name: value for name, value in named.items() if name not in SERVER_METADATA}
    return kept
