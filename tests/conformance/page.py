"""The table of docs/like-kubernetes.md: what is compared with kube-apiserver, by area, and what differs on purpose.

``PYTHONPATH=tests python -m conformance.page`` writes it into the page; a test of every run fails if it is another one.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from conformance.catalogue import all_scenarios
from conformance.known_differences import KNOWN
from conformance.scenario import ROWS, Scenario

PAGE = Path(__file__).parents[2] / "docs" / "like-kubernetes.md"
BEGIN, END = "<!-- conformance table: generated -->", "<!-- end of table -->"

#: What each area is about, in the order of the table.
WORDS = {
    "Kinds": "defaults, validation, allocation and immutable fields of the built-in kinds",
    "Metadata": "names, generated names, labels, owner references, finalizers, what only the server sets",
    "Status errors": "codes, reasons, details and causes of refusals, word by word",
    "Update": "PUT with and without resourceVersion, preconditions, what an update may not change",
    "Patch": "JSON patch, merge patch, strategic merge patch, and retries",
    "Apply": "server-side apply: merging, ownership, pruning, conflicts, force, managed fields of every write",
    "No-op writes": "a write that changes nothing makes no revision and no event",
    "generation": "when `metadata.generation` counts",
    "Delete": "preconditions, grace, finalizers, what is answered",
    "Propagation": "background, foreground and orphan, as the API server does its part",
    "deletecollection": "selectors, finalizers, options",
    "dryRun": "all of it but the last step",
    "fieldValidation": "Strict, Warn, Ignore: unknown and duplicate fields",
    "Subresources": "status, scale, binding, eviction, finalize, tokens",
    "Namespaces": "missing, terminating and immortal ones",
    "Custom resources": "definitions and their validation, conditions, versions, conversion, pruning, defaults, ratcheting",
    "CEL": "`x-kubernetes-validations`: what compiles, what it costs, what it refuses, in which words",
    "Table": "what `kubectl get` prints",
    "PartialObjectMetadata": "metadata alone: get, list and watch",
    "Negotiation": "forms of bodies and answers, protobuf bodies",
    "Discovery": "groups, versions, resources, legacy and aggregated",
    "OpenAPI v3": "schemas and operations of all kinds",
    "Health": "version and health",
    "List chunking": "limit, continue, expired tokens, remaining items",
    "resourceVersion": "unset, 0, exact, not older than, and what is too large or gone",
    "Selectors": "labels and fields",
    "Watch stream": "frames, their order, time-outs",
    "Watch errors": "what is refused before, and what in the stream",
    "Selector transitions": "objects that enter and leave a selector",
    "Bookmarks": "when they come and what is in them",
    "WatchList": "initial events and their end",
    "Storage": "revisions, order, compaction",
}


#: Areas that whole files of scenarios are about.
THEMES = {
    "cel": "CEL",
    "crds": "Custom resources",
    "custom": "Custom resources",
    "custom_life": "Custom resources",
    "custom_schemas": "Custom resources",
    "applying_custom": "Custom resources",
}


def areas(scenario: Scenario) -> set[str]:
    """What a scenario is about."""
    theme = THEMES.get(scenario.name.partition("/")[0])
    # Those of a theme are about no built-in kind.
    return {*scenario.rows} if theme is None else {*scenario.rows, theme} - {"Kinds"}


def table() -> str:
    """The rows as Markdown."""
    scenarios = all_scenarios()
    counts = Counter(row for scenario in scenarios for row in areas(scenario))
    lines = ["| Area | What is compared | Scenarios |", "|---|---|---:|"]
    lines += [f"| {row} | {words} | {counts[row]} |" for row, words in WORDS.items()]
    steps = sum(len(scenario.steps) for scenario in scenarios)
    lines.append(f"\n{len(scenarios):,} scenarios with {steps:,} steps; many are about several areas.")
    return "\n".join(lines)


def differences() -> str:
    """What differs on purpose, each reason once."""
    return "\n".join(
        f"- {reason[:1].upper()}{reason[1:]}." for reason in dict.fromkeys(known.reason for known in KNOWN)
    )


def generated() -> str:
    """What stands between the marks of the page."""
    return f"{BEGIN}\n\n{table()}\n\n### Differences on purpose\n\n{differences()}\n\n{END}"


def written(page: str) -> str:
    """A page with what is generated in its place."""
    before, _, rest = page.partition(BEGIN)
    return before + generated() + rest.partition(END)[2]


def unknown_rows() -> set[str]:
    """Areas without words, or words without an area."""
    return (set(ROWS) | set(THEMES.values())) ^ set(WORDS)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
