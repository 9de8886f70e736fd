"""Lists: pieces, selectors, and the rules of resourceVersion."""

from __future__ import annotations

from base64 import urlsafe_b64encode

from conformance.bodies import (
    CM,
    DEPLOYMENT,
    EVENT,
    JOB,
    NAMESPACE,
    POD,
    REPLICA_SET,
    SECRET,
    SERVICE,
    configmap,
    deployment,
    event,
    job,
    merged,
    namespace,
    pod,
    replica_set,
    secret,
    service,
)
from conformance.scenario import Close, delete, frames, get, patch, post, scenario, watch

EVERYWHERE = "/api/v1/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

FIVE = [
    post(CM, configmap(name, {"n": name}, labels={"app": "x" if name in "ace" else "y", "name": name}), as_=name)
    for name in "abcde"
]

LABEL_SELECTORS = (
    "app=x",
    "app==x",
    "app!=x",
    "app",
    "!app",
    "app in (x,y)",
    "app in (y)",
    "app notin (x)",
    "app=x,name=a",
    "app=x,name!=a",
    "name in (a, b ,c)",
    "nothing=here",
    "nothing!=here",
    "",
    ",",
    "app=",
    "app in ()",
    "app in x",
    "=x",
    "app=x=y",
    "app x",
    "a b=c",
    "app=b c",
    "!app=x",
    "app>1",
    "n>1",
    "name>1,name<5",
    "app=x,",
    "app in (x,y",
    "APP=x",
    "-a=b",
    "app='x'",
    "example.com/a=b",
    "Example.com/a=b",
    "app=" + "x" * 64,
)

FIELD_SELECTORS = (
    "metadata.name=a",
    "metadata.name==a",
    "metadata.name!=a",
    "metadata.name=a,metadata.namespace={ns}",
    "metadata.namespace=other",
    "metadata.namespace!={ns}",
    "metadata.name=",
    "",
    "data.n=a",
    "metadata.labels.app=x",
    "metadata.uid=x",
    "name=a",
    "metadata.name=a,metadata.name=b",
    "metadata.name",
    "metadata.name in (a)",
    "=a",
    "metadata.name=a\\,b",
    "metadata.name=A_B",
    "spec.x=1",
)

KIND_FIELDS = {
    "pods": (
        POD,
        pod("a", nodeName="here"),
        (
            "spec.nodeName=here",
            "spec.nodeName=",
            "status.phase=Pending",
            "status.phase!=Pending",
            "spec.restartPolicy=Always",
            "spec.schedulerName=default-scheduler",
            "spec.serviceAccountName=",
            "status.podIP=",
            "status.nominatedNodeName=",
            "spec.hostNetwork=false",
            "spec.hostNetwork=true",
            "spec.x=y",
            "metadata.namespace={ns}",
        ),
    ),
    "secrets": (SECRET, secret(), ("type=Opaque", "type=other", "type!=Opaque", "data=x")),
    "services": (SERVICE, service(), ("spec.type=ClusterIP", "spec.clusterIP=None", "spec.x=y")),
    "events": (
        EVENT,
        event(),
        (
            "involvedObject.name=web",
            "involvedObject.kind=Pod",
            "involvedObject.namespace={ns}",
            "involvedObject.uid=11111111-2222-3333-4444-555555555555",
            "reason=Started",
            "type=Normal",
            "type!=Normal",
            "source=",
            "reportingComponent=",
            "involvedObject.apiVersion=v1",
            "involvedObject.resourceVersion=",
            "involvedObject.fieldPath=",
            "message=x",
        ),
    ),
    "jobs": (JOB, job(), ("status.successful=0", "status.successful=1", "status.failed=0")),
    "replicasets": (REPLICA_SET, replica_set(), ("status.replicas=0", "status.replicas=1", "spec.replicas=1")),
    "deployments": (DEPLOYMENT, deployment(), ("metadata.name=a", "spec.replicas=1", "status.replicas=0")),
}


