"""JSON patch, merge patch and strategic merge patch."""

from __future__ import annotations

from conformance.bodies import (
    CM,
    DEPLOYMENT,
    POD,
    SERVICE,
    configmap,
    container,
    deployment,
    merged,
    pod,
    service,
    template,
)
from conformance.scenario import get, patch, post, scenario

ONE = f"{CM}/a"
WEB = f"{DEPLOYMENT}/a"
START = configmap(
    "a", {"a": "1", "b": "2"}, labels={"app": "a", "example.com/x": "3"}, finalizers=["example.com/a", "example.com/b"]
)

JSON_PATCHES = {
    "add": [{"op": "add", "path": "/data/c", "value": "3"}],
    "add-over": [{"op": "add", "path": "/data/a", "value": "9"}],
    "add-below-nothing": [{"op": "add", "path": "/binaryData/c", "value": "YQ=="}],
    "add-all": [{"op": "add", "path": "", "value": configmap("a", {"only": "this"})}],
    "add-to-a-list": [{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/c"}],
    "add-in-the-middle": [{"op": "add", "path": "/metadata/finalizers/1", "value": "example.com/c"}],
    "add-behind-the-end": [{"op": "add", "path": "/metadata/finalizers/7", "value": "example.com/c"}],
    "add-negative": [{"op": "add", "path": "/metadata/finalizers/-1", "value": "example.com/c"}],
    "add-without-value": [{"op": "add", "path": "/data/c"}],
    "add-null": [{"op": "add", "path": "/data/c", "value": None}],
    "add-a-number": [{"op": "add", "path": "/data/c", "value": 1}],
    "replace": [{"op": "replace", "path": "/data/a", "value": "9"}],
    "replace-nothing": [{"op": "replace", "path": "/data/z", "value": "9"}],
    "replace-a-map": [{"op": "replace", "path": "/data", "value": {"z": "1"}}],
    "remove": [{"op": "remove", "path": "/data/a"}],
    "remove-nothing": [{"op": "remove", "path": "/data/z"}],
    "remove-from-a-list": [{"op": "remove", "path": "/metadata/finalizers/0"}],
    "remove-by-letter": [{"op": "remove", "path": "/metadata/finalizers/x"}],
    "remove-all-labels": [{"op": "remove", "path": "/metadata/labels"}],
    "remove-the-name": [{"op": "remove", "path": "/metadata/name"}],
    "escaped-slash": [{"op": "replace", "path": "/metadata/labels/example.com~1x", "value": "9"}],
    "escaped-tilde": [{"op": "replace", "path": "/data/m~0n", "value": "9"}],
    "test-right": [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "replace", "path": "/data/a", "value": "9"}],
    "test-wrong": [{"op": "test", "path": "/data/a", "value": "7"}, {"op": "replace", "path": "/data/a", "value": "9"}],
    "test-nothing": [{"op": "test", "path": "/data/z", "value": "7"}],
    "test-null": [{"op": "test", "path": "/data/z", "value": None}],
    "move": [{"op": "move", "from": "/data/a", "path": "/data/c"}],
    "move-nothing": [{"op": "move", "from": "/data/z", "path": "/data/c"}],
    "copy": [{"op": "copy", "from": "/data/a", "path": "/data/c"}],
    "copy-nothing": [{"op": "copy", "from": "/data/z", "path": "/data/c"}],
    "later-fails": [{"op": "replace", "path": "/data/a", "value": "9"}, {"op": "remove", "path": "/data/z"}],
    "unknown-operation": [{"op": "melt", "path": "/data/a"}],
    "no-operation": [{"path": "/data/a"}],
    "no-path": [{"op": "remove"}],
    "path-without-slash": [{"op": "add", "path": "data/c", "value": "1"}],
    "an-object": {"op": "add", "path": "/data/c", "value": "1"},
    "a-string": b'"a"',
    "no-json": b"[",
    "nothing": b"",
    "null": b"null",
    "root-null": [{"op": "replace", "path": "", "value": None}],
    "root-added-null": [{"op": "add", "path": "", "value": None}],
    "root-removed": [{"op": "remove", "path": ""}],
    "root-a-list": [{"op": "replace", "path": "", "value": []}],
    "too-many": [{"op": "test", "path": "/data/a", "value": "1"}] * 10001,
    "unknown-field": [{"op": "add", "path": "/color", "value": "red"}],
}

MERGE_PATCHES = {
    "add": {"data": {"c": "3"}},
    "remove": {"data": {"a": None}},
    "remove-all": {"data": None},
    "replace-a-list": {"metadata": {"finalizers": ["example.com/c"]}},
    "empty-list": {"metadata": {"finalizers": []}},
    "list-null": {"metadata": {"finalizers": None}},
    "a-number": {"data": {"c": 3}},
    "map-by-string": {"data": "x"},
    "a-list": [],
    "a-string": b'"x"',
    "no-json": b"{",
    "nothing": b"",
    "null": b"null",
    "metadata-null": {"metadata": None},
    "unknown-field": {"color": "red"},
    "unknown-strict": {"color": "red", "data": {"c": "1"}},
    "duplicate": b'{"data":{"c":"1","c":"2"}}',
}

TWO = [
    container(
        ports=[{"containerPort": 80, "name": "http"}], env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    ),
    {"name": "side", "image": "example.com/side:1"},
]
RICH = merged(
    deployment(),
    {
        "spec": {
            "template": template(
                containers=TWO,
                volumes=[{"name": "v", "emptyDir": {}}],
                tolerations=[{"key": "a", "operator": "Exists"}],
            )
        }
    },
)


def _of_template(spec):
    return {"spec": {"template": {"spec": spec}}}


STRATEGIC = {
    "container-image": _of_template({"containers": [{"name": "main", "image": "example.com/main:2"}]}),
    "container-added": _of_template({"containers": [{"name": "third", "image": "example.com/third:1"}]}),
    "container-deleted": _of_template({"containers": [{"name": "side", "$patch": "delete"}]}),
    "containers-replaced": _of_template(
        {"containers": [{"$patch": "replace"}, {"name": "only", "image": "example.com/only:1"}]}
    ),
    "container-without-key": _of_template({"containers": [{"image": "example.com/x:1"}]}),
    "environment-changed": _of_template(
        {"containers": [{"name": "main", "env": [{"name": "B", "value": "9"}, {"name": "C", "value": "3"}]}]}
    ),
    "environment-deleted": _of_template({"containers": [{"name": "main", "env": [{"name": "A", "$patch": "delete"}]}]}),
    "ports-merged": _of_template(
        {"containers": [{"name": "main", "ports": [{"containerPort": 443, "name": "https"}]}]}
    ),
    "volume-added": _of_template({"volumes": [{"name": "w", "emptyDir": {}}]}),
    "volume-kept-keys": _of_template(
        {"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]}
    ),
    "tolerations-replaced": _of_template({"tolerations": [{"key": "b", "operator": "Exists"}]}),
    "order-of-containers": _of_template(
        {
            "$setElementOrder/containers": [{"name": "side"}, {"name": "main"}],
            "containers": [{"name": "main", "image": "example.com/main:3"}],
        }
    ),
    "strategy-kept-keys": {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
    "strategy-replaced": {"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}},
    "strategy-alone": {"spec": {"strategy": {"type": "Recreate"}}},
    "labels-replaced": {"metadata": {"labels": {"$patch": "replace", "new": "yes"}}},
    "label-removed": {"spec": {"template": {"metadata": {"labels": {"app": None}}}}},
    "finalizers-merged": {"metadata": {"finalizers": ["example.com/b"]}},
    "finalizers-deleted": {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}},
    "unknown-directive": _of_template({"containers": [{"name": "side", "$patch": "melt"}]}),
    "unknown-field": {"spec": {"color": "red"}},
    "wrong-type": {"spec": {"replicas": "three"}},
    "list-for-map": {"spec": {"template": []}},
    "map-for-list": _of_template({"containers": {"name": "main"}}),
    "no-json": b"{",
    "a-list": b"[]",
    "nothing": b"",
    "duplicate": b'{"metadata":{"labels":{"a":"1","a":"2"}}}',
}

SCENARIOS = [
    *(
        scenario(f"json-{name}", "Patch, Status errors", post(CM, START), patch(ONE, body, "json"), get(ONE), patch(ONE, body, "json"))
        for name, body in JSON_PATCHES.items()
    ),
    *(
        scenario(
            f"merge-{name}", "Patch, Status errors", post(CM, START), patch(ONE, body, fieldValidation="Strict"), patch(ONE, body), get(ONE), patch(f"{CM}/none", body)
        )
        for name, body in MERGE_PATCHES.items()
    ),
    *(
        scenario(
            f"strategic-{name}",
            "Patch, Status errors, generation",
            post(DEPLOYMENT, merged(RICH, {"metadata": {"finalizers": ["example.com/a"], "labels": {"old": "yes"}}})),
            patch(WEB, body, "strategic", fieldValidation="Strict", dryRun="All"),
            patch(WEB, body, "strategic"),
            get(WEB),
            patch(WEB, body, "strategic"),
        )
        for name, body in STRATEGIC.items()
    ),
    scenario(
        "root-null-elsewhere",
        "Patch, Status errors, Subresources",
        post(DEPLOYMENT, deployment()),
        *(patch(f"{WEB}{part}", [{"op": "replace", "path": "", "value": value}], "json") for part in ("", "/scale", "/status") for value in (None, [], "x", {})),
    ),
    scenario(
        "strategic-service-ports",
        "Patch",
        post(SERVICE, service(ports=[{"name": "http", "port": 80}, {"name": "https", "port": 443}])),
        patch(f"{SERVICE}/a", {"spec": {"ports": [{"port": 80, "targetPort": 8080}]}}, "strategic"),
        patch(f"{SERVICE}/a", {"spec": {"ports": [{"port": 8443, "name": "other"}]}}, "strategic"),
        patch(f"{SERVICE}/a", {"spec": {"ports": [{"port": 443, "$patch": "delete"}]}}, "strategic"),
        patch(f"{SERVICE}/a", {"spec": {"selector": {"$patch": "replace", "tier": "web"}}}, "strategic"),
        patch(f"{SERVICE}/a", {"spec": {"selector": None}}, "strategic"),
        get(f"{SERVICE}/a"),
    ),
    scenario(
        "pod-image-alone-may-change",
        "Patch, Update",
        post(POD, pod()),
        patch(f"{POD}/a", {"spec": {"containers": [{"name": "main", "image": "example.com/main:2"}]}}, "strategic"),
        patch(f"{POD}/a", {"spec": {"containers": [{"name": "main", "command": ["x"]}]}}, "strategic"),
        patch(f"{POD}/a", {"spec": {"activeDeadlineSeconds": 5}}),
        patch(f"{POD}/a", {"spec": {"activeDeadlineSeconds": 9}}),
        patch(f"{POD}/a", {"spec": {"nodeName": "here"}}),
        patch(f"{POD}/a", {"spec": {"tolerations": [{"key": "x", "operator": "Exists"}]}}),
        patch(f"{POD}/a", {"spec": {"restartPolicy": "Never"}}),
        get(f"{POD}/a"),
    ),
]  # fmt: skip
