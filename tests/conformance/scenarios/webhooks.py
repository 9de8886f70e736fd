"""Admission webhooks: which are called, with what, and what becomes of their answers."""

from __future__ import annotations

from typing import Any

from conformance.bodies import CM, DEPLOYMENT, POD, configmap, deployment, merged, named, pod
from conformance.hook_server import scripted
from conformance.scenario import Step, Until, delete, get, patch, post, put, scenario

from samples.site import GROUP as GROUP_OF_SITES

SITE = f"/apis/{GROUP_OF_SITES}/v1/namespaces/{{ns}}/sites"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
CREATED = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
ANY = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}
REVIEW = "/apis/authorization.k8s.io/v1"
REVIEWS = {"operations": ["CREATE"], "apiGroups": ["authorization.k8s.io"], "apiVersions": ["v1"], "resources": ["*"]}
#: Other plays send reviews, too, and some of them are about a path.
ASKED = [
    {
        "name": "asked",
        "expression": "has(object.spec.resourceAttributes) && object.spec.resourceAttributes.resource == '{free}'",
    }
]
HERE = {"matchLabels": {"kubernetes.io/metadata.name": "{ns}"}}


def hook(name: str = "one", script: dict[str, Any] | str | None = None, **more: Any) -> dict[str, Any]:
    """A webhook that sees the objects of this play, except for the one that asks whether it is there."""
    path = script if isinstance(script, str) else scripted(**(script or {}))
    return {
        "name": f"{name}.example.com",
        "clientConfig": {"url": "{hooks}" + path, "caBundle": "{ca}"},
        "rules": [CREATED],
        "namespaceSelector": HERE,
        "objectSelector": {"matchExpressions": [{"key": "ready", "operator": "DoesNotExist"}]},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 10,
    } | more