def _token(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _without_current(tree):
    """The message without the store's version, which others move on."""
    return {**tree, "message": tree["message"].partition(", current:")[0]}


VERSION_RULES = [
    {"resourceVersion": version, "resourceVersionMatch": match, **limit}
    # of an older version than the last, a server may show any later state
    for version in ("", "0", "$rv:e", "x", "-1")
    for match in ("", "NotOlderThan", "Exact", "Never")
    for limit in ({}, {"limit": 2})
]

SCENARIOS = [
    scenario(
        "pieces",
        "List chunking",
        FIVE,
        get(CM, limit=2, as_="one"),
        get(CM, limit=2, continue_="$continue:one", as_="two"),
        get(CM, limit=2, continue_="$continue:two", as_="three"),
        get(CM, limit=5),
        get(CM, limit=6),
        get(CM, limit=4, as_="four"),
        get(CM, continue_="$continue:four"),
        get(CM, limit=1, continue_="$continue:one"),
    ),
    scenario(
        "pieces-are-of-one-moment",
        "List chunking",
        FIVE,
        get(CM, limit=2, as_="one"),
        delete(f"{CM}/c"),
        post(CM, configmap("cc")),
        patch(f"{CM}/d", {"data": {"n": "changed"}}),
        get(CM, limit=2, continue_="$continue:one", as_="two"),
        get(CM, limit=2, continue_="$continue:two"),
        get(CM),
    ),
    scenario(
        "pieces-with-selectors",
        "List chunking, Selectors",
        FIVE,
        get(CM, limit=2, labelSelector="app=x", as_="one"),
        get(CM, limit=2, labelSelector="app=x", continue_="$continue:one"),
        get(CM, limit=1, labelSelector="app=y", as_="two"),
        get(CM, limit=1, labelSelector="app=y", continue_="$continue:two"),
        get(CM, limit=1, fieldSelector="metadata.name!=a", as_="three"),
        get(CM, limit=1, fieldSelector="metadata.name!=a", continue_="$continue:three"),
        get(CM, limit=1, labelSelector="nothing=here"),
        get(CM, limit=1, fieldSelector="metadata.name=c"),
    ),
    scenario(
        "pieces-in-other-forms",
        "List chunking, Table, PartialObjectMetadata",
        FIVE,
        get(CM, limit=2, accept=TABLE, as_="one"),
        get(CM, limit=2, accept=TABLE, continue_="$continue:one"),
        get(CM, limit=2, accept=PARTIAL_LIST, as_="two"),
        get(CM, limit=2, accept=PARTIAL_LIST, continue_="$continue:two"),
    ),
    scenario(
        "bad-tokens",
        "List chunking, Status errors",
        FIVE,
        get(CM, limit=2, as_="one"),
        get(CM, limit=2, continue_="x"),
        get(CM, limit=2, continue_="%%%"),
        get(CM, limit=2, continue_=_token("{}")),
        get(CM, limit=2, continue_=_token("[]")),
        get(CM, limit=2, continue_=_token("hello")),
        get(CM, limit=2, continue_=_token('{"v":"meta.k8s.io/v1","rv":0,"start":"a"}')),
        get(CM, limit=2, continue_=_token('{"v":"meta.k8s.io/v2","rv":5,"start":"a"}')),
        get(CM, limit=2, continue_=_token('{"v":"meta.k8s.io/v1","rv":-1,"start":"b\\u0000"}')),
        get(CM, limit=2, continue_=_token('{"v":"meta.k8s.io/v1","rv":5,"start":""}')),
        get(CM, limit=2, continue_=_token('{"v":"meta.k8s.io/v1","rv":5,"start":"../../x"}')),
        get(CM, limit=2, continue_="$continue:one", resourceVersion="0"),
        get(CM, limit=2, continue_="$continue:one", resourceVersion="5"),
        get(CM, limit=2, continue_="$continue:one", resourceVersionMatch="Exact"),
        get(CM, limit=2, continue_="$continue:one", resourceVersion="5", resourceVersionMatch="Exact"),
        get(CM, watch="true", continue_="$continue:one", timeoutSeconds=1),
    ),
    scenario(
        "versions-in-tokens",
        "List chunking, Status errors",
        FIVE,
        *(
            get(CM, limit=2, continue_=_token(f'{{"v":"meta.k8s.io/v1","rv":{version},"start":"b\\u0000"}}'))
            for version in ("9223372036854775808", "-9223372036854775809", "1" + "0" * 30, "1.5", "1e3", "1000.0", '"12"', "true", "null", "-2", "[]", "{}")
        ),
    ),
    *(
        scenario(
            f"version-{rule['resourceVersion'].replace('$rv:e', 'known') or 'unset'}-{rule['resourceVersionMatch'] or 'unset'}{'-in-pieces' if 'limit' in rule else ''}",
            "resourceVersion",
            FIVE,
            get(CM, **{key: value for key, value in rule.items() if value}),
            get(CM, labelSelector="app=x", **{key: value for key, value in rule.items() if value}),
        )
        for rule in VERSION_RULES
        # what is served from memory at any version may be older than what was just written
        if not (rule["resourceVersion"] == "0" and rule["resourceVersionMatch"] in {"", "NotOlderThan"})
    ),
    scenario(
        "exactly-then",
        "resourceVersion",
        FIVE,
        patch(f"{CM}/a", {"data": {"n": "later"}}, as_="later"),
        delete(f"{CM}/b"),
        get(CM, resourceVersion="$rv:c", resourceVersionMatch="Exact"),
        get(CM, resourceVersion="$rv:e", resourceVersionMatch="Exact"),
        get(CM, resourceVersion="$rv:later", resourceVersionMatch="Exact"),
        get(CM, resourceVersion="$rv:e", resourceVersionMatch="Exact", limit=2, as_="one"),
        get(CM, continue_="$continue:one", limit=2),
        get(CM, resourceVersion="$rv:later", resourceVersionMatch="NotOlderThan"),
        get(f"{CM}/a", resourceVersion="$rv:later"),
        get(f"{CM}/b", resourceVersion="$rv:b"),
    ),
    *(
        scenario(f"version-to-come-{name}", "resourceVersion, Status errors", post(CM, configmap()), get(path, resourceVersion="99999999999", focus=_without_current, **more))
        for name, path, more in (("of-a-list", CM, {}), ("exactly", CM, {"resourceVersionMatch": "Exact"}), ("of-an-object", f"{CM}/a", {}), ("in-pieces", CM, {"limit": 1}))
    ),
    scenario("label-selectors", "Selectors, Status errors", FIVE, *(get(CM, labelSelector=selector) for selector in LABEL_SELECTORS)),
    scenario("label-selectors-on-names", "Selectors", FIVE, *(get(f"{CM}/a", labelSelector=selector) for selector in ("app=x", "app=y", "app in x"))),
    scenario("field-selectors", "Selectors, Status errors", FIVE, *(get(CM, fieldSelector=selector) for selector in FIELD_SELECTORS)),
    scenario(
        "field-selectors-with-two-signs", "Selectors, Watch stream, deletecollection",
        FIVE, get(CM, fieldSelector="metadata.name==a,metadata.namespace=={ns}"),
        watch("one", CM, fieldSelector="metadata.name==a"), patch(f"{CM}/a", {"data": {"x": "y"}}), frames("one", 1), Close("one"),
        delete(CM, fieldSelector="metadata.name==a"), get(CM, fieldSelector="metadata.name!=b"),
    ),
    scenario("both-selectors", "Selectors", FIVE, get(CM, labelSelector="app=x", fieldSelector="metadata.name!=a"), get(CM, labelSelector="app=y", fieldSelector="metadata.name=a")),
    *(
        scenario(f"fields-of-{kind}", "Selectors, Status errors", post(path, body), *(get(path, fieldSelector=selector) for selector in selectors))
        for kind, (path, body, selectors) in KIND_FIELDS.items()
    ),
    scenario(
        "fields-of-namespaces",
        "Selectors",
        post(NAMESPACE, namespace("{free}", labels={"mine": "{u}"})),
        get(NAMESPACE, fieldSelector="metadata.name={free}"),
        get(NAMESPACE, fieldSelector="status.phase=Active", labelSelector="mine={u}"),
        get(NAMESPACE, fieldSelector="status.phase=Terminating", labelSelector="mine={u}"),
        get(NAMESPACE, fieldSelector="name={free}"),
        get(NAMESPACE, fieldSelector="spec.x=y"),
    ),
    scenario(
        "everywhere",
        "Selectors, List chunking",
        *(post(CM.replace("{ns}", place), configmap(name, labels={"mine": "{u}"})) for place in ("{ns}", "{ns2}") for name in ("a", "b")),
        get(EVERYWHERE, labelSelector="mine={u}"),
        get(EVERYWHERE, labelSelector="mine={u}", limit=3, as_="one"),
        get(EVERYWHERE, labelSelector="mine={u}", limit=3, continue_="$continue:one"),
        get(EVERYWHERE, labelSelector="mine={u}", fieldSelector="metadata.namespace={ns2}"),
        get(EVERYWHERE, labelSelector="mine={u}", fieldSelector="metadata.name=a"),
        get(EVERYWHERE, labelSelector="mine={u}", fieldSelector="metadata.name=a,metadata.namespace={ns}"),
    ),
    scenario(
        "nothing-there",
        "List chunking",
        get(CM),
        get(CM, limit=1),
        get(CM, accept=TABLE),
        get(CM, accept=PARTIAL_LIST),
        get(CM.replace("{ns}", "{free}")),
        get(CM.replace("{ns}", "{free}"), limit=1),
        get(f"{CM}/a".replace("{ns}", "{free}")),
    ),
    scenario(
        "order-of-names",
        "Storage",
        *(post(CM, configmap(name)) for name in ("b", "a", "a-b", "a.b", "a0", "aa", "z", "0", "a-a", "a1")),
        get(CM, focus=lambda tree: [one["metadata"]["name"] for one in tree["items"]]),
        get(CM, limit=3, as_="one"),
        get(CM, limit=3, continue_="$continue:one", as_="two"),
        get(CM, limit=3, continue_="$continue:two", as_="three"),
        get(CM, limit=3, continue_="$continue:three"),
    ),
    scenario(
        "items-name-no-kind",
        "Kinds",
        post(DEPLOYMENT, deployment()),
        post(POD, merged(pod(), {"metadata": {"labels": {"app": "a"}}})),
        get(DEPLOYMENT),
        get(POD),
    ),
    scenario(
        "mistakes-in-field-selectors",
        "Selectors, Status errors",
        *[
            get(CM, fieldSelector=text, focus=lambda tree: tree.get("items", tree))
            for text in (
                "metadata.name=x\\", "metadata.name=x\\a", "metadata.name=x\\,y", "metadata.name=a=b",
                "metadata.name!=a=", "metadata.name=a\\=b", "metadata.name=a\\\\", "metadata.name=a,metadata.name",
                "metadata.name=\u00e9\\\u00e9", ",", "metadata.name=a,,metadata.name=b", "a\\,b", "=x", "!",
                "metadata.name=x,y\\", "metadata.name=x\\\n",
            )
        ],
    ),
]  # fmt: skip
