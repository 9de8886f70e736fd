"""Answers in protobuf: objects, lists, metadata, errors and watches, and who gets another media type instead."""

from __future__ import annotations

from conformance.bodies import (
    CLUSTER_KINDS,
    CM,
    DEPLOYMENT,
    KINDS,
    POD,
    configmap,
    deployment,
    pod,
)
from conformance.protobuf_encoding import PROTOBUF, Protobuf
from conformance.scenario import Scenario, call, delete, ends, frames, get, initial, patch, post, put, scenario, watch

from samples.site import GROUP

ONE = f"{CM}/a"
BOTH = f"{PROTOBUF},application/json"
META = ";g=meta.k8s.io;v=v1"
PARTIAL = f"{PROTOBUF};as=PartialObjectMetadata{META}"
PARTIAL_LIST = f"{PROTOBUF};as=PartialObjectMetadataList{META}"
TABLE = f"{PROTOBUF};as=Table{META}"
SITES = f"/apis/{GROUP}/v1/namespaces/{{ns}}/sites"
SITE = {"apiVersion": f"{GROUP}/v1", "kind": "Site", "metadata": {"name": "a"}, "spec": {"image": "a"}}
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
REVIEW = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "SelfSubjectAccessReview",
    "spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "{ns}"}},
}


def _kinds() -> list[Scenario]:
    """Every kind that other scenarios create, written and read in protobuf."""
    made = []
    for name, (path, tree) in {**KINDS, **CLUSTER_KINDS}.items():
        one = f"{path}/{tree['metadata']['name']}"
        made.append(
            scenario(
                f"kind-{name}",
                "Negotiation, Kinds",
                post(path, Protobuf(tree), content=PROTOBUF, accept=PROTOBUF),
                get(one, accept=PROTOBUF),
                patch(one, {"metadata": {"labels": {"a": "b"}}}, accept=PROTOBUF),
                get(one, accept=PARTIAL),
                delete(one, accept=PROTOBUF),
            )
        )
    return made


