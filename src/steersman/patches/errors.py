"""The errors of this package. Each is a `PatchError`, names its place, and is raised before anything is changed."""

from typing import Final

MAX_DEPTH: Final = 200
"""The maximum nesting of JSON. No Kubernetes object comes near it, and recursion stays far within Python's limit."""


class PatchError(ValueError):
    """The operation is impossible with these values."""


class TooDeep(PatchError):
    """A value nests deeper than `MAX_DEPTH`."""

    def __init__(self) -> None:
        super().__init__(f"the value nests more than {MAX_DEPTH} levels deep, which no Kubernetes API server accepts")


class JsonPatchError(PatchError):
    """A JSON patch is malformed, or one of its operations cannot be applied."""

    #: The number of operations before the one that failed.
    applied: int = 0


class CopiesTooLarge(JsonPatchError):
    """The ``copy`` operations of a JSON patch copy more bytes than the server accepts; ``copied`` is their number."""

    def __init__(self, message: str, copied: int) -> None:
        super().__init__(message)
        self.copied = copied


class JsonPatchTestFailed(JsonPatchError):
    """A ``test`` operation found another value: the patch was meant for another state of the object."""


class FieldSetError(PatchError):
    """A text is not a field set (fieldsV1)."""


class SchemaMismatch(PatchError):
    """A value does not have the shape that its schema requires, so an API server would reject it."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path or 'the object'}: {problem}")

    def below(self, element: str) -> "SchemaMismatch":
        """The same error, seen from one level further up."""
        return SchemaMismatch(element + self.path, self.problem)
