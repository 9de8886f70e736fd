"""Bodies as Go's clients send them: protobuf, good and bad, and which form is answered."""

from __future__ import annotations

from typing import Any

from conformance.bodies import (
    CLUSTER_KINDS,
    CLUSTER_ROLE,
    CM,
    CRON_JOB,
    DEPLOYMENT,
    EVENT,
    JOB,
    KINDS,
    LEASE,
    NEW_EVENT,
    POD,
    SECRET,
    SERVICE,
    Tree,
    configmap,
    container,
    cron_job,
    deployment,
    event,
    job,
    lease,
    merged,
    named,
    new_event,
    pod,
    role,
    secret,
    service,
    template,
)
from conformance.protobuf_encoding import MAGIC, PROTOBUF, Protobuf, bytes_field, envelope, number_field
from conformance.scenario import Call, call, delete, get, post, put, scenario

from samples.site import GROUP

ONE = f"{CM}/a"
SITES = f"/apis/{GROUP}/v1/namespaces/{{ns}}/sites"
REVISIONS = "/apis/apps/v1/namespaces/{ns}/controllerrevisions"
SITE = {"apiVersion": f"{GROUP}/v1", "kind": "Site", "metadata": {"name": "a"}, "spec": {"image": "a"}}


def sent(method: Any, path: str, tree: Tree, **options: Any) -> Call:
    """A request with an object as protobuf."""
    return method(path, Protobuf(tree), content=PROTOBUF, **options)


def raw(method: Any, path: str, body: bytes, **options: Any) -> Call:
    """A request with bytes that are called protobuf."""
    return method(path, body, content=PROTOBUF, **options)


def options(**fields: Any) -> Protobuf:
    """The options of a deletion."""
    return Protobuf({"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions", **fields})


def delete_with(path: str, body: Protobuf | bytes, **query: Any) -> Call:
    """A DELETE with options as protobuf."""
    return delete(path, body, content=PROTOBUF, **query)


META = bytes_field(1, bytes_field(1, b"a"))

RICH_POD = pod(
    volumes=[
        {"name": "e", "emptyDir": {"sizeLimit": "1.5Gi"}},
        {
            "name": "c",
            "configMap": {"name": "c", "defaultMode": 0o600, "items": [{"key": "k", "path": "p", "mode": 0}]},
        },
        {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}]}},
        {"name": "h", "hostPath": {"path": "/tmp", "type": ""}},
    ],
    containers=[
        container(
            command=["a", ""],
            env=[
                {"name": "A", "value": ""},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": False}}},
                {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
                {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ],
            envFrom=[{"prefix": "P_", "configMapRef": {"name": "c"}}],
            ports=[{"containerPort": 80, "name": "http"}],
            resources={"limits": {"cpu": "0.5", "memory": "1024Mi"}, "requests": {"cpu": "100m"}},
            livenessProbe={"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
            readinessProbe={"tcpSocket": {"port": 80}},
            lifecycle={"preStop": {"sleep": {"seconds": 0}}},
            securityContext={"runAsUser": 0, "privileged": False, "capabilities": {"add": ["NET_ADMIN"]}},
            volumeMounts=[{"name": "e", "mountPath": "/e", "readOnly": True}],
        )
    ],
    securityContext={"supplementalGroups": [1, 0, 7], "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "0"}]},
    tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": 0, "effect": "NoExecute"}],
    terminationGracePeriodSeconds=0,
    affinity={
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}]
            }
        }
    },
    topologySpreadConstraints=[
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    ],
    automountServiceAccountToken=False,
)

