"""Resource versions as numbers: comparable within one group-resource of one server, and only there."""

from __future__ import annotations


def version_number(resource_version: str) -> int | None:
    """The version as an integer; None if it is not decimal, and then nothing may be concluded from its order."""
    return int(resource_version) if resource_version.isascii() and resource_version.isdigit() else None


def is_older(one: str, other: str) -> bool:
    """Whether ``one`` certainly lies before ``other``; false if they cannot be compared."""
    first, second = version_number(one), version_number(other)
    return first is not None and second is not None and first < second