SCENARIOS = [
    *_kinds(),
    scenario(
        "verbs",
        "Negotiation",
        post(CM, configmap(data={"k": "v"}), accept=PROTOBUF),
        get(ONE, accept=PROTOBUF),
        get(ONE, accept=BOTH),
        put(ONE, configmap(data={"k": "w"}), accept=PROTOBUF),
        patch(ONE, {"data": {"l": ""}}, accept=PROTOBUF),
        patch(ONE, configmap(data={"m": "x"}), "apply", accept=PROTOBUF, fieldManager="m"),
        get(CM, accept=PROTOBUF),
        get(CM, accept=PROTOBUF, labelSelector="no=thing"),
        delete(ONE, accept=PROTOBUF),
        delete(CM, accept=PROTOBUF),
    ),
    scenario(
        "order-of-clauses",
        "Negotiation",
        post(CM, configmap(), accept=f"application/json,{PROTOBUF}"),
        get(ONE, accept=f"{PROTOBUF};q=0.5,application/json;q=0.4"),
        get(ONE, accept=f"{PROTOBUF};q=0.4,application/json;q=0.5"),
        get(ONE, accept=f"{PROTOBUF},*/*"),
        get(ONE, accept=f"*/*,{PROTOBUF}"),
        get(ONE, accept=f"{PROTOBUF};stream=watch"),
        get(ONE, accept=f"text/plain,{PROTOBUF}"),
        get(ONE, accept=f"application/yaml,{PROTOBUF}"),
    ),
    scenario(
        "errors",
        "Negotiation, Status errors",
        get(ONE, accept=PROTOBUF),
        get(ONE, accept=BOTH),
        get(ONE, accept=f"application/yaml,{PROTOBUF}"),
        get(ONE, accept=PARTIAL),
        get(ONE, accept=f"{PARTIAL},{PROTOBUF}"),
        post(CM, {**configmap(), "data": {"k": 1}}, accept=PROTOBUF),
        post(CM, configmap("A"), accept=PROTOBUF),
        post(CM, configmap(), accept=PROTOBUF),
        post(CM, configmap(), accept=PROTOBUF),
        post(POD, pod(containers=[]), accept=PROTOBUF),
        get("/api/v1/namespaces/{ns}/nothings", accept=PROTOBUF),
        call("PUT", CM, configmap(), accept=PROTOBUF),
    ),
    scenario(
        "pages",
        "Negotiation, List chunking",
        *(post(CM, configmap(name)) for name in "abc"),
        get(CM, accept=PROTOBUF, limit=2, as_="page"),
        get(CM, accept=PROTOBUF, limit=2, continue_="$continue:page"),
        get(CM, accept=PARTIAL_LIST, limit=2),
    ),
    scenario(
        "partial-metadata",
        "Negotiation, PartialObjectMetadata",
        post(CM, configmap(labels={"a": "b"}), accept=PARTIAL),
        get(ONE, accept=PARTIAL),
        get(CM, accept=PARTIAL_LIST),
        get(CM, accept=PARTIAL_LIST, labelSelector="no=thing"),
        get(CM, accept=PARTIAL),
        get(ONE, accept=PARTIAL_LIST),
        get(ONE, accept=f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1"),
        get(ONE, accept=f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v2"),
        get(ONE, accept=f"{PROTOBUF};as=Other{META},{PARTIAL}"),
    ),
    scenario(
        "tables-have-no-protobuf",
        "Negotiation, Table",
        post(CM, configmap(), accept=TABLE),
        post(CM, configmap()),
        get(ONE, accept=TABLE),
        get(CM, accept=TABLE),
        get(CM, accept=f"{TABLE},application/json"),
        get(CM, accept=f"{TABLE},{PROTOBUF}"),
    ),
    scenario(
        "custom-resources",
        "Negotiation",
        post(SITES, SITE, accept=PROTOBUF),
        post(SITES, SITE, accept=BOTH),
        get(f"{SITES}/a", accept=PROTOBUF),
        get(SITES, accept=PROTOBUF),
        get(f"{SITES}/a", accept=BOTH),
        get(f"{SITES}/b", accept=PROTOBUF),
        get(f"{SITES}/b", accept=BOTH),
        get(f"{SITES}/a", accept=PARTIAL),
        get(SITES, accept=PARTIAL_LIST),
        get(f"{SITES}/a", accept=f"{PROTOBUF},application/yaml"),
    ),
    scenario(
        "subresources",
        "Negotiation, Subresources",
        post(DEPLOYMENT, deployment(), accept=PROTOBUF),
        get(f"{DEPLOYMENT}/a/scale", accept=PROTOBUF),
        get(f"{DEPLOYMENT}/a/status", accept=PROTOBUF),
        patch(f"{DEPLOYMENT}/a/scale", {"spec": {"replicas": 2}}, accept=PROTOBUF),
        post(POD, pod(), accept=PROTOBUF),
        post(f"{POD}/a/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"name": "n"}}, accept=PROTOBUF),
        post(f"{POD}/a/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}, accept=PROTOBUF),
    ),
    scenario(
        "reviews",
        "Negotiation",
        post(REVIEWS, REVIEW, accept=PROTOBUF),
        post(REVIEWS, REVIEW, accept=BOTH),
        post(REVIEWS, REVIEW, accept=f"application/json;as=Table{META}"),
        post(REVIEWS, REVIEW, accept=f"application/json;as=Table{META},application/json"),
        post(REVIEWS, REVIEW, accept=TABLE),
    ),
    scenario(
        "watching",
        "Negotiation, Watch stream",
        watch("w", CM, accept=PROTOBUF, labelSelector="a=b"),
        post(CM, configmap(labels={"a": "b"}), as_="a"),
        frames("w", 1),
        patch(ONE, {"data": {"k": "v"}}),
        frames("w", 1),
        patch(ONE, {"metadata": {"labels": {"a": None}}}),
        frames("w", 1),
        watch("v", CM, accept=f"{PROTOBUF};stream=watch", fieldSelector="metadata.name=a", resourceVersion="$rv:a"),
        frames("v", 2),
        delete(ONE),
        frames("v", 1),
    ),
    scenario(
        "watch-list",
        "Negotiation, WatchList",
        post(CM, configmap()),
        watch("w", CM, accept=PROTOBUF, fieldSelector="metadata.name=a", sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true"),
        initial("w"),
        watch("p", CM, accept=f"{PARTIAL},application/json;as=PartialObjectMetadata{META},application/json", fieldSelector="metadata.name=a", sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true"),
        initial("p"),
        patch(ONE, {"data": {"k": "v"}}),
        frames("w", 1),
        frames("p", 1),
    ),
    scenario(
        "watch-of-custom-metadata",
        "Negotiation, WatchList",
        post(SITES, SITE),
        watch("p", SITES, accept=f"{PARTIAL},application/json", sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true"),
        initial("p"),
        watch("w", SITES, accept=PROTOBUF),
        watch("b", SITES, accept=BOTH),
        frames("b", 1),
        delete(f"{SITES}/a"),
        frames("p", 1),
        frames("b", 1),
    ),
    scenario(
        "watches-refused",
        "Negotiation, Watch errors",
        watch("t", CM, accept=TABLE),
        watch("v", CM, accept=PROTOBUF, resourceVersion="x"),
        watch("o", CM, accept=PROTOBUF, resourceVersion="99999999999", timeoutSeconds=1),
        ends("o"),
    ),
]  # fmt: skip
