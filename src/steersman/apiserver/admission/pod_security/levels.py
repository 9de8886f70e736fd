"""The levels that a namespace chooses by its labels: ``pod-security.kubernetes.io/enforce: baseline``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from steersman.objects.field_problems import FieldProblem, invalid

PREFIX = "pod-security.kubernetes.io/"
PRIVILEGED, BASELINE, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")
#: Stands for the newest checks, independent of the server's version.
LATEST = -1

#: A 64-bit number has no more digits, and Python cannot convert thousands.
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]{0,18})")
_VERSION_MAX = 2**63 - 1


class LevelVersion(NamedTuple):
    """A level with the minor version of Kubernetes whose checks apply."""

    level: str = PRIVILEGED
    minor: int = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor == LATEST else f'v1.{self.minor}'}"

    def is_stricter_than(self, other: LevelVersion) -> bool:
        """Whether the level forbids more than the other one, regardless of versions."""
        return LEVELS.index(self.level) > LEVELS.index(other.level)


class NamespaceLevels(NamedTuple):
    """The levels of a namespace."""

    enforce: LevelVersion
    audit: LevelVersion
    warn: LevelVersion


def namespace_levels(labels: Mapping[str, str]) -> tuple[NamespaceLevels, list[FieldProblem]]:
    """The levels that the labels choose, and the problems of these labels.

    An invalid ``enforce`` level counts as the strictest one; an invalid ``warn`` or ``audit`` level has no effect.
    """
    problems: list[FieldProblem] = []
    enforce = _chosen(labels, "enforce", RESTRICTED, problems)
    audit = _chosen(labels, "audit", PRIVILEGED, problems)
    warn = _chosen(labels, "warn", PRIVILEGED, problems)
    if f"{PREFIX}warn" not in labels and labels.get(f"{PREFIX}enforce") in LEVELS and enforce.level != PRIVILEGED:
        warn = LevelVersion(enforce.level, warn.minor if f"{PREFIX}warn-version" in labels else enforce.minor)
    return NamespaceLevels(enforce, audit, warn), problems


def _chosen(labels: Mapping[str, str], mode: str, invalid_is: str, problems: list[FieldProblem]) -> LevelVersion:
    level, minor = labels.get(PREFIX + mode), labels.get(f"{PREFIX}{mode}-version")
    if level is not None and level not in LEVELS:
        problems.append(_invalid(mode, level, f"must be one of {', '.join(LEVELS)}"))
        level = invalid_is
    if minor is None or minor == "latest":
        return LevelVersion(level or PRIVILEGED)
    match = _VERSION.fullmatch(minor)
    if match is None or int(match[1]) > _VERSION_MAX:
        problems.append(_invalid(f"{mode}-version", minor, 'must be "latest" or "v1.x"'))
        return LevelVersion(level or PRIVILEGED)
    return LevelVersion(level or PRIVILEGED, int(match[1]))


def _invalid(label: str, value: str, why: str) -> FieldProblem:
    return invalid(f"metadata.labels[{PREFIX}{label}]", value, why)
