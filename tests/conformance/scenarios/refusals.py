"""Requests that no server takes: unknown verbs, forms, parameters and bodies."""

from __future__ import annotations

from conformance.bodies import CM, DEPLOYMENT, NAMESPACE, POD, configmap, deployment, merged, namespace, pod
from conformance.scenario import call, delete, frames, get, patch, post, put, scenario, watch

ONE = f"{CM}/a"

BAD_JSON = {
    "nothing": b"",
    "white-space": b"  ",
    "cut-off": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"',
    "no-json": b"hello",
    "a-list": b"[]",
    "a-string": b'"a"',
    "a-number": b"1",
    "null": b"null",
    "trailing-text": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}} x',
    "two-documents": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}{"kind":"ConfigMap"}',
    "single-quotes": b"{'kind':'ConfigMap'}",
    "trailing-comma": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},}',
    "bad-escape": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a\\x"}}',
    "kind-is-a-number": b'{"kind":1,"apiVersion":"v1","metadata":{"name":"a"}}',
    "metadata-is-a-list": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":[]}',
    "name-is-a-number": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":1}}',
    "data-holds-a-number": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"a":1}}',
    "data-holds-an-object": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"a":{}}}',
    "immutable-is-a-string": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"immutable":"yes"}',
    "binary-data-is-no-base64": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"binaryData":{"a":"%%"}}',
    "bad-group-version": b'{"kind":"ConfigMap","apiVersion":"a/b/c","metadata":{"name":"a"}}',
    "no-kind": b'{"apiVersion":"v1","metadata":{"name":"a"}}',
    "no-version": b'{"kind":"ConfigMap","metadata":{"name":"a"}}',
}

JSON_OF_PODS = {
    "replicas": (DEPLOYMENT, deployment(replicas="three")),
    "replicas-with-a-fraction": (DEPLOYMENT, deployment(replicas=1.5)),
    "replicas-too-large": (DEPLOYMENT, deployment(replicas=2**40)),
    "paused": (DEPLOYMENT, deployment(paused="yes")),
    "containers-as-an-object": (POD, merged(pod(), {"spec": {"containers": {"a": 1}}})),
    "containers-as-strings": (POD, merged(pod(), {"spec": {"containers": ["a"]}})),
    "port-as-a-string": (POD, pod(containers=[{"name": "a", "image": "a", "ports": [{"containerPort": "80"}]}])),
    "bad-quantity": (POD, pod(containers=[{"name": "a", "image": "a", "resources": {"limits": {"cpu": "much"}}}])),
    "bad-time": (POD, merged(pod(), {"metadata": {"creationTimestamp": "yesterday"}})),
    "spec-is-a-string": (POD, merged(pod(), {"spec": "none"})),
}

