"""JSON patches of webhooks and policies: applied as Go's library does, with its error messages."""

from __future__ import annotations

import re
from typing import Any, Final, cast

import msgspec

from steersman.apiserver.registry.definition import Tree
from steersman.patches import (
    MAX_COPIED_BYTES,
    CopiesTooLarge,
    JsonPatchError,
    JsonPatchTestFailed,
    Operation,
    apply_operations,
)

_MISSING: Final = "missing value"
_WITH_VALUE: Final = frozenset({"add", "replace", "test"})
#: A longer one is no index of any list, and slow to read.
_INDEX: Final = re.compile("-?[0-9]{1,18}", re.ASCII)
_OPERATIONS: Final = frozenset({"add", "remove", "replace", "move", "copy", "test"})


def completed(operations: list[Any]) -> list[Any]:
    """Operations as Go reads them: a missing value is null."""
    return [{"value": None, **operation} if _name(operation) in _WITH_VALUE else operation for operation in operations]


def _name(operation: Any) -> str:
    """The ``op`` of an operation; "unknown" if it has none."""
    op = cast("Tree", operation).get("op") if isinstance(operation, dict) else None
    return op if isinstance(op, str) else "unknown"


def apply_patch(document: Any, operations: list[Any]) -> Any:
    """The document after a patch. Changes neither. Raises `PatchError` with the message of the first failed operation."""
    parsed, malformed = _parsed(operations)
    try:
        made = apply_operations(document, parsed)
    except CopiesTooLarge as error:
        words = f"Unable to complete the copy, the accumulated size increase of copy is {error.copied}"
        raise JsonPatchError(f"{words}, exceeding the limit {MAX_COPIED_BYTES}") from None
    except JsonPatchError as error:
        before = apply_operations(document, parsed[: error.applied])
        words = _words(before, operations[error.applied]) or str(error)
        raise (JsonPatchTestFailed if isinstance(error, JsonPatchTestFailed) else JsonPatchError)(words) from None
    if malformed:
        raise JsonPatchError(_words(made, operations[len(parsed)]) or malformed)
    return made


def _parsed(operations: list[Any]) -> tuple[list[Operation], str]:
    """The operations before the first malformed one, and what is wrong with that one."""
    parsed: list[Operation] = []
    for operation in operations:
        try:
            parsed.append(msgspec.convert(operation, Operation))
        except msgspec.ValidationError as error:
            return parsed, f"not a JSON patch: {error}"
    return parsed, ""


def _words(document: Any, given: Any) -> str:  # noqa: PLR0911 - one answer for each operation
    operation = cast("Tree", given) if isinstance(given, dict) else {}
    if (op := _name(given)) not in _OPERATIONS:
        return f"Unexpected kind: {op}"
    path = str(operation.get("path", ""))
    if op in {"move", "copy"}:
        return _transfer_words(document, op, str(operation.get("from", "")), path)
    parent, key = _parent(document, path), _last(path)
    match op:
        case "test":
            if parent is None:
                return f"test operation does not apply: is missing path: {path}: {_MISSING}"
            return f"testing value {path} failed: test failed"
        case "replace":
            what = "path" if parent is None else "key"
            return f"replace operation does not apply: doc is missing {what}: {path}: {_MISSING}"
        case _:
            if parent is None:
                return f'{op} operation does not apply: doc is missing path: "{path}": {_MISSING}'
            return f"error in {op} for path: '{path}': {_entry_words(parent, key)}"


def _transfer_words(document: Any, op: str, source: str, path: str) -> str:
    """The message about a move or a copy."""
    parent, key = _parent(document, source), _last(source)
    if parent is None:
        return f"{op} operation does not apply: doc is missing from path: {source}: {_MISSING}"
    if not _holds(parent, key):
        failure = f"error in copy for from: '{source}'" if op == "copy" else f"error in move for path: '{key}'"
        return f"{failure}: {_entry_words(parent, key)}"
    parent, key = _parent(document, path), _last(path)
    if parent is None:
        return f"{op} operation does not apply: doc is missing destination path: {path}: {_MISSING}"
    failure = "error while adding value during copy" if op == "copy" else f"error in move for path: '{path}'"
    return f"{failure}: {_entry_words(parent, key)}"


def _last(path: str) -> str:
    return path.rpartition("/")[2].replace("~1", "/").replace("~0", "~")


def _holds(parent: Any, key: str) -> bool:
    if isinstance(parent, dict):
        return key in cast("Tree", parent)
    return _INDEX.fullmatch(key) is not None and -1 < int(key) < len(cast("list[Any]", parent))


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
