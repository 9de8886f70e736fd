"""Seams between lists, watches, forms, media types, selectors, continue tokens and resource versions."""

from __future__ import annotations

from typing import Any

from conformance.boats import (
    BOAT,
    BOATS,
    NEWER,
    NUMBER,
    PARTIAL,
    SCALED,
    STRING,
    TABLE,
    TWO,
    boat,
    installed,
    obj,
    version,
)
from conformance.bodies import (
    CM,
    DEPLOYMENT,
    POD,
    SECRET,
    configmap,
    deployment,
    pod,
)
from conformance.scenario import (
    Step,
    delete,
    ends,
    frames,
    get,
    patch,
    post,
    put,
    scenario,
    watch,
)

YAML, PROTO = "application/yaml", "application/vnd.kubernetes.protobuf"
FORMS = [
    TABLE, PARTIAL, PARTIAL.replace("PartialObjectMetadata", "PartialObjectMetadataList"), TABLE.replace("json", "yaml"), TABLE.replace("json", "vnd.kubernetes.protobuf"), PARTIAL.replace("json", "yaml"), PARTIAL.replace("json", "vnd.kubernetes.protobuf"),
    TABLE.replace("v=v1;", "v=v1beta1;"), PARTIAL.replace("v=v1;", "v=v1beta1;"), TABLE.replace("v=v1;", "v=v2;"), "application/json;as=Table", "application/json;as=Other;v=v1;g=meta.k8s.io", "application/json;as=Table;g=meta.k8s.io;v=v1, application/json",
    "application/json;q=0.1, application/yaml;q=0.9", "*/*", "application/*", "text/html", "application/json;stream=watch", "application/json;as=Table;v=v1;g=meta.k8s.io;stream=watch", "application/json;pretty=1", "application/json;profile=nested", YAML + ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io;q=0.5, " + TABLE,
]  # fmt: skip


def names(tree: Any) -> Any:
    """The names of a list and whether more follows, or what a refusal says."""
    return (
        [
            [each["metadata"]["name"] for each in tree["items"]],
            "continue" in tree["metadata"],
            tree["metadata"].get("remainingItemCount"),
        ]
        if isinstance(tree, dict) and "items" in tree
        else tree
    )


FIVE: list[Step] = [
    post(CM, configmap(name, labels={"odd": str(index % 2)}), as_=name) for index, name in enumerate("abcde")
]
INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}

