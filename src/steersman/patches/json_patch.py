"""JSON patches (RFC 6902): parse, build, print and apply them as kube-apiserver does.

Guarantees:

- `JsonPatch.apply` changes neither the document nor the patch; a patch that fails part-way changes nothing.
- Where Kubernetes differs from the RFC, its behavior applies: ``replace`` may set a field that does not exist yet,
  ``test`` treats an absent field as null, and ``-1`` counts from the end of a list. One exception: an operation without
  its value is rejected, where Kubernetes would assume null.
- The server's limits apply: at most `MAX_OPERATIONS` operations, and copies of at most `MAX_COPIED_BYTES` in total.
- Every failure is a `JsonPatchError` that names the operation and the place.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, Literal, NoReturn, Self, TypeAlias, cast

import msgspec
from msgspec import UNSET, UnsetType

from steersman.patches.errors import MAX_DEPTH, CopiesTooLarge, JsonPatchError, JsonPatchTestFailed, TooDeep
from steersman.patches.trees import check_depth, json_equal

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024

Pointer: TypeAlias = str | Sequence[str | int]
"""A JSON pointer (``/spec/ports/0``), or its unescaped parts (``["metadata", "annotations", "example.com/owner"]``)."""

OperationName: TypeAlias = Literal["add", "remove", "replace", "move", "copy", "test"]

_Container: TypeAlias = dict[str, Any] | list[Any]

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_INDEX: Final = re.compile(r"[+-]?[0-9]{1,9}")
_NAMES: Final = ("add", "remove", "replace", "move", "copy", "test")


def pointer(*parts: str | int) -> str:
    """A JSON pointer from unescaped parts: ``pointer("metadata", "labels", "a/b")`` is ``/metadata/labels/a~1b``."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def _parts(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One operation of a JSON patch; made with `add`, `remove`, `replace`, `move`, `copy` or `test`."""

    op: OperationName
    path: str
    from_: str | UnsetType = msgspec.field(default=UNSET, name="from")
    value: Any = UNSET

    def __post_init__(self) -> None:
        """Reject what no server would accept."""
        if self.op not in _NAMES:
            raise JsonPatchError(f"unknown operation {self.op!r}; the operations are {', '.join(_NAMES)}")
        for place in (self.path, self.from_):
            if place and not place.startswith("/"):
                raise JsonPatchError(f"{self.op}: not a JSON pointer: {_shown(place)}; it must begin with '/'")
        if self.op in {"add", "replace", "test"} and self.value is UNSET:
            raise JsonPatchError(f"{self}: the operation needs a value")
        if self.op in {"move", "copy"} and self.from_ is UNSET:
            raise JsonPatchError(f"{self}: the operation needs 'from'")

    def __str__(self) -> str:
        return (
            f"{self.op} {_shown(self.path)}"
            if self.from_ is UNSET
            else f"{self.op} {_shown(self.from_)} to {_shown(self.path)}"
        )


def _place(path: Pointer) -> str:
    return path if isinstance(path, str) else pointer(*path)


def add(path: Pointer, value: Any) -> Operation:
    """Set a field, or insert into a list before an index; the part ``-`` appends."""
    return Operation(op="add", path=_place(path), value=value)


def remove(path: Pointer) -> Operation:
    """Remove a field or an item, which must exist."""
    return Operation(op="remove", path=_place(path))


def replace(path: Pointer, value: Any) -> Operation:
    """Replace a field or an item."""
    return Operation(op="replace", path=_place(path), value=value)


def move(from_: Pointer, path: Pointer) -> Operation:
    """Remove a value from one place and add it at another."""
    return Operation(op="move", path=_place(path), from_=_place(from_))


def copy(from_: Pointer, path: Pointer) -> Operation:
    """Add a copy of a value at another place."""
    return Operation(op="copy", path=_place(path), from_=_place(from_))


def test(path: Pointer, value: Any) -> Operation:
    """Fail the whole patch unless the place has this value."""
    return Operation(op="test", path=_place(path), value=value)


# Keeps pytest from collecting it as a test where it is imported.
test.__test__ = False  # pyright: ignore[reportFunctionMemberAccess]


class JsonPatch(msgspec.Struct, frozen=True):
    """A JSON patch: operations that are applied in order, all or none.

    Example: ``JsonPatch.parse([{"op": "replace", "path": "/spec/replicas", "value": 3}])``.
    """

    operations: tuple[Operation, ...] = ()

    def __post_init__(self) -> None:
        """Enforce the server's limit."""
        if len(self.operations) > MAX_OPERATIONS:
            raise JsonPatchError(
                f"the patch has {len(self.operations)} operations; the server accepts at most {MAX_OPERATIONS}"
            )

    @classmethod
    def of(cls, *operations: Operation) -> Self:
        """A patch of these operations."""
        return cls(operations)

    @classmethod
    def parse(cls, document: bytes | str | list[Any]) -> Self:
        """Parse a patch, as JSON text or decoded."""
        try:
            if isinstance(document, list):
                return cls(msgspec.convert(document, tuple[Operation, ...]))
            return cls(msgspec.json.decode(document, type=tuple[Operation, ...]))
        except RecursionError:
            raise TooDeep from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise JsonPatchError(f"not a JSON patch: {error}") from None

    def encode(self) -> bytes:
        """The patch as JSON text."""
        return msgspec.json.encode(self.operations)

    def to_json(self) -> list[dict[str, Any]]:
        """The patch as a JSON tree."""
        return [msgspec.to_builtins(operation) for operation in self.operations]

    def apply(self, document: Any) -> Any:
        """Apply the patch to a document and return the new one."""
        return apply_operations(document, self.operations)