#: Objects with values of every sort, by name.
RICH: dict[str, tuple[str, Tree]] = {
    "pod": (POD, RICH_POD),
    "secret": (SECRET, secret(stringData={"a": "b"}, data={"c": "AP8="}, type="example.com/own", immutable=False)),
    "deployment": (
        DEPLOYMENT,
        deployment(
            replicas=0,
            paused=True,
            strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 1}},
            revisionHistoryLimit=0,
            progressDeadlineSeconds=30,
            minReadySeconds=3,
            template=template(nodeSelector={"a": "b"}),
        ),
    ),
    "service": (
        SERVICE,
        service(
            ports=[
                {"port": 80, "targetPort": "http", "name": "a"},
                {"port": 81, "targetPort": 8080, "name": "b", "protocol": "UDP"},
                {"port": 82, "name": "c"},
            ],
            sessionAffinity="ClientIP",
            sessionAffinityConfig={"clientIP": {"timeoutSeconds": 5}},
            clusterIP="None",
            publishNotReadyAddresses=True,
        ),
    ),
    "lease": (
        LEASE,
        lease(
            holderIdentity="",
            leaseDurationSeconds=15,
            acquireTime="2024-01-02T03:04:05.000006Z",
            renewTime="1970-01-01T00:00:00.000000Z",
            leaseTransitions=0,
        ),
    ),
    "job": (
        JOB,
        job(
            parallelism=0,
            completions=3,
            completionMode="Indexed",
            backoffLimitPerIndex=0,
            suspend=False,
            ttlSecondsAfterFinished=0,
            podFailurePolicy={
                "rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1, 2]}}],
            },
        ),
    ),
    "cron-job": (CRON_JOB, cron_job(timeZone="Etc/UTC", startingDeadlineSeconds=0, suspend=True)),
    "cluster-role": (
        CLUSTER_ROLE,
        role(
            "{free}",
            "ClusterRole",
            rules=[{"nonResourceURLs": ["/healthz"], "verbs": ["get", "*"]}],
            aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "{free}"}}]},
        ),
    ),
    "event": (
        EVENT,
        merged(
            event(count=3, firstTimestamp="2024-01-02T03:04:05Z", lastTimestamp="2024-01-02T03:04:06Z"),
            {"metadata": {"namespace": "{ns}"}, "source": {"component": "c"}},
        ),
    ),
    "event-of-its-group": (
        NEW_EVENT,
        new_event(series={"count": 2, "lastObservedTime": "2024-01-02T03:04:05.999999Z"}),
    ),
    "revision": (REVISIONS, named("apps/v1", "ControllerRevision", "a", revision=1, data={"a": [1, "b", None]})),
    "metadata": (
        CM,
        configmap(
            labels={"a": ""},
            annotations={"a": "ä\n"},
            finalizers=["example.com/hold"],
            ownerReferences=[
                {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1", "controller": False},
            ],
            creationTimestamp="2020-01-01T00:00:00Z",
        ),
    ),
}

RESOURCES = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "{ns}"}}}
REVIEW = "/apis/authorization.k8s.io/v1"
SUBJECT = {"user": "somebody", "groups": ["a"], "extra": {"k": ["a", "b"]}}


def review(kind: str, **fields: Any) -> Tree:
    """A question."""
    return {"apiVersion": "authorization.k8s.io/v1", "kind": kind, **fields}


