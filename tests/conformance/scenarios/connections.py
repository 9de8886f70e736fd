"""attach, exec, portforward and proxy of Pods: what admission sees of a connection, and what becomes of it without a kubelet."""

from __future__ import annotations

from typing import Any

from conformance.bodies import CM, POD, configmap, merged, named, pod
from conformance.scenario import Call, Step, Until, call, delete, get, patch, post, scenario
from conformance.scenarios.policies import BINDINGS, HERE, POLICIES, READY, RULE, binding, kind_of, policy
from conformance.scenarios.webhooks import added, denied, hook, installed, patched, removed

ROWS = "Subresources, Webhooks, Status errors"
NODES = "/api/v1/nodes"
CONNECTED = {"operations": ["CONNECT"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/*"]}
UPGRADE = (("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1"))
#: Queries of each subresource.
QUERIES: dict[str, list[dict[str, Any]]] = {
    "attach": [
        {},
        {"stdin": "true", "stdout": "1", "stderr": "", "tty": "0"},
        {"stdin": "False", "tty": "yes", "container": "c", "command": "sh"},
    ],
    "exec": [{}, {"command": "sh", "stdin": "false", "stdout": "true"}, {"command": "", "container": "other"}],
    "portforward": [{}, {"ports": "80"}, {"ports": "80,81"}, {"ports": "0,65535"}],
    "proxy": [{}, {"path_": "/x", "a": "b"}],
}
#: Queries that are not options.
WRONG: dict[str, list[dict[str, Any]]] = {
    "attach": [{"dryRun": "All"}],
    "exec": [{"dryRun": ""}, {"dryRun": "None", "command": "sh"}],
    "portforward": [{"ports": ""}, {"ports": "http"}, {"ports": "65536"}, {"ports": "80,"}, {"ports": "-1"}],
    "proxy": [{"dryRun": "All"}],
}


def connected(name: str = "one", script: Any = None, **more: Any) -> dict[str, Any]:
    """A webhook that sees connections: it has no object selector, for options have no labels."""
    return hook(name, script, **{"rules": [CONNECTED], "objectSelector": {}} | more)


def connect(subresource: str, *, name: str = "a", method: str = "POST", **options: Any) -> Call:
    """A request for a connection with the Pod."""
    return call(method, f"{POD}/{name}/{subresource}", **options)


def on_node(*addresses: dict[str, str], name: str = "a", **spec: Any) -> list[Step]:
    """Create a Node with these addresses, and a Pod on it."""
    return [
        post(NODES, named("v1", "Node", "{free}")),
        patch(f"{NODES}/{{free}}/status", {"status": {"addresses": list(addresses)}}),
        post(POD, pod(name, nodeName="{free}", **spec)),
    ]


def _policy(*validations: Any) -> list[Step]:
    """Create a policy on connections, and wait until the server evaluates it."""
    rules = {"resourceRules": [RULE, CONNECTED], "namespaceSelector": HERE}
    asks = READY | {"expression": f"request.operation == 'CONNECT' || {READY['expression']}"}
    return [
        post(BINDINGS, binding(), focus=kind_of),
        post(POLICIES, policy(asks, *validations, matchConstraints=rules), focus=kind_of),
        Until(post(CM, configmap("ready", labels={"ready": "yes"}), dryRun="All"), 413),
    ]


LOOPBACK = {"type": "InternalIP", "address": "127.0.0.1"}
CONTAINERS = [{"name": name, "image": "i"} for name in ("c", "d")]

SCENARIOS = [
    *[
        scenario(
            f"reviews-of-{subresource}",
            ROWS,
            post(POD, pod("a")),
            *installed(connected(script={"echo": True})),
            *[connect(subresource, method=method, **query) for query in queries for method in ("POST", "GET")],
            connect(subresource, name="none"),
            *[connect(subresource, **query) for query in WRONG[subresource]],
            removed(),
        )
        for subresource, queries in QUERIES.items()
    ],
    scenario(
        "reviews-of-proxied-paths",
        ROWS,
        post(POD, pod("a")),
        *installed(connected(script={"echo": True})),
        *[
            connect(f"proxy{path}", name=name, method=method)
            for path in ("", "/", "/x", "/x/y/", "/x%20y")
            for name, method in (("a", "GET"), ("https:a:443", "PUT"), ("a:80", "PATCH"), ("a", "DELETE"))
        ],
        removed(),
    ),
    *[
        scenario(
            f"answers-{name}",
            ROWS,
            post(POD, pod("a")),
            *installed(connected(script=script, **more)),
            connect("exec", command="sh"),
            connect("attach"),
            removed(),
        )
        for name, script, more in (
            ("denied", denied(message="not here", code=409), {}),
            ("allowed", {}, {}),
            ("warned", {"response": {"warnings": ["careful"]}}, {}),
            ("failed", {"status": 500}, {}),
            ("failed-and-ignored", {"status": 500}, {"failurePolicy": "Ignore"}),
            ("of-one-subresource", denied(), {"rules": [CONNECTED | {"resources": ["pods/attach"]}]}),
            ("of-other-resources", denied(), {"rules": [CONNECTED | {"resources": ["*"]}]}),
            ("of-creations", denied(), {"rules": [CONNECTED | {"operations": ["CREATE", "UPDATE"]}]}),
            (
                "of-selected-objects",
                denied(),
                {"objectSelector": {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}},
            ),
            ("of-other-namespaces", denied(), {"namespaceSelector": {"matchLabels": {"no": "such"}}}),
            (
                "on-condition",
                denied(),
                {"matchConditions": [{"name": "sh", "expression": "has(object.command) && object.command[0] == 'sh'"}]},
            ),
        )
    ],
    scenario(
        "changed-options",
        ROWS,
        *on_node(LOOPBACK),
        *installed(connected(script=patched(added("/container", "other"))), kind="Mutating"),
        connect("exec", command="sh"),
        connect("attach"),
        removed("mutating"),
        delete(f"{NODES}/{{free}}"),
    ),
    *[
        scenario(
            f"policy-{name}",
            ROWS,
            post(POD, pod("a")),
            *_policy(expression),
            connect("exec", command="sh"),
            connect("exec", command="ls"),
            connect("attach"),
            delete(f"{POLICIES}/{{free}}", focus=kind_of),
            delete(f"{BINDINGS}/{{free}}", focus=kind_of),
        )
        for name, expression in {
            "on-commands": "!has(object.command) || object.command[0] != 'sh'",
            "on-kinds": "request.kind.kind != 'PodAttachOptions'",
            "on-subresources": "request.subResource != 'exec'",
            "on-metadata": "object.metadata.name == 'a'",
            "on-operations": "request.operation != 'CONNECT' || request.name != 'a'",
        }.items()
    ],
    *[
        scenario(
            f"without-kubelet-{subresource}",
            "Subresources, Status errors",
            connect(subresource),
            post(POD, pod("a")),
            connect(subresource),
            connect(subresource, container="other"),
            post(POD, pod("b", containers=CONTAINERS, initContainers=[{"name": "first", "image": "i"}])),
            connect(subresource, name="b"),
            connect(subresource, name="b", container="first"),
            *on_node(name="n"),
            connect(subresource, name="n"),
            patch(f"{NODES}/{{free}}/status", {"status": {"addresses": [{"type": "Odd", "address": "x"}]}}),
            connect(subresource, name="n", headers=UPGRADE),
            patch(f"{NODES}/{{free}}/status", {"status": {"addresses": [LOOPBACK]}}),
            connect(subresource, name="n"),
            connect(subresource, name="n", method="GET"),
            connect(subresource, name="n", headers=UPGRADE),
            patch(f"{NODES}/{{free}}/status", {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}}),
            connect(subresource, name="n", headers=UPGRADE),
            connect(subresource, name="n", headers=UPGRADE, container="none"),
            delete(f"{NODES}/{{free}}"),
            connect(subresource, name="n", headers=UPGRADE),
        )
        for subresource in ("attach", "exec", "portforward")
    ],
    scenario(
        "proxied-addresses",
        "Subresources, Status errors",
        connect("proxy"),
        post(POD, pod("a")),
        *[connect("proxy", name=name) for name in ("a", "a:80", "http:a:80", "ftp:a:80", ":a:80", "a:b:c:d")],
        *[
            step
            for address in ("127.0.0.1", "169.254.0.1", "224.0.0.1", "::1")
            for step in (
                patch(f"{POD}/a/status", {"status": {"podIP": address, "podIPs": [{"ip": address}]}}),
                connect("proxy", method="GET"),
            )
        ],
        patch(f"{POD}/a/status", {"status": {"podIP": "192.0.2.7", "podIPs": [{"ip": "192.0.2.7"}]}}),
        connect("proxy", method="GET"),
        connect("proxy", method="GET", a="b c"),
    ),
    scenario(
        "other-methods",
        "Subresources, Status errors",
        post(POD, pod("a")),
        *[
            call(method, f"{POD}/a/{subresource}")
            for subresource in ("attach", "exec", "portforward")
            for method in ("PUT", "PATCH", "DELETE")
        ],
        *[call("POST", f"{POD}/a/{subresource}/more") for subresource in ("attach", "exec", "portforward")],
        get("/api/v1/pods/a/exec"),
    ),
    scenario(
        "in-discovery",
        "Discovery, Subresources",
        get(
            "/api/v1",
            focus=lambda tree: [
                each
                for each in tree["resources"]
                if each["name"] in {"pods/attach", "pods/exec", "pods/portforward", "pods/proxy"}
            ],
        ),
    ),
    scenario(
        "reading-is-not-enough",
        "Subresources, Status errors",
        post(POD, pod("a")),
        post(
            "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
            named(
                "rbac.authorization.k8s.io/v1",
                "Role",
                "reads",
                rules=[{"apiGroups": [""], "resources": ["pods/exec", "pods/attach", "pods/proxy"], "verbs": ["get"]}],
            ),
        ),
        post(
            "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings",
            merged(
                named("rbac.authorization.k8s.io/v1", "RoleBinding", "reads"),
                {
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads"},
                    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "{u}"}],
                },
            ),
        ),
        Until(connect("proxy", method="GET", headers=(("Impersonate-User", "{u}"),)), 400),
        *[
            connect(subresource, method=method, headers=(("Impersonate-User", "{u}"),))
            for subresource in ("exec", "attach", "portforward")
            for method in ("GET", "POST")
        ],
    ),
]
