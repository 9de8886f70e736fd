"""Variables that are computed when an expression uses them, such as those of an admission policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from steersman.cel.values import CelError, Mapped, Maybe


class LazyFields(Mapped):
    """A struct whose fields are computed on first use, each once; an error is a value too."""

    __slots__ = ("_compute", "_names", "_values")

    def __init__(self, names: Sequence[str], compute: Callable[[str], Any]) -> None:
        self._names = list(names)
        self._compute = compute
        self._values: dict[str, Any] = {}

    def find(self, key: Any) -> Maybe:
        """The value of a field. Raises its error."""
        if key not in self._values:
            self._values[key] = self._compute(key)
        value = self._values[key]
        if isinstance(value, CelError):
            raise value
        return Maybe(value)

    def size(self) -> int:
        """The number of fields."""
        return len(self._names)

    def keys(self) -> list[Any]:
        """The names of the fields."""
        return list(self._names)

    def equals(self, other: Any) -> bool:
        """Whether it is the same struct."""
        return self is other