SCENARIOS = [
    *(
        scenario(f"create-{name}", "Negotiation, Kinds", sent(post, path, tree), get(f"{path}/a"))
        for name, (path, tree) in KINDS.items()
    ),
    *(
        scenario(f"create-{name}", "Negotiation, Kinds", sent(post, path, tree))
        for name, (path, tree) in CLUSTER_KINDS.items()
    ),
    *(
        scenario(
            f"rich-{name}",
            "Negotiation, Kinds",
            sent(post, path, tree, as_="a"),
            get(f"{path}/$name:a"),
            sent(put, f"{path}/$name:a", merged(tree, {"metadata": {"annotations": {"b": "c"}}})),
        )
        for name, (path, tree) in RICH.items()
    ),
    scenario(
        "media-types",
        "Negotiation",
        *(
            post(CM, Protobuf(configmap(f"a{index}")), content=content)
            for index, content in enumerate(
                (
                    f"{PROTOBUF};type=x",
                    f"{PROTOBUF}; charset=utf-8",
                    PROTOBUF.upper(),
                    f"{PROTOBUF};stream=watch",
                    "application/protobuf",
                    "application/x-protobuf",
                    "application/octet-stream",
                    "",
                )
            )
        ),
        post(CM, Protobuf(configmap("b")), content="application/json"),
        post(CM, Protobuf(configmap("b")), content="application/yaml"),
        get(CM),
    ),
    scenario(
        "patches-are-never-protobuf",
        "Negotiation, Patch",
        post(CM, configmap()),
        call("PATCH", ONE, Protobuf(configmap()), content=PROTOBUF),
        call("PATCH", ONE, Protobuf(configmap()), content=PROTOBUF, fieldManager="me", force="true"),
    ),
    scenario(
        "updates",
        "Negotiation, Update",
        sent(post, CM, configmap(), as_="a"),
        sent(put, ONE, configmap(data={"key": "other"}, resourceVersion="$rv:a"), as_="b"),
        sent(put, ONE, configmap(data={"key": "again"}, resourceVersion="$rv:a")),
        sent(put, ONE, configmap(data={"key": "other"}, resourceVersion="$rv:b")),
        sent(put, ONE, configmap("b")),
        sent(put, ONE, configmap(data={}, uid="$uid:a")),
        sent(put, f"{CM}/b", configmap("b")),
        sent(post, CM, configmap()),
        sent(post, CM, configmap("", generateName="g-"), focus=lambda tree: tree["data"]),
        get(ONE),
    ),
    scenario(
        "subresources",
        "Negotiation, Subresources",
        sent(post, DEPLOYMENT, deployment(), as_="a"),
        sent(
            put,
            f"{DEPLOYMENT}/a/scale",
            {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a", "namespace": "{ns}"}, "spec": {"replicas": 3}},
        ),
        sent(put, f"{DEPLOYMENT}/a/scale", deployment()),
        sent(put, f"{DEPLOYMENT}/a/status", merged(deployment(), {"status": {"replicas": 2, "observedGeneration": 0}})),
        sent(post, POD, pod()),
        sent(
            post,
            f"{POD}/a/binding",
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}},
        ),
        sent(
            put,
            f"{POD}/a/status",
            merged(
                pod(nodeName="n"),
                {
                    "status": {
                        "phase": "Running",
                        "startTime": "2024-01-02T03:04:05Z",
                        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-02T03:04:05Z"}],
                    }
                },
            ),
        ),
        sent(
            post,
            f"{POD}/a/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}, "deleteOptions": {"gracePeriodSeconds": 0}},
        ),
        get(f"{POD}/a"),
    ),
    scenario(
        "deletions",
        "Negotiation, Delete",
        *(post(CM, configmap(name), as_=name) for name in "abcdefgh"),
        delete_with(f"{CM}/a", options()),
        delete_with(f"{CM}/b", options(dryRun=["All"])),
        delete_with(f"{CM}/b", options(dryRun=["Some"])),
        delete_with(f"{CM}/b", options(preconditions={"uid": "other"})),
        delete_with(f"{CM}/b", options(preconditions={"uid": "$uid:b", "resourceVersion": "$rv:b"})),
        delete_with(f"{CM}/c", options(propagationPolicy="Foreground", gracePeriodSeconds=0)),
        delete_with(f"{CM}/d", options(propagationPolicy="Sideways")),
        delete_with(f"{CM}/d", options(orphanDependents=False)),
        delete_with(f"{CM}/e", Protobuf({"apiVersion": "v1", "kind": "DeleteOptions"})),
        delete_with(f"{CM}/f", Protobuf({"apiVersion": "apps/v1", "kind": "DeleteOptions"})),
        delete_with(f"{CM}/g", envelope("", "", b"")),
        delete_with(f"{CM}/h", envelope("v2", "DeleteOptions", b"")),
        delete_with(f"{CM}/h", envelope("example.com/v1", "DeleteOptions", b"")),
        delete_with(f"{CM}/missing", options()),
        get(CM, focus=lambda tree: [item["metadata"]["name"] for item in tree["items"]]),
    ),
    scenario(
        "deletions-refused",
        "Negotiation, Delete, Status errors",
        post(CM, configmap()),
        delete_with(ONE, Protobuf(configmap())),
        delete_with(ONE, envelope("meta.k8s.io/v1", "Nope", b"")),
        delete_with(ONE, envelope("meta.k8s.io/v1", "DeleteOptions", bytes_field(1, b"soon"))),
        delete_with(ONE, envelope("meta.k8s.io/v1", "DeleteOptions", b"\x08")),
        delete_with(ONE, MAGIC),
        delete_with(ONE, b"{}"),
        delete_with(ONE, MAGIC + number_field(1, 1)),
        delete(ONE, "gracePeriodSeconds: soon\n", content="application/yaml"),
        delete(ONE, "dryRun: [All]\n", content="application/yaml"),
        delete(ONE, "kind: ConfigMap\n", content="application/yaml"),
        delete(ONE, "a: b: c\n", content="application/yaml"),
        delete(ONE, "- a\n", content="application/yaml"),
        delete(ONE, "null", dryRun="All"),
        delete(ONE, "\n", content="application/yaml"),
        post(CM, configmap()),
        delete(ONE, {"dryRun": ["All"]}, content="application/json;;"),
        delete_with(CM, options(dryRun=["All"])),
        delete_with(CM, envelope("meta.k8s.io/v1", "DeleteOptions", b"\x08")),
        delete_with(CM, options(), labelSelector="a=b"),
        get(ONE),
    ),
    scenario(
        "deletion-of-a-pod",
        "Negotiation, Delete",
        sent(post, POD, pod(nodeName="n")),
        delete_with(f"{POD}/a", options(gracePeriodSeconds=7)),
        delete_with(f"{POD}/a", options(gracePeriodSeconds=0)),
        get(f"{POD}/a"),
    ),
    scenario(
        "custom-resources",
        "Negotiation, Status errors",
        raw(post, SITES, envelope(f"{GROUP}/v1", "Site", META)),
        post(SITES, SITE),
        delete_with(f"{SITES}/a", options(preconditions={"uid": "other"})),
        delete_with(f"{SITES}/a", b"nope"),
        delete_with(f"{SITES}/a", options()),
        get(f"{SITES}/a"),
    ),
    scenario(
        "reviews",
        "Negotiation, Kinds",
        sent(post, f"{REVIEW}/selfsubjectaccessreviews", review("SelfSubjectAccessReview", **RESOURCES)),
        sent(
            post,
            f"{REVIEW}/selfsubjectaccessreviews",
            review("SelfSubjectAccessReview", spec={"nonResourceAttributes": {"verb": "get", "path": "/healthz"}}),
        ),
        sent(post, f"{REVIEW}/selfsubjectaccessreviews", review("SelfSubjectAccessReview", spec={})),
        raw(post, f"{REVIEW}/selfsubjectaccessreviews", envelope("authorization.k8s.io/v1", "SelfSubjectAccessReview", b"\x08")),
    ),
    scenario(
        "who-am-i",
        "Negotiation, Kinds",
        sent(
            post,
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
            focus=lambda tree: [tree["kind"], sorted(tree["status"])],
        ),
    ),
    scenario(
        "answers",
        "Negotiation",
        sent(post, CM, configmap(), accept=f"{PROTOBUF},application/json"),
        get(ONE, accept=f"{PROTOBUF},application/json"),
        get(CM, accept=f"{PROTOBUF},application/json"),
        get(ONE, accept=PROTOBUF),
    ),
    scenario(
        "json-is-answered-to-who-takes-it-first",
        "Negotiation",
        sent(post, CM, configmap(), accept=f"application/json,{PROTOBUF}"),
        get(ONE, accept=f"application/json,{PROTOBUF}"),
        get(CM, accept=f"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{PROTOBUF}"),
        get(ONE, accept=f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1;g=meta.k8s.io,application/json", focus=lambda tree: tree["kind"]),
    ),
]  # fmt: skip
