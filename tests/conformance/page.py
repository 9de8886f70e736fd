"""The table of docs/like-kubernetes.md: what is compared with kube-apiserver, by area, and what differs on purpose.

``PYTHONPATH=tests python -m conformance.page`` writes it into the page; a test fails if the page is outdated.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from conformance.catalog import all_scenarios
from conformance.known_differences import KNOWN
from conformance.scenario import ROWS, Scenario

PAGE = Path(__file__).parents[2] / "docs" / "like-kubernetes.md"
BEGIN, END = "<!-- conformance table: generated -->", "<!-- end of table -->"

#: What each area is about, in the order of the table.
WORDS = {
    "Kinds": "defaults, validation, allocation and immutable fields of the built-in kinds",
    "Metadata": "names, generated names, labels, owner references, finalizers, what only the server sets",
    "Status errors": "codes, reasons, details and causes of errors, word by word",
    "Update": "PUT with and without resourceVersion, preconditions, what an update may not change",
    "Patch": "JSON patch, merge patch, strategic merge patch, and retries",
    "Apply": "server-side apply: merging, ownership, pruning, conflicts, force, managed fields of every write",
    "No-op writes": "a write that changes nothing creates no revision and no event",
    "generation": "when `metadata.generation` increases",
    "Delete": "preconditions, grace periods, finalizers, responses",
    "Propagation": "background, foreground and orphan: the API server's part",
    "deletecollection": "selectors, finalizers, options",
    "dryRun": "every step except storing",
    "fieldValidation": "Strict, Warn, Ignore: unknown and duplicate fields",
    "Subresources": "status, scale, binding, eviction, finalize, tokens",
    "RBAC": "privilege escalation: who may write which roles and bindings, and the missing permissions, word by word",
    "Bootstrap": "objects that exist from the start: roles, PriorityClasses, FlowSchemas, APIServices; the classification of requests",
    "Webhooks": "webhooks over HTTPS, and admission policies: configurations, selection, reviews, patches, failures and their messages",
    "Quotas": "ResourceQuotas and LimitRanges: scopes, defaults, rejections, recorded usage",
    "Namespaces": "missing, terminating and undeletable namespaces",
    "Custom resources": "definitions and their validation, conditions, versions, conversion, pruning, defaults, ratcheting",
    "CEL": "`x-kubernetes-validations`: which rules compile, what they cost, what they reject, and the messages",
    "Table": "what `kubectl get` prints",
    "PartialObjectMetadata": "metadata only: get, list and watch",
    "Negotiation": "formats of request and response bodies: JSON, YAML, protobuf",
    "Discovery": "groups, versions, resources, legacy and aggregated; OpenID discovery",
    "OpenAPI v3": "schemas and operations of all kinds",
    "Health": "version, health and each health check",
    "List chunking": "limit, continue, expired tokens, remaining items",
    "resourceVersion": "unset, 0, exact, not older than, too large, expired",
    "Selectors": "labels and fields",
    "Watch stream": "frames, their order, timeouts",
    "Watch errors": "errors before the stream, and errors in it",
    "Selector transitions": "objects that enter and leave a selector",
    "Bookmarks": "when they are sent, and their content",
    "WatchList": "initial events and their end",
    "Shards": "lists and watches of a range of hashes, with the feature gate `ShardedListAndWatch` on and off",
    "Storage": "revisions, order, compaction",
}


#: Areas that whole files of scenarios are about.
THEMES = {
    "cel": "CEL",
    "bootstrap": "Bootstrap",
    "escalation": "RBAC",
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
    lines.append(f"\n{len(scenarios):,} scenarios with {steps:,} steps; many scenarios cover several areas.")
    return "\n".join(lines)


def differences() -> str:
    """What differs on purpose, each reason once."""
    return "\n".join(
        f"- {reason[:1].upper()}{reason[1:]}." for reason in dict.fromkeys(known.reason for known in KNOWN)
    )


def generated() -> str:
    """What stands between the marks of the page."""
    return f"{BEGIN}\n\n{table()}\n\n### Intended differences\n\n{differences()}\n\n{END}"


def written(page: str) -> str:
    """A page with what is generated in its place."""
    before, _, rest = page.partition(BEGIN)
    return before + generated() + rest.partition(END)[2]


def unknown_rows() -> set[str]:
    """Areas without words, or words without an area."""
    return (set(ROWS) | set(THEMES.values())) ^ set(WORDS)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
