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
        return self.is_about(scenario) and fnmatchcase(path, pattern)

    def is_about(self, scenario: str) -> bool:
        """Whether differences of this scenario can be meant."""
        return fnmatchcase(scenario, self.scenario)


KNOWN: tuple[Known, ...] = (
    Known(
        "found_at_random/applied-secret-with-null",
        ".body.metadata.resourceVersion",
        "putting back a Secret that was applied with a null in data changes nothing here; the engine writes it once more",
    ),
    Known(
        "patching/strategic-label-removed",
        ".body.*message",
        "labels that a patch emptied appear as null instead of {}: this server does not distinguish an empty map from none",
    ),
    Known(
        "workloads/changes-of-a-statefulset",
        ".body.*message",
        "an empty list of claim templates appears as null instead of []: this server does not distinguish it from none",
    ),
    Known(
        "subresources/binding-a-pod",
        ".status",
        "a binding without a node's name is the client's mistake, so this server answers 422; the engine answers 500",
    ),
    Known(
        "spoofed_fields/others",
        ".status",
        "a binding to another kind than a node is the client's mistake, so this server answers 422; the engine answers 500",
    ),
    Known(
        "large_objects/too-large*",
        ".status",
        "an object that is too large is the client's mistake, so this server answers 413; the engine answers 500",
    ),
    Known(
        "request_priorities/*",
        ".headers.Warning*",
        "this server warns that it does not limit requests by priority levels",
    ),
    Known(
        "webhooks/patch-of-undeclared-field",
        ".body.metadata.*",
        "a field that a webhook adds to a CRD's object is dropped at once if undeclared; the engine stores and hides it",
    ),
    Known(
        "protobuf/custom-resources",
        "*",
        "this server answers 415 to a custom resource in protobuf; the engine closes the connection without an answer",
    ),
    Known(
        "protobuf_bytes/message-no-utf8-in-a-label",
        ".body.*message",
        "bytes that are not UTF-8 become replacement characters before validation, so error messages quote those",
    ),
)
