"""Where the embedded server differs from kube-apiserver on purpose, each with its reason.

An entry that no longer explains a difference fails the suite: it is to be deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from conformance.comparing import Difference


@dataclass(frozen=True, slots=True)
class Known:
    """Differences of scenarios whose name fits `scenario`, at paths that fit `path` (both with ``*``)."""

    scenario: str
    path: str
    reason: str

    def explains(self, scenario: str, difference: Difference) -> bool:
        """Whether this difference is meant."""
        # brackets are part of paths, not of patterns
        path, pattern = (text.replace("[", "(").replace("]", ")") for text in (difference.path, self.path))
        return fnmatchcase(scenario, self.scenario) and fnmatchcase(path, pattern)


KNOWN: tuple[Known, ...] = ()
