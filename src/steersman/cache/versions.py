"""Resource versions as numbers. They are comparable only within one group-resource of one server."""

from __future__ import annotations


def version_number(resource_version: str) -> int | None:
    """Return the version as an integer; None if it is not decimal, and thus not comparable."""
    return int(resource_version) if resource_version.isascii() and resource_version.isdigit() else None


def is_older(one: str, other: str) -> bool:
    """Whether ``one`` is certainly older than ``other``; false if they are not comparable."""
    first, second = version_number(one), version_number(other)
    return first is not None and second is not None and first < second