SCENARIOS = [
    *(
        scenario(f"body-{name}", "Status errors", post(CM, body), post(CM, body, fieldValidation="Strict"), put(ONE, body))
        for name, body in BAD_JSON.items()
    ),
    *(
        scenario(f"type-of-{name}", "Status errors, fieldValidation", post(path, body, dryRun="All"), post(path, body, fieldValidation="Ignore", dryRun="All"))
        for name, (path, body) in JSON_OF_PODS.items()
    ),
    scenario(
        "methods",
        "Status errors",
        put(CM, configmap()),
        patch(CM, {"data": {}}),
        post(ONE, configmap()),
        call("HEAD", CM),
        call("OPTIONS", CM),
        call("TRACE", CM),
        call("BREW", CM),
        put(NAMESPACE, namespace()),
        post("/api/v1/configmaps", configmap()),
        put("/api/v1/configmaps", configmap()),
        delete("/api/v1/configmaps"),
        post("/api", {}),
        post("/version", {}),
        delete(NAMESPACE),
    ),
    scenario(
        "names-that-do-not-fit",
        "Status errors",
        post(CM, configmap("a", namespace="{ns2}")),
        post(CM, configmap("a", namespace="")),
        post(CM, configmap("a", namespace="{ns}")),
        put(f"{CM}/b", configmap("a")),
        put(ONE, configmap("")),
        put(ONE, configmap("a", namespace="{ns2}")),
        put(ONE, {"kind": "ConfigMap", "apiVersion": "v1"}),
        put(f"{CM}/b", configmap("b")),
        patch(ONE, {"metadata": {"name": "b"}}),
        patch(ONE, {"metadata": {"namespace": "{ns2}"}}),
        patch(ONE, {"kind": "Secret"}),
        patch(ONE, {"apiVersion": "v2"}),
        get(ONE),
    ),
    scenario(
        "forms-of-answers",
        "Negotiation, Status errors",
        post(CM, configmap()),
        *(
            get(ONE, accept=accept)
            for accept in (
                "application/json", "*/*", "application/*", "text/html", "text/html,*/*", "application/xml", "image/png, text/plain",
                "application/json;pretty=1", "application/json;as=Table;v=v1;g=other.io", "application/json;as=Nothing;v=v1;g=meta.k8s.io",
                "application/json;as=Table;v=v1beta1;g=meta.k8s.io", "application/json;as=Table;v=v9;g=meta.k8s.io,application/json",
                "application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
                "application/yaml", "text/html;q=1,application/json;q=0.1", "application/json;stream=watch", "nonsense", "",
            )
        ),
        get(CM, accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
        get(CM, accept="application/json;as=Table;v=v1;g=meta.k8s.io", includeObject="Everything"),
        watch("w", CM, accept="text/html"),
        watch("y", CM, accept="application/json;stream=watch"),
        frames("y", 1),
        get(ONE, pretty="true"),
        get(ONE, pretty="false"),
    ),
    scenario(
        "forms-of-bodies",
        "Negotiation, Status errors",
        *(
            post(CM, configmap(f"a{index}"), content=content)
            for index, content in enumerate((
                "application/json; charset=utf-8", "application/json;charset=latin1", "", "text/plain", "application/xml", "application/octet-stream",
                "application/x-www-form-urlencoded", "application/merge-patch+json", "application/yaml", "nonsense", "application/json, text/plain",
                "application/json;pretty=1", "APPLICATION/JSON",
            ))
        ),
        put(f"{CM}/a0", configmap("a0"), content="text/plain"),
        delete(f"{CM}/a0", {"gracePeriodSeconds": 0}, content="text/plain"),
        get(CM),
    ),
    scenario(
        "forms-of-patches",
        "Patch, Negotiation, Status errors",
        post(CM, configmap()),
        *(
            call("PATCH", ONE, {"data": {"key": str(index)}}, content=content)
            for index, content in enumerate((
                "application/json", "application/merge-patch+json; charset=utf-8", "application/strategic-merge-patch+json;charset=utf-8", "",
                "text/plain", "application/json-patch+json", "application/json-patch+yaml", "application/merge-patch+yaml", "application/yaml", "nonsense",
            ))
        ),
        get(ONE),
    ),
    scenario(
        "yaml-bodies",
        "Negotiation",
        post(CM, "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: a\ndata:\n  key: value\n", content="application/yaml"),
        post(CM, "metadata:\n  name: b\ndata: {key: 'yes', other: \"1\"}\n", content="application/yaml"),
        post(CM, "metadata:\n  name: c\ndata: {key: yes}\n", content="application/yaml"),
        post(CM, "metadata:\n  name: d\ndata: {key: 1}\n", content="application/yaml"),
        post(CM, "metadata:\n\tname: e\n", content="application/yaml"),
        post(CM, "metadata:\n  name: f\n  name: g\n", content="application/yaml"),
        post(CM, "metadata:\n  name: h\n  name: i\n", content="application/yaml", fieldValidation="Strict"),
        post(CM, "metadata:\n  name: j\ncolor: red\n", content="application/yaml", fieldValidation="Strict"),
        post(CM, "- a\n- b\n", content="application/yaml"),
        post(CM, "", content="application/yaml"),
        put(ONE, "metadata:\n  name: a\ndata:\n  key: other\n", content="application/yaml"),
        get(ONE, accept="application/yaml"),
        get(CM, accept="application/yaml"),
        get(f"{CM}/nothing", accept="application/yaml"),
    ),
    scenario(
        "duplicate-fields",
        "fieldValidation",
        *(
            post(CM, body, dryRun="All", fieldValidation=level)
            for body in (
                b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","name":"b"}}',
                b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"x":"1","x":"2"}}',
                b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"metadata":{"name":"b"},"shape":1}',
                b'{"kind":"ConfigMap","kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}',
            )
            for level in ("Strict", "Warn", "Ignore")
        ),
    ),
    scenario(
        "case-of-fields",
        "fieldValidation",
        *(
            post(CM, body, dryRun="All", fieldValidation=level)
            for body in (
                b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"Data":{"x":"1"}}',
                b'{"kind":"ConfigMap","apiVersion":"v1","Metadata":{"name":"a"},"data":{"x":"1"}}',
                b'{"Kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"x":"1"}}',
            )
            for level in ("Strict", "Warn")
        ),
    ),
    scenario(
        "unknown-fields-deep",
        "fieldValidation",
        *(
            post(path, body, dryRun="All", fieldValidation=level)
            for path, body in (
                (POD, pod(containers=[{"name": "a", "image": "a", "color": 1}, {"name": "b", "image": "b", "env": [{"nam": "X"}]}])),
                (DEPLOYMENT, merged(deployment(), {"spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDirs": {}}]}}}, "status": {"odd": 1}})),
                (POD, merged(pod(), {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "a", "odd": 1}]}})),
            )
            for level in ("Strict", "Warn", "Ignore")
        ),
    ),
    scenario(
        "nulls-and-emptiness",
        "fieldValidation, Metadata",
        post(CM, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "labels": None, "annotations": {}}, "data": None}),
        post(CM, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "b", "labels": {"a": None}}, "data": {"a": None, "b": ""}}),
        post(CM, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c", "finalizers": [], "ownerReferences": []}, "data": {}, "binaryData": {"a": "", "b": None}}),
        post(CM, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": None}),
        post(CM, {}),
        get(CM),
        patch(ONE, {"data": {}}),
        patch(ONE, {"data": {"x": None}}),
        get(ONE),
    ),
    scenario(
        "odd-text",
        "Kinds",
        post(CM, configmap("a", {"umlauts": "äöü", "emoji": "🚀", "control": "\u0001\u001f", "html": "<a href='x'>&</a>", "lines": "a\nb\r\n\t", "separators": "\u2028\u2029"})),
        get(ONE),
        post(CM, b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"},"data":{"bad":"\xff\xfe"}}'),
        post(CM, b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c"},"data":{"half":"\\ud800"}}'),
        post(CM, b'\xef\xbb\xbf{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"d"}}'),
        get(f"{CM}/b"),
        get(f"{CM}/c"),
        get(f"{CM}/%61"),
        get(f"{CM}/a%2Fb"),
        get(f"{CM}//a"),
        get(f"{CM}/a/"),
        get(f"{CM}/"),
    ),
    *(
        scenario(
            f"no-unicode-{name}",
            "Status errors, fieldValidation",
            post(CM, b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":%b}' % data),
            post(CM, b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"},"data":%b}' % data, fieldValidation="Strict"),
            post(CM, b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c"},"zzz":%b}' % data),
            patch(ONE, b'{"data":%b}' % data),
        )
        for name, data in {
            "bytes": b'{"k":"\xff\xe2\x82\xed\xa0\x80"}',
            "halves": rb'{"k":"\ud800 \udc00\ud800 \ud83d\ud83d\ude00"}',
            "backslashes": rb'{"k":"\\ud800 \\\ud800 \\ud83d\ude00"}',
            "twice": b'{"k":"\xff","k":"b"}',
            "halves-twice": rb'{"k":"\ud800","k":"b"}',
            "a-number": b'{"k":"\xff","l":1}',
        }.items()
    ),
    scenario(
        "yaml-anchors",
        "Negotiation, Status errors",
        *(
            step
            for text in (
                "data: {a: &x b, c: *x}", "data: &x {a: *x}", "data: {a: &x [*x]}", "data: {a: *x}", "data: {<<: {a: '1'}, b: '2'}",
                "x: &x {a: '1', b: '1'}\ndata: {<<: [*x, {c: '3'}]}", "data: {a: &x b, a: *x}", "data: {[a]: b, c: .inf}", "data: {c: .inf, [a]: b}", "data: {[1, true, ~, []]: b}", "data: {? [{a: 1}] : b}",
                "data: {{a: 1}: b}", "data: {~: b, [a]: c}", "data: {~: b}",
            )
            for step in (
                post(CM, f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n{text}\n", content="application/yaml", dryRun="All"),
                patch(ONE, f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n{text}\n", "apply", fieldManager="m", dryRun="All"),
            )
        ),
    ),
    scenario(
        "namespaces-in-a-namespace",
        "Namespaces, Status errors",
        get("/api/v1/namespaces/{ns}/namespaces"),
        get("/api/v1/namespaces/{ns}/namespaces", watch="true", timeoutSeconds=1),
        post("/api/v1/namespaces/{ns}/namespaces", namespace("{free}")),
        get("/api/v1/namespaces/{ns}/namespaces/{ns2}"),
        get("/api/v1/namespaces/{ns}/namespaces/{ns}"),
        get("/api/v1/namespaces/{ns}/namespaces/{ns2}/status"),
        put("/api/v1/namespaces/{ns}/namespaces/{ns2}", namespace("{ns2}")),
        put("/api/v1/namespaces/{ns}/namespaces/{ns2}/finalize", namespace("{ns2}")),
        patch("/api/v1/namespaces/{ns}/namespaces/{ns2}", {"metadata": {"labels": {"a": "b"}}}),
        delete("/api/v1/namespaces/{ns}/namespaces/{ns2}"),
        get("/api/v1/watch/namespaces/{ns}/namespaces/{ns2}", timeoutSeconds=1),
        get("/api/v1/namespaces/{ns2}"),
    ),
    scenario(
        "too-large",
        "Status errors",
        post(CM, configmap("a", {"big": "x" * (1 << 20)})),
        post(CM, configmap("b", {"big": "x" * (1 << 20) + "x"})),
        post(CM, configmap("c", {"big": "x" * (3 << 20) + "x" * 20})),
        post(CM, configmap("d", {}, annotations={"big": "x" * (256 << 10)})),
        post(CM, configmap("e", {}, annotations={"big": "x" * ((256 << 10) - 3)})),
    ),
    scenario(
        "bad-parameters",
        "Status errors",
        post(CM, configmap(), as_="a"),
        get(CM, limit="many"),
        get(CM, limit="-1"),
        get(CM, limit="0"),
        get(CM, limit="1.5"),
        get(CM, limit="99999999999999999999"),
        get(CM, timeoutSeconds="long"),
        get(CM, watch="maybe", timeoutSeconds=1),
        get(CM, watch="false"),
        get(CM, watch="0"),
        get(CM, allowWatchBookmarks="maybe"),
        get(CM, unknown="yes"),
        get(ONE, unknown="yes"),
        get(ONE, resourceVersion="new"),
        get(ONE, resourceVersion="$rv:a"),
        get(ONE, resourceVersion="-1"),
        post(CM, configmap("b"), fieldManager="x" * 129),
        post(CM, configmap("b"), fieldManager="a\u0007b"),
        patch(ONE, {"data": {"a": "b"}}, force="true"),
        patch(ONE, {"data": {"a": "b"}}, force="maybe"),
        delete(ONE, gracePeriodSeconds="soon"),
        delete(ONE, gracePeriodSeconds="-1"),
        delete(ONE, propagationPolicy="Sideways"),
        delete(ONE, orphanDependents="maybe"),
        get(ONE),
    ),
    scenario(
        "bad-delete-options",
        "Delete, Status errors",
        post(CM, configmap()),
        delete(ONE, b"{"),
        delete(ONE, {"kind": "DeleteOptions", "apiVersion": "v9"}),
        delete(ONE, {"kind": "ConfigMap", "apiVersion": "v1"}),
        delete(ONE, {"gracePeriodSeconds": "soon"}),
        delete(ONE, {"gracePeriodSeconds": -1}),
        delete(ONE, {"propagationPolicy": "Sideways"}),
        delete(ONE, {"propagationPolicy": "Orphan", "orphanDependents": True}),
        delete(ONE, {"dryRun": ["Some"]}),
        delete(ONE, {"dryRun": ["All", "All"]}),
        delete(ONE, {"color": "red"}, dryRun="All"),
        delete(ONE, {"preconditions": {"uid": "$uid:nothing"}}),
        delete(ONE, {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}),
        delete(ONE, {"kind": "DeleteOptions", "apiVersion": "apps/v1", "dryRun": ["All"]}),
        get(ONE),
    ),
]  # fmt: skip