def configured(*hooks: dict[str, Any], kind: str = "Validating", name: str = "{free}") -> dict[str, Any]:
    """A configuration."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": list(hooks),
    }


def installed(*hooks: dict[str, Any], kind: str = "Validating", name: str = "{free}") -> list[Step]:
    """Create a configuration, and wait until the server calls its webhooks."""
    label = name.strip("{}")
    asks = hook(
        "ready",
        {"response": {"allowed": False, "status": {"code": 418}}},
        objectSelector={"matchLabels": {"ready": label}},
    )
    # a policy that is installed, too, rejects what is called "ready"
    marked = configmap("asked", labels={"ready": label})
    return [
        post(
            CONFIGURATIONS.format(kind.lower()),
            configured(asks, *hooks, kind=kind, name=name),
            focus=lambda tree: tree["kind"],
        ),
        Until(post(CM, marked, dryRun="All"), 418),
    ]


def access_review(kind: str, resource: str, *, namespace: str = "{ns}") -> dict[str, Any]:
    """A question about access to a resource."""
    subject = {} if kind.startswith("Self") else {"user": "ada"}
    spec = {"resourceAttributes": {"verb": "get", "resource": resource, "namespace": namespace}, **subject}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}


def removed(kind: str = "validating", name: str = "{free}") -> Step:
    """Delete a configuration."""
    return delete(f"{CONFIGURATIONS.format(kind)}/{name}")


def denied(**status: Any) -> dict[str, Any]:
    return {"response": {"allowed": False, "status": status}}


def patched(*operations: Any, **more: Any) -> dict[str, Any]:
    return {"patch": list(operations), **more}


def added(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


#: Answers of a webhook, by name: what a server makes of each is compared for both sorts and both policies.
ANSWERS: dict[str, dict[str, Any]] = {
    "denied": {"response": {"allowed": False}},
    "denied-with-status": denied(message="no", code=409, reason="Conflict", details={"name": "x", "retryAfterSeconds": 3}),
    "denied-with-reason": denied(reason="Because"),
    "denied-as-success": denied(status="Success", code=200, message="fine"),
    "denied-with-code-of-text": denied(code="409"),
    "denied-with-fraction": denied(code=1.5),
    "denied-with-large-code": denied(code=2**40),
    "denied-with-number": denied(message=5),
    "denied-with-reasons": denied(reason={}),
    "null": {"raw": "null"},
    "warned": {"response": {"warnings": ["one", "two", "one"]}},
    "denied-and-warned": {"response": {"allowed": False, "warnings": ["careful"]}},
    "annotated": {"response": {"auditAnnotations": {"key": "value"}}},
    "not-found": {"status": 404, "raw": "no such page", "type": "text/plain"},
    "failed": {"status": 500, "raw": 'broken: "x"\n', "type": "text/plain; charset=utf-8"},
    "failed-in-json": {"status": 500},
    "failed-with-status": {"status": 500, "raw": '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"as told","reason":"InternalError","code":500}'},
    "unavailable": {"status": 503, "raw": "later", "type": "text/plain"},
    "forbidden": {"status": 403, "raw": "not you", "type": "text/plain"},
    "bad": {"status": 400, "raw": "what", "type": "text/plain"},
    "many": {"status": 429, "raw": "slow down", "type": "text/plain"},
    "teapot": {"status": 418, "raw": "tea", "type": "text/plain"},
    "empty": {"raw": ""},
    "garbage": {"raw": "garbage"},
    "cut": {"raw": '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"allowed":tr'},
    "list": {"raw": "[]"},
    "text": {"raw": '"allowed"'},
    "no-response": {"raw": '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}'},
    "wrong-uid": {"response": {"uid": "other"}},
    "no-uid": {"response": {"uid": ""}},
    "wrong-type": {"response": {"allowed": "yes"}},
    "wrong-warnings": {"response": {"warnings": "text"}},
    "no-kind": {"review": {"kind": None, "apiVersion": None}},
    "patch-without-type": {"response": {"patch": "W10=", "patchType": None}},
    "type-without-patch": {"response": {"patchType": "JSONPatch"}},
    "patch-of-other-type": {"response": {"patch": "W3t9XQ==", "patchType": "MergePatch"}},
    "patch-no-base64": {"response": {"patch": "a b", "patchType": "JSONPatch"}},
    "patch-no-list": {"response": {"patch": "e30=", "patchType": "JSONPatch"}},
    "patch-empty": {"response": {"patch": "W10=", "patchType": "JSONPatch"}},
    "patched": patched(added("/data/more", "x")),
    "allowed-in-text": {"type": "text/plain"},
}  # fmt: skip

#: Patches of a mutating webhook, by name.
PATCHES: dict[str, list[Any]] = {
    "label": [added("/metadata/labels", {"a": "b"})],
    "same": [{"op": "replace", "path": "/data/key", "value": "value"}],
    "unknown-field": [added("/spec", {"a": 1}), added("/metadata/color", "red")],
    "wrong-type": [added("/data", 5)],
    "wrong-metadata": [added("/metadata/labels", "x")],
    "missing-place": [added("/spec/deep/er", 1)],
    "removes-missing": [{"op": "remove", "path": "/metadata/labels"}],
    "removes-data": [{"op": "remove", "path": "/data"}],
    "test-fails": [{"op": "test", "path": "/data/key", "value": "other"}],
    "test-holds": [{"op": "test", "path": "/data/key", "value": "value"}, added("/data/tested", "yes")],
    "replaces-missing": [{"op": "replace", "path": "/binaryData/x", "value": "eA=="}],
    "unknown-operation": [{"op": "change", "path": "/data/key", "value": "x"}],
    "no-value": [{"op": "add", "path": "/data/none"}],
    "copies-that-double": [{"op": "copy", "from": "/data", "path": f"/data/copy{number}"} for number in range(30)],
    "more-operations-than-a-client-may-send": [{"op": "test", "path": "/data/key", "value": "value"}] * 10_001,
    "operation-of-a-list": [{"op": ["add"], "path": "/data/key", "value": "x"}],
    "invalid-key": [added("/data/a b", "x")],
    "other-name": [{"op": "replace", "path": "/metadata/name", "value": "other"}],
    "other-namespace": [{"op": "replace", "path": "/metadata/namespace", "value": "other"}],
    "other-kind": [{"op": "replace", "path": "/kind", "value": "Secret"}, {"op": "replace", "path": "/data", "value": {}}],
    "kind-of-other-data": [{"op": "replace", "path": "/kind", "value": "Secret"}],
    "unknown-version": [{"op": "replace", "path": "/apiVersion", "value": "v2"}],
    "no-namespace": [{"op": "remove", "path": "/metadata/namespace"}],
    "no-metadata": [{"op": "remove", "path": "/metadata"}],
    "whole-object": [{"op": "replace", "path": "", "value": configmap("b", {"all": "new"})}],
    "finalizer": [added("/metadata/finalizers", ["example.com/stay"])],
    "owners-twice": [added("/metadata/ownerReferences", [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1"}] * 2)],
    "managed-fields": [added("/metadata/managedFields", [{"operation": "Nothing"}])],
    "uid": [added("/metadata/uid", "mine"), added("/metadata/creationTimestamp", "2020-01-01T00:00:00Z")],
}  # fmt: skip


#: Match conditions.
CONDITIONS = [
    "object.metadata.name == 'b'",
    "object.data.none == 'x'",
    "has(object.data.none)",
    "oldObject == null",
    "oldObject.data.key == 'value'",
    "request.operation == 'UPDATE' && request.name == 'b'",
    "request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps' && request.kind.group == ''",
    "request.namespace.startsWith('ns')",
    "request.subResource == ''",
    "request.dryRun",
    "'system:masters' in request.userInfo.groups",
    "object.data.size() == 1",
    "object.data.all(key, key.size() > 2)",
    "object.metadata.?labels[?'case'].orValue('') == '13'",
    "object.data.key + object.metadata.labels == 'x'",
    "request.options.kind == 'CreateOptions'",
    "object.data.key.matches('^v.*e$') || object.x.y",
    "dyn(object).metadata.generation > 5",
]


def _answers(kind: str, policy: str) -> list[Any]:
    return [
        scenario(
            f"{kind.lower()}-{policy.lower()}-{name}",
            "Webhooks, Status errors",
            *installed(hook(script=script, failurePolicy=policy), kind=kind),
            post(CM, configmap("b")),
            get(f"{CM}/b"),
            removed(kind.lower()),
        )
        for name, script in ANSWERS.items()
    ]


def _refused(name: str, *hooks: dict[str, Any], kind: str = "Validating") -> Any:
    path = CONFIGURATIONS.format(kind.lower())
    return scenario(
        f"refused-{name}",
        "Webhooks, Kinds, Status errors",
        *[post(path, configured(each, kind=kind), dryRun="All") for each in hooks],
    )


def _rule(**more: Any) -> dict[str, Any]:
    return hook(rules=[CREATED | more])


SCENARIOS = [
    *_answers("Validating", "Fail"),
    *_answers("Mutating", "Fail"),
    *_answers("Validating", "Ignore"),
    *_answers("Mutating", "Ignore"),
    *[
        scenario(
            f"patch-{name}",
            "Webhooks, Patch, Status errors",
            *installed(hook(script=patched(*operations)), kind="Mutating"),
            post(CM, configmap("b")),
            get(f"{CM}/b"),
            removed("mutating"),
        )
        for name, operations in PATCHES.items()
    ],
    scenario(
        "namespace-for-an-object-without-one",
        "Webhooks, Patch",
        *installed(hook(script=patched(added("/metadata/namespace", "{ns}")), rules=[CREATED | {"resources": ["namespaces"]}], namespaceSelector={}, objectSelector={"matchLabels": {"of": "{free}"}}), kind="Mutating"),
        post("/api/v1/namespaces", named("v1", "Namespace", "{free2}") | {"metadata": {"name": "{free2}", "labels": {"of": "{free}"}}}),
        removed("mutating"),
    ),
    scenario(
        "stored",
        "Webhooks, Kinds",
        *[
            step
            for kind in ("Validating", "Mutating")
            for path in [CONFIGURATIONS.format(kind.lower())]
            for step in (
                post(path, configured(hook(), hook("two", clientConfig={"service": {"namespace": "none", "name": "x"}}), kind=kind), as_="c"),
                post(path, configured(kind=kind, name="{free2}")),
                put(f"{path}/{{free}}", "${c..}"),
                patch(f"{path}/{{free}}", {"metadata": {"labels": {"a": "b"}}}),
                patch(f"{path}/{{free}}", {"webhooks": [hook("three", timeoutSeconds=3)]}),
                put(f"{path}/{{free}}", configured(hook(), kind=kind)),
                patch(f"{path}/{{free}}", {"webhooks": [hook("three", timeoutSeconds=31)]}),
                get(f"{path}/{{free}}"),
                delete(f"{path}/{{free}}"),
                delete(f"{path}/{{free2}}"),
            )
        ],
    ),
    _refused("names", *[merged(hook(), {"name": name}) for name in ("", "short", "two.parts", "UP.per.case", "a b.c.d", "a.b.c")], configured(hook(), hook())["webhooks"][0]),
    _refused("clients", *[hook(clientConfig=client) for client in ({}, {"url": "{hooks}", "service": {"namespace": "a", "name": "b"}}, {"url": "http://x"}, {"url": "https://"}, {"url": "https://u:p@x/a?b=c#d"}, {"url": "::"}, {"service": {"namespace": "", "name": ""}}, {"service": {"namespace": "a", "name": "b", "port": 0}}, {"service": {"namespace": "a", "name": "b", "path": "x//y"}}, {"service": {"namespace": "a", "name": "b", "path": "/Up"}}, {"url": "{hooks}", "caBundle": "no"}, {"url": "{hooks}", "caBundle": "bm8="})]),
    _refused("policies", hook(failurePolicy="Maybe"), hook(matchPolicy="Some"), hook(sideEffects="Some"), hook(sideEffects="Unknown"), hook(sideEffects="x"), {k: v for k, v in hook().items() if k != "sideEffects"}, hook(timeoutSeconds=0), hook(timeoutSeconds=31), hook(timeoutSeconds=-1), hook(reinvocationPolicy="x")),
    _refused("mutating-policies", hook(reinvocationPolicy="x"), hook(reinvocationPolicy="IfNeeded"), hook(failurePolicy="x", reinvocationPolicy="y"), kind="Mutating"),
    _refused("reviews", *[hook(admissionReviewVersions=versions) for versions in ([], ["v1", "v1"], ["v2"], ["v2", "v1"], ["V1"], ["v1beta1"], [""])]),
    _refused("selectors", hook(namespaceSelector={"matchLabels": {"a b": "c"}}), hook(objectSelector={"matchExpressions": [{"key": "a", "operator": "x"}]}), hook(objectSelector={"matchLabels": {"a": "b c"}})),
    _refused("rules", hook(rules=[{}]), _rule(operations=["*", "CREATE"]), _rule(operations=["GET"]), _rule(apiGroups=[]), _rule(apiGroups=["*", "a"]), _rule(apiVersions=["*", "v1"]), _rule(apiVersions=[""]), _rule(scope="x"), *[_rule(resources=resources) for resources in ([], [""], ["*", "pods"], ["pods", "*"], ["*/*", "pods"], ["pods/*", "pods/status"], ["*/status", "pods/status"], ["pods", "*", "*/scale"])]),
    _refused("conditions", *[hook(matchConditions=conditions) for conditions in ([{}], [{"name": "a"}], [{"name": "a b", "expression": "true"}], [{"name": "a", "expression": "true"}] * 2, [{"name": "a", "expression": " "}], [{"name": "a", "expression": "object.data.key + 1 == 'x'"}])]),
    *[
        scenario(
            f"conditions-{policy.lower()}",
            "Webhooks, Selectors",
            *installed(
                *[
                    hook(f"hook-{at}", denied(message=expression), matchConditions=[{"name": "a", "expression": expression}], failurePolicy=policy, rules=[ANY], objectSelector={"matchLabels": {"case": str(at)}})
                    for at, expression in enumerate(CONDITIONS)
                ],
                hook("two", denied(message="two"), matchConditions=[{"name": "a", "expression": "object.a == 1"}, {"name": "b", "expression": "object.b == 1"}], failurePolicy=policy, objectSelector={"matchLabels": {"case": "two"}}),
                hook("one", denied(message="one"), matchConditions=[{"name": "a", "expression": "object.a == 1"}, {"name": "b", "expression": "false"}], failurePolicy=policy, objectSelector={"matchLabels": {"case": "one"}}),
            ),
            *[post(CM, configmap("b", labels={"case": str(at)})) for at in range(len(CONDITIONS))],
            *[post(CM, configmap("b", labels={"case": case})) for case in ("one", "two")],
            *[put(f"{CM}/b", configmap("b", {"x": "y"}, labels={"case": str(at)})) for at in range(len(CONDITIONS))],
            removed(),
        )
        for policy in ("Fail", "Ignore")
    ],
    scenario(
        "equal-names",
        "Webhooks, Kinds, Status errors",
        post(CONFIGURATIONS.format("validating"), configured(hook(), hook())),
    ),
    scenario(
        "echoed",
        "Webhooks, Kinds",
        post(CM, configmap("a"), as_="a"),
        *installed(hook(script={"echo": True}, rules=[ANY])),
        post(CM, configmap("b", labels={"x": "y"})),
        post(CM, configmap("b") | {"metadata": {"generateName": "made-"}}, fieldManager="me", dryRun="All", fieldValidation="Strict"),
        put(f"{CM}/a", configmap("a", {"new": "value"}), fieldManager="me"),
        patch(f"{CM}/a", {"data": {"more": "x"}}),
        patch(f"{CM}/a", [{"op": "add", "path": "/data/z", "value": "y"}], "json", dryRun="All"),
        patch(f"{CM}/a", configmap("a", {"applied": "x"}), "apply", fieldManager="me", force="true"),
        patch(f"{CM}/new", configmap("new", {"applied": "x"}), "apply", fieldManager="me"),
        delete(f"{CM}/a"),
        delete(f"{CM}/a", {"propagationPolicy": "Background", "gracePeriodSeconds": 3}),
        delete(f"{CM}/a", propagationPolicy="Orphan", dryRun="All"),
        delete(f"{CM}/a", {"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}}),
        delete(f"{CM}/a", {"preconditions": {"uid": ""}}),
        delete(f"{CM}/a", {"preconditions": {"resourceVersion": "1"}}),
        delete(f"{CM}/a", {"preconditions": {}}),
        delete(f"{CM}/a", {"gracePeriodSeconds": 0, "dryRun": []}),
        delete(f"{CM}/a", {"orphanDependents": False}),
        delete(f"{CM}/none"),
        delete(CM),
        removed(),
    ),
    scenario(
        "echoed-to-mutating",
        "Webhooks, Kinds",
        post(CM, configmap("a"), as_="a"),
        *installed(hook(script={"echo": True}, rules=[ANY]), kind="Mutating"),
        post(CM, configmap("b")),
        put(f"{CM}/a", configmap("a", {"new": "value"})),
        patch(f"{CM}/a", {"data": {"more": "x"}}),
        delete(f"{CM}/a"),
        removed("mutating"),
    ),
    scenario(
        "echoed-pods",
        "Webhooks, Subresources",
        post(POD, pod("a")),
        *installed(hook(script={"echo": True}, rules=[ANY | {"resources": ["pods/*"]}])),
        post(f"{POD}/a/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}),
        post(f"{POD}/a/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}),
        patch(f"{POD}/a/status", {"status": {"phase": "Running"}}, "strategic"),
        patch(f"{POD}/a", {"metadata": {"labels": {"seen": "no"}}}),
        removed(),
    ),
    scenario(
        "echoed-scale",
        "Webhooks, Subresources",
        post(DEPLOYMENT, deployment("a")),
        *installed(hook(script={"echo": True}, rules=[ANY | {"apiGroups": ["apps"], "resources": ["deployments/scale"]}])),
        patch(f"{DEPLOYMENT}/a/scale", {"spec": {"replicas": 5}}),
        patch(f"{DEPLOYMENT}/a", {"spec": {"replicas": 5}}),
        removed(),
    ),
    scenario(
        "patched-scale",
        "Webhooks, Subresources",
        post(DEPLOYMENT, deployment("a")),
        *installed(hook(script=patched({"op": "replace", "path": "/spec/replicas", "value": 7}), rules=[ANY | {"apiGroups": ["apps"], "resources": ["deployments/scale"]}]), kind="Mutating"),
        patch(f"{DEPLOYMENT}/a/scale", {"spec": {"replicas": 5}}),
        get(f"{DEPLOYMENT}/a", focus=lambda tree: tree["spec"]["replicas"]),
        removed("mutating"),
    ),
    scenario(
        "operations",
        "Webhooks, Kinds",
        post(CM, configmap("a")),
        *installed(hook("update", denied(message="update"), rules=[CREATED | {"operations": ["UPDATE"]}]), hook("delete", denied(message="delete"), rules=[CREATED | {"operations": ["DELETE"]}]), hook("connect", denied(message="connect"), rules=[CREATED | {"operations": ["CONNECT"]}])),
        post(CM, configmap("b")),
        put(f"{CM}/a", configmap("a", {"x": "y"})),
        put(f"{CM}/a", configmap("a")),
        patch(f"{CM}/a", {"data": {"x": "y"}}),
        delete(f"{CM}/a"),
        delete(CM),
        get(CM, focus=lambda tree: sorted(each["metadata"]["name"] for each in tree["items"] if each["metadata"]["name"] != "kube-root-ca.crt")),
        removed(),
    ),
    scenario(
        "selected",
        "Webhooks, Selectors",
        *installed(
            hook("labels", denied(message="labels"), rules=[ANY], objectSelector={"matchLabels": {"stop": "yes"}}),
            hook("elsewhere", denied(message="elsewhere"), namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "{free2}"}}),
            hook("cluster", denied(message="cluster"), rules=[CREATED | {"scope": "Cluster"}]),
            hook("namespaced", denied(message="namespaced"), rules=[CREATED | {"scope": "Namespaced"}], objectSelector={"matchLabels": {"scope": "yes"}}),
            hook("version", denied(message="version"), rules=[CREATED | {"apiVersions": ["v2"]}]),
            hook("group", denied(message="group"), rules=[CREATED | {"apiGroups": ["apps"]}]),
            hook("all", denied(message="all"), rules=[CREATED | {"resources": ["*"]}], objectSelector={"matchLabels": {"all": "yes"}}),
            hook("both", denied(message="both"), rules=[CREATED | {"resources": ["*/*"]}], objectSelector={"matchLabels": {"both": "yes"}}),
            hook("status", denied(message="status"), rules=[CREATED | {"resources": ["*/status"]}]),
        ),
        post(CM, configmap("b")),
        *[post(CM, configmap("c", labels={label: "yes"})) for label in ("stop", "scope", "all", "both")],
        patch(f"{CM}/b", {"metadata": {"labels": {"stop": "yes"}}}),
        post("/api/v1/namespaces/{ns2}/configmaps", configmap("c", labels={"stop": "yes"})),
        removed(),
    ),
    scenario(
        "dry-run",
        "Webhooks, dryRun",
        *installed(hook(script=denied(message="no"), sideEffects="NoneOnDryRun", rules=[ANY])),
        post(CM, configmap("b"), dryRun="All"),
        removed(),
    ),
    scenario(
        "in-order",
        "Webhooks, Patch",
        *installed(hook("one", patched(added("/data/order", "one"))), hook("two", patched({"op": "test", "path": "/data/order", "value": "one"}, added("/data/order", "two"))), kind="Mutating"),
        *installed(hook("three", patched({"op": "test", "path": "/data/order", "value": "two"}, added("/data/last", "three"))), kind="Mutating", name="{free2}"),
        post(CM, configmap("b")),
        removed("mutating"),
        removed("mutating", "{free2}"),
    ),
    *[
        scenario(
            f"reinvoked-{policy.lower()}",
            "Webhooks, Patch",
            *installed(
                hook("one", patched(added("/metadata/labels", {"one": "here"}), {"op": "copy", "from": "/data/count", "path": "/data/seen"}), reinvocationPolicy=policy),
                hook("two", patched(added("/data/count", "changed")), reinvocationPolicy="Never"),
                kind="Mutating",
            ),
            post(CM, configmap("b", {"count": "first"})),
            removed("mutating"),
        )
        for policy in ("Never", "IfNeeded")
    ],
    scenario(
        "late",
        "Webhooks, Status errors",
        *installed(hook(script={"sleep": 30}, timeoutSeconds=1)),
        post(CM, configmap("b")),
        removed(),
    ),
    scenario(
        "late-and-ignored",
        "Webhooks, Status errors",
        *installed(hook(script={"sleep": 30}, timeoutSeconds=1, failurePolicy="Ignore"), kind="Mutating"),
        post(CM, configmap("b")),
        removed("mutating"),
    ),
    scenario(
        "unreachable",
        "Webhooks, Status errors",
        *installed(
            hook("refused", clientConfig={"url": "https://127.0.0.1:1/x", "caBundle": "{ca}"}, objectSelector={"matchLabels": {"case": "refused"}}),
            hook("untrusted", clientConfig={"url": "{hooks}/e30"}, objectSelector={"matchLabels": {"case": "untrusted"}}),
            hook("service", clientConfig={"service": {"namespace": "{ns}", "name": "none"}}, objectSelector={"matchLabels": {"case": "service"}}),
        ),
        *[post(CM, configmap("b", labels={"case": case})) for case in ("refused", "untrusted", "service")],
        removed(),
    ),
    scenario(
        "configurations-are-exempt",
        "Webhooks, Kinds",
        *installed(hook(script=denied(message="no"), rules=[{"operations": ["*"], "apiGroups": ["admissionregistration.k8s.io"], "apiVersions": ["*"], "resources": ["*"]}], namespaceSelector={})),
        post(CONFIGURATIONS.format("mutating"), configured(kind="Mutating", name="{free2}")),
        removed("mutating", "{free2}"),
        removed(),
    ),
    scenario(
        "access-reviews",
        "Webhooks, Kinds",
        *installed(hook(script=denied(message="no reviews"), rules=[REVIEWS], namespaceSelector={}, matchConditions=ASKED)),
        post(f"{REVIEW}/selfsubjectaccessreviews", access_review("SelfSubjectAccessReview", "pods")),
        post(f"{REVIEW}/selfsubjectaccessreviews", access_review("SelfSubjectAccessReview", "{free}")),
        post(f"{REVIEW}/namespaces/none/localsubjectaccessreviews", access_review("LocalSubjectAccessReview", "pods", namespace="none")),
        removed(),
    ),
    scenario(
        "patched-access-review",
        "Webhooks, Kinds",
        *installed(hook(script=patched({"op": "replace", "path": "/spec/resourceAttributes/verb", "value": "list"}), rules=[REVIEWS], namespaceSelector={}, matchConditions=ASKED), kind="Mutating"),
        post(f"{REVIEW}/selfsubjectaccessreviews", access_review("SelfSubjectAccessReview", "{free}")),
        removed("mutating"),
    ),
    scenario(
        "patched-deletion",
        "Webhooks, Patch",
        *installed(hook(script=patched(added("/metadata/deletionTimestamp", "2020-01-01T00:00:00Z"))), kind="Mutating"),
        post(CM, configmap("b")),
        get(f"{CM}/b"),
        removed("mutating"),
        delete(f"{CM}/b"),
        get(f"{CM}/b"),
    ),
    scenario(
        "patch-of-undeclared-field",
        "Webhooks, Patch, No-op writes",
        *installed(hook(script=patched(added("/spec/color", "red")), rules=[ANY | {"apiGroups": [GROUP_OF_SITES], "resources": ["sites"]}]), kind="Mutating"),
        post(SITE, named(f"{GROUP_OF_SITES}/v1", "Site", "a", spec={"image": "a:1"})),
        patch(f"{SITE}/a", {}),
        get(f"{SITE}/a"),
        removed("mutating"),
    ),
    scenario(
        "beta-reviews",
        "Webhooks, Kinds",
        *installed(hook("echo", {"echo": True, "response": {"uid": "any"}}, admissionReviewVersions=["v1beta1", "v1"])),
        *installed(hook("patch", {"patch": [added("/data/beta", "x")], "review": {"kind": "", "apiVersion": ""}}, admissionReviewVersions=["v2", "v1beta1"]), kind="Mutating", name="{free2}"),
        post(CM, configmap("b")),
        removed(),
        post(CM, configmap("c")),
        removed("mutating", "{free2}"),
    ),
]  # fmt: skip
