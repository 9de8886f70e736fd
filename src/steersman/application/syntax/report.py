"""Collects problems while reading continues, so that one run reports all of them."""

from __future__ import annotations

from pathlib import Path

from steersman.application.model import ApplicationError, FileVersion, Place, Problem
from steersman.application.syntax.nodes import Node

#: A hostile file may have an error on every line; further errors are only counted.
_ERRORS_MAX = 200
_SHOWN_MAX = 200


def shown(text: str) -> str:
    """Quote and shorten a text for a message."""
    return repr(text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "...")


class Report:
    """Collects errors, warnings, and keys without an effect."""

    def __init__(self) -> None:
        self._errors: dict[Problem, None] = {}
        self._warnings: dict[Problem, None] = {}
        self._ignored: dict[str, dict[Place, None]] = {}
        self._left_out = 0
        #: Places whose value is unknown, because a variable in it has an error.
        self._unknown: set[Place] = set()
        #: The files that were read, or would be if they existed, and their versions.
        self.files: dict[Path, FileVersion] = {}

    def error(self, where: Node | Place | Path | None, text: str) -> None:
        """Add an error; without a place, it is not in a file."""
        problem = Problem(text, _place(where))
        if problem.place in self._unknown:
            # Whatever is wrong with the rest of the value follows from the first error.
            return
        if len(self._errors) < _ERRORS_MAX:
            self._errors[problem] = None
        elif problem not in self._errors:
            self._left_out += 1

    def lose(self, where: Node, text: str) -> None:
        """Add an error because of which a value is unknown: it gets no other one."""
        self.error(where, text)
        self._unknown.add(where.place)

    def is_lost(self, node: Node | None) -> bool:
        """Whether an error has made a value unknown."""
        return node is not None and node.place in self._unknown

    def warn(self, where: Node | Place | Path, text: str) -> None:
        """Add a warning."""
        if len(self._warnings) < _ERRORS_MAX:
            self._warnings[Problem(text, _place(where))] = None

    def ignore(self, key: Node, name: str) -> None:
        """Add a key that has no effect."""
        self._ignored.setdefault(name, {})[key.place] = None

    @property
    def has_errors(self) -> bool:
        """Whether an error was found."""
        return bool(self._errors)

    def raise_errors(self) -> None:
        """Raise an ApplicationError with all errors, by file and line, if an error was found."""
        if not self._errors:
            return
        more = (Problem(f"{self._left_out} more problems are not shown"),) if self._left_out else ()
        files = {file: number for number, file in enumerate(self.files)}

        def order(problem: Problem) -> tuple[int, int, int]:
            place = problem.place
            return (files.get(place.file, -1), place.line, place.column) if place else (-1, 0, 0)

        raise ApplicationError(*sorted(self._errors, key=order), *more, files=tuple(self.files))

    def warnings(self) -> tuple[Problem, ...]:
        """The warnings; one of them lists all keys without an effect."""
        if not self._ignored:
            return tuple(self._warnings)
        parts: list[str] = []
        for name, places in self._ignored.items():
            lines = ", ".join(f"{place.file.name}:{place.line}" for place in places)
            parts.append(f"{name} ({lines})")
        first = min((place for places in self._ignored.values() for place in places), key=_order)
        return (*self._warnings, Problem(f"keys without an effect here: {', '.join(parts)}", first))


def _order(place: Place) -> tuple[str, int, int]:
    return str(place.file), place.line, place.column


def _place(where: Node | Place | Path | None) -> Place | None:
    if isinstance(where, Node):
        return where.place
    return Place(where) if isinstance(where, Path) else where
