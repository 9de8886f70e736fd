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


KNOWN: tuple[Known, ...] = (
    Known(
        "patching/strategic-label-removed",
        ".body.*message",
        "labels that a patch has emptied are shown as null instead of {}: an empty map and none are one here",
    ),
    Known(
        "subresources/binding-a-pod",
        ".status",
        "the engine answers 500 to a binding without a node's name; it is the sender's mistake, so here it is 422",
    ),
    Known(
        "protobuf/answers-are-json",
        "*",
        "answers are JSON (or YAML) here: protobuf is chosen by nobody who takes JSON too, and is 406 alone",
    ),
    Known(
        "protobuf/custom-resources",
        "*",
        "the engine's handler of custom resources ends the connection without an answer; here protobuf of them is 415",
    ),
    Known(
        "protobuf_bytes/message-no-utf8-in-a-label",
        ".body.*message",
        "bytes that are no UTF-8 become replacement characters before anybody looks at them, so refusals show these",
    ),
)