SCENARIOS = [
    scenario("forms-of-errors", "Negotiation, Table, Status errors", [each for accept in FORMS for each in (get(f"{CM}/none", accept=accept), post(CM, {"metadata": {}}, accept=accept), delete(f"{CM}/none", accept=accept), patch(f"{CM}/none", {}, accept=accept))]),
    scenario("forms-of-writes", "Negotiation, Table", [each for accept in FORMS for each in (post(CM, configmap(), accept=accept), patch(f"{CM}/a", {"data": {"x": "y"}}, accept=accept), patch(f"{CM}/a", configmap("a", {"z": "z"}), "apply", fieldManager="m", accept=accept), put(f"{CM}/a", configmap(), accept=accept, dryRun="All"), delete(f"{CM}/a", accept=accept), delete(CM, accept=accept))]),
    scenario("forms-of-subresources", "Negotiation, Subresources", post(DEPLOYMENT, deployment()), post(POD, pod()), [each for accept in FORMS for each in (get(f"{DEPLOYMENT}/a/scale", accept=accept), patch(f"{DEPLOYMENT}/a/scale", {"spec": {"replicas": 1}}, accept=accept), get(f"{DEPLOYMENT}/a/status", accept=accept), post(f"{POD}/a/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}, "deleteOptions": {"dryRun": ["All"]}}, accept=accept))]),
    scenario("forms-of-custom-objects", "Negotiation, Table, Kinds", installed(version("v1", obj(spec=obj(masts=NUMBER), status=obj(masts=NUMBER, selector=STRING)), **SCALED)), [each for accept in FORMS if "MetadataList" not in accept for each in (post(BOATS, boat(spec={"masts": 1}), accept=accept), get(BOATS, accept=accept), get(BOAT, accept=accept, includeObject="None"), patch(BOAT, boat(spec={"masts": 2}), "apply", fieldManager="m", accept=accept, force="true"), get(f"{BOAT}/scale", accept=accept), delete(BOAT, accept=accept))]),
    scenario("include-object", "Table", *FIVE, [get(CM, accept=TABLE, includeObject=each, limit=2) for each in ("None", "Metadata", "Object", "", "none", "Other")], get(f"{CM}/a", accept=TABLE, includeObject="Other"), get(CM, accept=PARTIAL, includeObject="Other"), watch("w", CM, accept=TABLE, includeObject="Object", resourceVersion="$rv:d"), frames("w", 1), watch("x", CM, accept=TABLE, includeObject="Other", resourceVersion="$rv:d"), watch("y", CM, accept=TABLE, resourceVersion="$rv:c"), frames("y", 2)),
    scenario(
        "tokens-across-requests", "List chunking, Status errors",
        *FIVE, get(CM, limit=2, as_="p", focus=None), get(CM, continue_="$continue:p", limit=1, focus=names), get(CM, continue_="$continue:p", focus=names), get(CM, continue_="$continue:p", limit=0, focus=names),
        get(CM, continue_="$continue:p", labelSelector="odd=1", focus=names), get(CM, continue_="$continue:p", fieldSelector="metadata.name=a", focus=names), get(CM, continue_="$continue:p", fieldSelector="metadata.name=d", focus=names),
        get(CM, continue_="$continue:p", resourceVersion="0", focus=names), get(CM, continue_="$continue:p", resourceVersion="$rv:a"), get(CM, continue_="$continue:p", resourceVersion="0", resourceVersionMatch="NotOlderThan"), get(CM, continue_="$continue:p", resourceVersionMatch="Exact"),
        get(SECRET, continue_="$continue:p", focus=names), get("/api/v1/configmaps", continue_="$continue:p", limit=1, focus=lambda tree: tree.get("message")), get(CM, continue_="$continue:p", accept=TABLE, limit=1), get(CM, continue_="$continue:p", accept=PARTIAL, limit=1),
        delete(f"{CM}/c"), get(CM, continue_="$continue:p", focus=names), get(CM, continue_="$continue:p", watch="true", timeoutSeconds=1), get(CM, continue_="x", watch="true", timeoutSeconds=1), get(f"{CM}/a", continue_="x", limit=1, focus=lambda tree: tree["kind"]),
        get(CM, limit=-1, focus=names), get(CM, limit="x"), get(CM, limit=1 << 63), get(CM, limit=(1 << 63) - 1, focus=names), get(CM, limit=" 1"), get(CM, limit="+1", focus=names), get(CM, limit="1e1"), get(CM, limit="", focus=names), get(CM, limit="0x1"),
    ),
    scenario(
        "deletion-of-collections", "deletecollection, Status errors",
        *FIVE, delete(CM, limit=2, focus=names), get(CM, focus=names), delete(CM, limit=1, continue_="x"), delete(CM, resourceVersion="$rv:a", focus=names), get(CM, focus=names),
        *FIVE, get(CM, limit=2, as_="p", focus=None), delete(CM, continue_="$continue:p", focus=names), get(CM, focus=names), delete(CM, resourceVersion="0", labelSelector="odd=1", focus=names), delete(CM, resourceVersionMatch="Exact", resourceVersion="$rv:b", focus=names), get(CM, focus=names),
        delete(CM, {"preconditions": {"uid": "x"}}), delete(CM, {"preconditions": {"resourceVersion": "1"}}), delete(CM, {"dryRun": ["All"]}, focus=names), delete(CM, {"propagationPolicy": "Foreground"}, labelSelector="odd=0", focus=names), get(CM, focus=names), delete(CM, fieldSelector="metadata.name=a,metadata.name=b", focus=names), delete(CM, fieldSelector="x=y"), delete(CM, labelSelector="a b"), delete(CM, watch="true", timeoutSeconds=1, focus=names), delete(CM, sendInitialEvents="true"), delete(CM, limit="x"), delete(CM, timeoutSeconds="x"), delete("/api/v1/configmaps"), delete(f"{CM}/", focus=lambda tree: tree.get("code")),
    ),
    scenario(
        "watches-of-odd-versions", "Watch stream, resourceVersion, Watch errors, Bookmarks",
        *FIVE, watch("zero", CM, resourceVersion="0", timeoutSeconds=1), ends("zero"), watch("unset", CM, timeoutSeconds=1, labelSelector="odd=1"), ends("unset"), watch("match", CM, resourceVersion="$rv:c", resourceVersionMatch="Exact", timeoutSeconds=1), watch("future", CM, resourceVersion="999999999", timeoutSeconds=1), ends("future"),
        watch("neg", CM, resourceVersion="-1"), watch("text", CM, resourceVersion="x"), watch("limit", CM, resourceVersion="$rv:c", limit=1, timeoutSeconds=1), ends("limit"), watch("seconds", CM, timeoutSeconds="x"), watch("book", CM, resourceVersion="$rv:d", allowWatchBookmarks="x", timeoutSeconds=1), ends("book"),
        watch("name", f"{CM}", fieldSelector="metadata.name=c", resourceVersion="$rv:a", timeoutSeconds=1), ends("name"), get("/api/v1/watch/namespaces/{ns}/configmaps/b", resourceVersion="$rv:a", timeoutSeconds=1), get("/api/v1/watch/namespaces/{ns}/configmaps", fieldSelector="metadata.name=b", resourceVersion="$rv:a", timeoutSeconds=1), get(CM, watch="1", timeoutSeconds=1, resourceVersion="$rv:e", accept=TABLE), get(CM, watch="TRUE", timeoutSeconds=1, resourceVersion="$rv:e"), get(CM, watch="0", focus=names), get(CM, watch="False", focus=names),
        watch("list", CM, timeoutSeconds=1, labelSelector="odd=1", **INITIAL), ends("list"), watch("list2", CM, timeoutSeconds=1, fieldSelector="metadata.name=b", resourceVersion="$rv:e", accept=PARTIAL, **INITIAL), ends("list2"), watch("list3", CM, timeoutSeconds=1, accept=TABLE, **INITIAL), ends("list3"), watch("list4", CM, timeoutSeconds=1, continue_="x", **INITIAL), watch("list5", CM, timeoutSeconds=1, limit=1, **INITIAL), ends("list5"),
    ),
    scenario(
        "objects-in-and-out-of-two-selectors", "Selector transitions, Watch stream",
        post(POD, pod("a"), as_="a"), watch("w", POD, labelSelector="x", fieldSelector="status.phase=Running", resourceVersion="$rv:a"), watch("p", POD, labelSelector="x", fieldSelector="status.phase=Running", resourceVersion="$rv:a", accept=PARTIAL), watch("t", POD, labelSelector="x", fieldSelector="status.phase!=Pending", resourceVersion="$rv:a", accept=TABLE),
        patch(f"{POD}/a/status", {"status": {"phase": "Running"}}), patch(f"{POD}/a", {"metadata": {"labels": {"x": "1"}}}), frames("w", 1), frames("p", 1), frames("t", 1), patch(f"{POD}/a", {"metadata": {"labels": {"x": "2"}, "finalizers": ["example.com/f"]}}), frames("w", 1), frames("p", 1), frames("t", 1), delete(f"{POD}/a", gracePeriodSeconds=0), frames("w", 1), frames("p", 1), frames("t", 1), patch(f"{POD}/a/status", {"status": {"phase": "Succeeded"}}), frames("w", 1), frames("p", 1), frames("t", 1), patch(f"{POD}/a", {"metadata": {"finalizers": None}}), frames("t", 1),
    ),
    scenario("watch-of-the-other-version-with-columns", "Watch stream, Table", installed(TWO[0] | {"additionalPrinterColumns": [{"name": "N", "type": "string", "jsonPath": ".spec.name"}]}, TWO[1] | {"additionalPrinterColumns": [{"name": "Crew", "type": "integer", "jsonPath": ".spec.crew"}, {"name": "Odd", "type": "date", "jsonPath": ".spec.name"}]}), post(BOATS, boat(spec={"name": "x"}), as_="a"), watch("t", NEWER, accept=TABLE, includeObject="Object", resourceVersion="0"), frames("t", 1), patch(BOAT, {"spec": {"masts": 2}}), frames("t", 1), watch("l", NEWER, accept=TABLE, timeoutSeconds=1, **INITIAL), ends("l"), get(NEWER, accept=TABLE, limit=1), get(f"{NEWER}/a", accept=TABLE, includeObject="Object"), delete(BOAT, accept=TABLE), frames("t", 1)),
    scenario("gets-with-options-of-lists", "resourceVersion, Status errors", *FIVE, [get(f"{CM}/a", focus=lambda tree: tree.get("message") or tree["kind"], **{"resourceVersion": version_, **more}) for version_ in ("", "0", "1", "$rv:c", "x", "-1", "999999999999") for more in ({}, {"resourceVersionMatch": "Exact"}, {"resourceVersionMatch": "NotOlderThan"}, {"resourceVersionMatch": "x"})]),
    scenario("lists-with-odd-versions", "resourceVersion, Status errors, List chunking", *FIVE, [get(CM, focus=lambda tree: names(tree) if "items" in tree else tree.get("message"), **{"resourceVersion": version_, **more}) for version_ in ("", "0", "$rv:c", "x", "-1", "18446744073709551616", "0x1", "1_0") for more in ({}, {"resourceVersionMatch": "Exact"}, {"resourceVersionMatch": "NotOlderThan"}, {"resourceVersionMatch": "x"}, {"limit": 2}, {"limit": 2, "resourceVersionMatch": "Exact"}, {"limit": 2, "resourceVersionMatch": "NotOlderThan"})]),
    scenario("pretty-and-other-query", "Negotiation, Status errors", post(CM, configmap()), [get(f"{CM}/a", pretty=each) for each in ("true", "1", "x", "", "false", "0")], get(f"{CM}/a", headers=(("User-Agent", "curl/8"),)), get(f"{CM}/none", pretty="true"), get(CM, pretty="true", accept=YAML), get(f"{CM}/a", export="true"), get(f"{CM}/a", exact="true"), delete(f"{CM}/a", pretty="true")),
]  # fmt: skip
