"""Checks a Pod against a level."""

from __future__ import annotations

from functools import cache

from steersman.apiserver.admission.pod_security.baseline_checks import BASELINE_CHECKS
from steersman.apiserver.admission.pod_security.checks import CheckedPod, CheckFunction, Violation
from steersman.apiserver.admission.pod_security.levels import LATEST, PRIVILEGED, RESTRICTED, LevelVersion
from steersman.apiserver.admission.pod_security.restricted_checks import RESTRICTED_CHECKS

#: The minor version of the newest check: later versions have the same checks.
_NEWEST = 35


def violations(pod: CheckedPod, level: LevelVersion) -> list[Violation]:
    """The violations of a level by a Pod, in the order of messages."""
    if level.level == PRIVILEGED:
        return []
    minor = _NEWEST if level.minor == LATEST else min(level.minor, _NEWEST)
    return [found for function in _functions(level.level, minor) if (found := function(pod)) is not None]


@cache
def _functions(level: str, minor: int) -> tuple[CheckFunction, ...]:
    restricted = {
        name: each for name, each in RESTRICTED_CHECKS.items() if level == RESTRICTED and each.function(minor)
    }
    replaced = {each.replaces for each in restricted.values()}
    kept = (each for name, each in BASELINE_CHECKS.items() if name not in replaced)
    every = (each.function(minor) for each in (*kept, *restricted.values()))
    return tuple(function for function in every if function is not None)