def apply_operations(document: Any, operations: Sequence[Operation]) -> Any:
    """Apply any number of operations. `JsonPatch` has a limit because the server rejects longer patches of clients."""
    editor = _Editor(document)
    for number, operation in enumerate(operations):
        try:
            editor.begin(number + 1, operation)
            editor.perform(operation)
        except JsonPatchError as error:
            error.applied = number
            raise
    if any(operation.op not in {"test", "remove"} for operation in operations):
        check_depth(editor.document)
    return editor.document


def growth_of(patch: bytes) -> int:
    """The most bytes that a JSON patch can add to a document, judged by its text alone."""
    # Without "copy" and without escaped letters, the text contains no copy operation.
    may_copy = b"copy" in patch or b"\\u" in patch
    return len(patch) + (MAX_COPIED_BYTES if may_copy else 0)


class _Editor:
    """Edits a document without changing the original: a container is copied before its first change."""

    document: Any

    def __init__(self, document: Any) -> None:
        self.document = document
        self._own: dict[int, _Container] = {}
        self._copied = 0
        self._at = ""

    def begin(self, number: int, operation: Operation) -> None:
        self._at = f"JSON patch operation {number} ({operation})"
        for place in (operation.path, operation.from_):
            if place and place.count("/") > MAX_DEPTH:
                raise TooDeep

    def perform(self, operation: Operation) -> None:
        path, source = operation.path, operation.from_ or ""
        match operation.op:
            case "add":
                self._add(path, operation.value)
            case "remove":
                self._remove(path)
            case "replace":
                self._replace(path, operation.value)
            case "move":
                self._add(path, self._remove(source))
            case "copy":
                self._add(path, self._duplicate(self._find(source)))
            case "test":
                if not json_equal(self._find(path), operation.value):
                    raise JsonPatchTestFailed(f"{self._at}: the current value is different")

    def _add(self, path: str, value: Any) -> None:
        container, key = self._container(path)
        if isinstance(container, dict):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            container.insert(self._index(key, len(container) + 1), value)

    def _remove(self, path: str) -> Any:
        container, key = self._container(path)
        if isinstance(container, list):
            return container.pop(self._index(key, len(container)))
        if key not in container:
            self._fail(f"the object has no field {_shown(key)}")
        return container.pop(key)

    def _replace(self, path: str, value: Any) -> None:
        if not path:
            if not isinstance(value, (dict, list)):
                self._fail("the whole document can only be replaced with an object or a list")
            self.document = cast("Any", value)
            return
        container, key = self._container(path)
        if isinstance(container, dict):
            container[key] = value
        else:
            container[self._index(key, len(container))] = value

    def _find(self, path: str) -> Any:
        """The value at a path; an absent field of an existing object reads as null."""
        found = self.document
        parts = _parts(path)
        for position, part in enumerate(parts):
            if isinstance(found, dict):
                found = cast("dict[str, Any]", found).get(part)
            elif isinstance(found, list):
                items = cast("list[Any]", found)
                found = items[self._index(part, len(items))]
            else:
                self._missing(parts[:position])
        return found

    def _container(self, path: str) -> tuple[_Container, str]:
        """The object or list that holds a path, copied along the whole path."""
        parts = _parts(path)
        if not parts:
            self._fail("the whole document can only be replaced or tested")
        container = self._owned(self.document)
        self.document = cast("Any", container)
        for position, part in enumerate(parts[:-1]):
            key: Any = part if isinstance(container, dict) else self._index(part, len(container))
            inner: Any = container.get(key) if isinstance(container, dict) else container[key]
            if not isinstance(inner, (dict, list)):
                self._missing(parts[: position + 1])
            mine = self._owned(cast("Any", inner))
            container[key] = mine
            container = mine
        return container, parts[-1]

    def _owned(self, container: Any) -> _Container:
        if id(container) in self._own:
            return cast("_Container", container)
        if not isinstance(container, (dict, list)):
            self._fail("the document is neither an object nor a list")
        mine = (
            dict(cast("dict[str, Any]", container))
            if isinstance(container, dict)
            else list(cast("list[Any]", container))
        )
        self._own[id(mine)] = mine
        return mine

    def _duplicate(self, value: Any) -> Any:
        """Copy deeply, within the server's limit: a short patch must not blow up a document."""
        try:
            text = _encode(value)
        except RecursionError:
            raise TooDeep from None
        except (TypeError, ValueError, OverflowError) as error:
            self._fail(f"the value has no JSON form: {error}")
        self._copied += len(text)
        if self._copied > MAX_COPIED_BYTES:
            raise CopiesTooLarge(f"{self._at}: the patch copies more than {MAX_COPIED_BYTES} bytes", self._copied)
        try:
            return _decode(text)
        except RecursionError:
            raise TooDeep from None

    def _index(self, part: str, length: int) -> int:
        index = int(part) if _INDEX.fullmatch(part) else None
        if index is None:
            self._fail(f"{_shown(part)} is not a list index")
        if not -length <= index < length:
            self._fail(f"the list has no index {index}")
        return index + length if index < 0 else index

    def _missing(self, parts: list[str]) -> NoReturn:
        self._fail(f"there is no object or list at {_shown(pointer(*parts))}")

    def _fail(self, problem: str) -> NoReturn:
        raise JsonPatchError(f"{self._at}: {problem}")


def _shown(text: str | UnsetType) -> str:
    text = text or ""
    return repr(text if len(text) <= 80 else f"{text[:80]}...")
