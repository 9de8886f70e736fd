"""Error messages for a JSON patch that does not apply, in the words of Go's library."""

from __future__ import annotations

import re
from typing import Any, Final, cast

from steersman.apiserver.registry.definition import Tree
from steersman.patches import JsonPatch, JsonPatchError, PatchError

_MISSING: Final = "missing value"
_WITH_VALUE: Final = frozenset({"add", "replace", "test"})
#: A longer one is no index of any list, and slow to read.
_INDEX: Final = re.compile("-?[0-9]{1,18}", re.ASCII)
_OPERATIONS: Final = frozenset({"add", "remove", "replace", "move", "copy", "test"})


def completed(operations: list[Any]) -> list[Any]:
    """Operations as Go reads them: a missing value is null."""
    return [
        {"value": None, **each} if isinstance(each, dict) and cast("Tree", each).get("op") in _WITH_VALUE else each
        for each in operations
    ]


def patch_problem(document: Any, operations: list[Any]) -> str:
    """The message about a patch that does not apply to a document; empty if it applies."""
    for each in operations:
        operation = cast("Tree", each) if isinstance(each, dict) else {}
        if operation.get("op") not in _OPERATIONS:
            return f"Unexpected kind: {operation.get('op', 'unknown')}"
        try:
            document = JsonPatch.parse([operation]).apply(document)
        except JsonPatchError as error:
            return _words(document, operation) or str(error)
        except PatchError as error:
            return str(error)
    return ""


def _words(document: Any, operation: Tree) -> str:  # noqa: PLR0911 - one answer for each operation
    op, path, source = operation["op"], str(operation.get("path", "")), str(operation.get("from", ""))
    if op in {"move", "copy"} and (parent := _parent(document, source)) is None:
        return f"{op} operation does not apply: doc is missing from path: {source}: {_MISSING}"
    place = source if op in {"move", "copy"} else path
    parent, key = _parent(document, place), place.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
    match op:
        case "test":
            if parent is None:
                return f"test operation does not apply: is missing path: {path}: {_MISSING}"
            return f"testing value {path} failed: test failed"
        case "replace":
            what = "path" if parent is None else "key"
            return f"replace operation does not apply: doc is missing {what}: {path}: {_MISSING}"
        case "add" | "remove":
            if parent is None:
                return f'{op} operation does not apply: doc is missing path: "{path}": {_MISSING}'
            return f"error in {op} for path: '{path}': {_entry_words(parent, key)}"
        case _:
            return ""


def _entry_words(parent: Any, key: str) -> str:
    if isinstance(parent, dict):
        return f"Unable to remove nonexistent key: {key}: {_MISSING}"
    if not _INDEX.fullmatch(key):
        return f"value was not a proper array index: '{key}': strconv.Atoi: parsing \"{key}\": invalid syntax"
    return f"Unable to access invalid index: {int(key)}: invalid index referenced"


def _parent(document: Any, path: str) -> Any:
    """The object or list that holds a path; None if it is missing."""
    found = document
    for part in path.split("/")[1:-1]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = cast("Tree", found).get(name)
        elif isinstance(found, list) and _INDEX.fullmatch(name) and -1 < int(name) < len(cast("list[Any]", found)):
            found = cast("list[Any]", found)[int(name)]
        else:
            return None
    return cast("Any", found) if isinstance(found, dict | list) else None
