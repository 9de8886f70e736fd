"""Reads Kubernetes objects: documents with apiVersion and kind, unchanged."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import Any, cast

from steersman.application.model import Place
from steersman.application.syntax.documents import is_kubernetes_object, read_documents
from steersman.application.syntax.nodes import ListNode, MapNode, Node, Origin, ScalarNode
from steersman.application.syntax.report import Report, shown
from steersman.application.syntax.values import Values, absolute
from steersman.golang import yaml_scalar
from steersman.objects import Tree

_FILES_MAX = 500


PlacedObject = tuple[Tree, Place]


def object_of(node: Node, report: Report) -> list[PlacedObject]:
    """The object of a document, or the items of a List, each with its place."""
    value = cast("Tree", plain(node))
    if value["kind"] == "List" and isinstance(node, MapNode) and isinstance(items := node.get("items"), ListNode):
        found: list[PlacedObject] = []
        for item in items.items:
            if is_kubernetes_object(item):
                found += object_of(item, report)
            else:
                report.error(item, "an item of a List needs apiVersion and kind")
        return found
    metadata = value.get("metadata")
    name: object = cast("Tree", metadata).get("name") if isinstance(metadata, dict) else None
    for key in ("apiVersion", "kind"):
        if not isinstance(value[key], str) or not value[key]:
            report.error(node, f"{key} of an object must be a string")
    if not isinstance(name, str) or not name:
        report.error(node, f"the object of kind {shown(str(value['kind']))} needs metadata.name")
    labels: object = cast("Tree", metadata).get("labels") if isinstance(metadata, dict) else None
    if labels is not None and not isinstance(labels, dict):
        report.error(node, f"metadata.labels of the object {shown(str(name))} must be a mapping")
    return [(value, node.place)]


def objects_of_files(node: Node | None, values: Values) -> list[PlacedObject]:
    """The objects of the files that the key ``objects`` names: paths or globs."""
    found: list[PlacedObject] = []
    for item in values.items(node, "objects"):
        text = values.text(item, "an item of objects")
        if not text:
            continue
        for file in _files(values.report, item, text):
            for document in read_documents(_origin(item, file), values.report, named_at=item):
                if is_kubernetes_object(document):
                    found += object_of(document, values.report)
                else:
                    values.report.error(document, "a document under objects needs apiVersion and kind")
    return found


def _origin(item: Node, file: Path) -> Origin:
    return Origin(file, file.parent, item.origin.environment)


def _files(report: Report, item: Node, text: str) -> list[Path]:
    path = Path(absolute(item, text))
    if not re.search(r"[*?\[]", text):
        return [path]
    fixed = path
    while re.search(r"[*?\[]", str(fixed)):
        fixed = fixed.parent
    try:
        matches = (file for file in fixed.glob(str(path.relative_to(fixed))) if file.is_file())
        found = [*islice(matches, _FILES_MAX + 1)]
    except (OSError, ValueError) as error:
        report.error(item, f"objects: {shown(text)} is not a pattern of files: {error}")
        return []
    if len(found) > _FILES_MAX:
        report.error(item, f"{shown(text)} matches more than {_FILES_MAX} files")
        return []
    if not found:
        report.error(item, f"no file matches {shown(text)}")
    return sorted(found)


def plain(node: Node) -> Any:
    """The value of a node as kubectl would convert it to JSON."""
    if isinstance(node, MapNode):
        return {name: plain(value) for name, value in node.items.items()}
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    return _scalar(node) if isinstance(node, ScalarNode) else None


def _scalar(node: ScalarNode) -> str | float | bool | None:
    if not node.is_plain or node.is_null:
        return None if node.is_null else node.text
    try:
        return yaml_scalar(node.text)
    except ValueError:  # JSON has no infinity
        return node.text
