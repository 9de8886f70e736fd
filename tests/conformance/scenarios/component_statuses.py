"""ComponentStatuses: their names, the health of the store, and their tables."""

from __future__ import annotations

from typing import Any

from conformance.scenario import get, post, scenario

PATH = "/api/v1/componentstatuses"
STORE = "etcd-0"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def _listed(tree: Any) -> Any:
    """A list in the order of names, with the health of the store alone: that of other programs is the machine's."""
    found = sorted(tree["items"], key=lambda each: each["metadata"]["name"])
    return {**tree, "items": [each if each["metadata"]["name"] == STORE else each["metadata"] for each in found]}


def _rows(tree: Any) -> Any:
    rows = sorted(tree["rows"], key=lambda row: row["cells"][0])
    return {**tree, "rows": [row if row["cells"][0] == STORE else row["cells"][0] for row in rows]}


SCENARIOS = [
    scenario(
        "read",
        "Kinds, Table, Status errors",
        get(PATH, focus=_listed),
        get(PATH, limit=1, focus=_listed),
        get(PATH, resourceVersion=0, focus=_listed),
        get(PATH, fieldSelector=f"metadata.name={STORE}"),
        get(PATH, fieldSelector="metadata.name=none"),
        get(PATH, labelSelector="a=b"),
        get(PATH, labelSelector="!a", focus=_listed),
        get(f"{PATH}/{STORE}"),
        get(f"{PATH}/none"),
        get(f"{PATH}/{STORE}", accept=TABLE),
        get(PATH, accept=TABLE, focus=_rows),
        get(f"{PATH}/scheduler", focus=lambda tree: tree["metadata"]),
        get(PATH, fieldSelector="spec.x=y"),
        post(PATH, {"metadata": {"name": "a"}}),
        get(PATH, watch="true"),
    )
]
