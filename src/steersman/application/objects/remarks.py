"""Errors and warnings of the translation into objects."""

from __future__ import annotations

from steersman.application.model import Problem, ServiceDefinition


class Remarks:
    """Collects errors and warnings, so that one run reports all of them."""

    def __init__(self) -> None:
        self.errors: list[Problem] = []
        self.warnings: list[Problem] = []

    def error(self, definition: ServiceDefinition | None, text: str) -> None:
        """Add an error of a service, or of the application."""
        _add(self.errors, definition, text)

    def warn(self, definition: ServiceDefinition | None, text: str) -> None:
        """Add a warning about a declaration without an effect."""
        _add(self.warnings, definition, text)


def _add(problems: list[Problem], definition: ServiceDefinition | None, text: str) -> None:
    found = Problem(f"service {definition.name}: {text}", definition.place) if definition is not None else Problem(text)
    if found not in problems:
        problems.append(found)
