"""MutatingAdmissionPolicies: which compile, and what they make of objects."""

from __future__ import annotations

from typing import Any

from conformance.bodies import CM, DEPLOYMENT, SERVICE_ACCOUNT, configmap, deployment, merged, service_account
from conformance.scenario import Step, Until, delete, get, patch, post, put, scenario

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{GROUP}/mutatingadmissionpolicies", f"{GROUP}/mutatingadmissionpolicybindings"
RULE = {"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
HERE = {"matchLabels": {"kubernetes.io/metadata.name": "{ns}"}}
ROWS = "Webhooks, Patch, Status errors"


def patched(expression: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def applied(expression: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


#: Renames the object that asks whether the policy is there, which is rejected.
READY = patched("object.metadata.name == 'ready' ? [JSONPatch{op: 'remove', path: '/none'}] : []")


def policy(*mutations: dict[str, Any], name: str = "{free}", **spec: Any) -> dict[str, Any]:
    """A policy on the ConfigMaps of this play."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [RULE], "namespaceSelector": HERE},
            "reinvocationPolicy": "Never",
            "mutations": list(mutations),
        }
        | spec,
    }


def binding(*, name: str = "{free}", **spec: Any) -> dict[str, Any]:
    """A binding of the policy."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": "{free}"} | spec,
    }


def kind_of(tree: Any) -> Any:
    return tree["kind"]


def asked(asks: dict[str, Any], path: str = CM, *, because: str = "/none") -> Step:
    """Wait until the server denies what asks, with a message that holds `because`."""
    return Until(post(path, asks, dryRun="All"), 403, holds=lambda tree: because in tree["message"])


def installed(
    *mutations: dict[str, Any],
    bound: dict[str, Any] | None = None,
    ready: str = CM,
    because: str = "/none",
    **spec: Any,
) -> list[Step]:
    """Create a policy with its binding, and wait until the server evaluates it."""
    asks = deployment("ready") if ready == DEPLOYMENT else configmap("ready")
    return [
        post(BINDINGS, bound or binding(), focus=kind_of),
        post(POLICIES, policy(READY, *mutations, **spec), focus=kind_of),
        asked(asks, ready, because=because),
    ]


def installed_silently(*mutations: dict[str, Any], bound: dict[str, Any], **spec: Any) -> list[Step]:
    """Create a policy that does nothing, and wait for another one: the server takes them in one after the other."""
    return [
        post(BINDINGS, bound, focus=kind_of),
        post(POLICIES, policy(*mutations, **spec), focus=kind_of),
        post(BINDINGS, binding(name="{free2}", policyName="{free2}"), focus=kind_of),
        post(POLICIES, policy(READY, name="{free2}"), focus=kind_of),
        asked(configmap("ready")),
    ]


def param(name: str, key: str, **metadata: Any) -> dict[str, Any]:
    """A parameter of policies: kube-apiserver always follows ServiceAccounts, ConfigMaps only up to the end of a policy."""
    return merged(service_account(name), {"metadata": {"annotations": {"key": key}} | metadata})


#: The kind of `param`.
PARAM_KIND = {"apiVersion": "v1", "kind": "ServiceAccount"}


REMOVED = [delete(f"{POLICIES}/{{free}}", focus=kind_of), delete(f"{BINDINGS}/{{free}}", focus=kind_of)]
REMOVED_SILENTLY = [
    *REMOVED,
    delete(f"{POLICIES}/{{free2}}", focus=kind_of),
    delete(f"{BINDINGS}/{{free2}}", focus=kind_of),
]
LABELED = "Object{metadata: Object.metadata{labels: Object.metadata.labels{seen: 'yes'}}}"

#: Mutations, by name.
MUTATIONS = {
    "apply-label": applied(LABELED),
    "apply-data": applied("Object{data: Object.data{key: 'other', more: object.metadata.name}}"),
    "apply-nothing": applied("Object{}"),
    "apply-unknown": applied("Object{color: 'red'}"),
    "apply-wrong-type": applied("Object{data: 'red'}"),
    "apply-wrong-name": applied("Object{metadata: Object.data{labels: 'x'}}"),
    "apply-failing": applied("Object{data: Object.data{x: object.none}}"),
    "apply-optional": applied("Object{?data: optional.none()}"),
    "json-add": patched("[JSONPatch{op: 'add', path: '/data/more', value: object.metadata.name}]"),
    "json-map": patched("[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}]"),
    "json-object": patched("[JSONPatch{op: 'add', path: '/metadata/labels', value: Object.metadata.labels{a: 'b'}}]"),
    "json-test-fails": patched(
        "[JSONPatch{op: 'test', path: '/data/key', value: 'x'}, JSONPatch{op: 'remove', path: '/data'}]"
    ),
    "json-missing": patched("[JSONPatch{op: 'remove', path: '/data/none'}]"),
    "json-wrong-type": patched(
        "object.metadata.name == 'ready' ? [] : [JSONPatch{op: 'add', path: '/data', value: 5}]"
    ),
    "json-move": patched("[JSONPatch{op: 'move', from: '/data/key', path: '/data/moved'}]"),
    "json-unknown-field": patched(
        "object.metadata.name == 'ready' ? [] : [JSONPatch{op: 'add', path: '/color', value: 'red'}]"
    ),
    "json-empty": patched("has(object.data) ? [] : [JSONPatch{op: 'remove', path: '/data'}]"),
    "json-own-map": patched("[JSONPatch{op: 'add', path: '/metadata/labels', value: object.data}]"),
    "json-own-map-inside": patched(
        "[JSONPatch{op: 'add', path: '/data', value: {'a': object.data.key}}, JSONPatch{op: 'add', path: '/metadata/labels', value: object.data}]"
    ),
    "json-user": patched("[JSONPatch{op: 'add', path: '/metadata/finalizers', value: request.userInfo.groups}]"),
    "json-user-item": patched(
        "[JSONPatch{op: 'add', path: '/metadata/finalizers', value: [request.userInfo.groups[0]]}]"
    ),
    "json-user-inside": patched("[JSONPatch{op: 'add', path: '/data', value: {'a': dyn(request.userInfo.groups)}}]"),
    "json-namespace-labels": patched(
        "[JSONPatch{op: 'add', path: '/metadata/labels', value: namespaceObject.metadata.labels}]"
    ),
    "json-namespace-spec": patched("[JSONPatch{op: 'add', path: '/data', value: namespaceObject.spec}]"),
    "json-kind": patched("[JSONPatch{op: 'add', path: '/data', value: request.kind}]"),
    "json-user-mapped": patched(
        "[JSONPatch{op: 'add', path: '/metadata/finalizers', value: request.userInfo.groups.map(each, 'example.com/a')}]"
    ),
    "json-object-of-map": patched(
        "[JSONPatch{op: 'add', path: '/metadata', value: Object.metadata{name: 'b', namespace: object.metadata.namespace, labels: namespaceObject.metadata.labels}}]"
    ),
    "apply-own-map": applied("Object{metadata: Object.metadata{labels: object.data}}"),
    "apply-namespace-labels": applied("Object{metadata: Object.metadata{labels: namespaceObject.metadata.labels}}"),
    "apply-user-groups": applied(
        "Object{metadata: Object.metadata{finalizers: request.userInfo.groups.map(each, 'example.com/a')}}"
    ),
    "apply-map-of-map": applied(
        "Object{metadata: Object.metadata{labels: {'a': namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == '' ? '' : 'b'}}}"
    ),
    "apply-compared": applied("object.data == 1 ? Object{} : Object{data: Object.data{more: 'x'}}"),
}
#: Mutations whose result depends on match conditions, which make the object show its types.
AFTER_CONDITIONS = ("json-own-map", "json-own-map-inside", "apply-own-map", "apply-compared")

SCENARIOS = [
    *[
        scenario(name, ROWS, *installed(mutation), post(CM, configmap("b")), get(f"{CM}/b"), *REMOVED)
        for name, mutation in MUTATIONS.items()
    ],
    *[
        scenario(
            f"{name}-after-conditions",
            ROWS,
            *installed(MUTATIONS[name], matchConditions=[{"name": "a", "expression": "object.metadata.name != 'free'"}]),
            post(CM, configmap("b")),
            post(CM, configmap("free")),
            *REMOVED,
        )
        for name in AFTER_CONDITIONS
    ],
    scenario(
        "params-of-maps",
        ROWS,
        post(SERVICE_ACCOUNT, param("values", "red")),
        *installed(
            patched("[JSONPatch{op: 'add', path: '/metadata/labels', value: params.metadata.annotations}]"),
            paramKind={"apiVersion": "v1", "kind": "ServiceAccount"},
            bound=binding(paramRef={"name": "values", "parameterNotFoundAction": "Deny"}),
        ),
        post(CM, configmap("b")),
        *REMOVED,
    ),
    scenario(
        "ignored",
        ROWS,
        *installed(MUTATIONS["json-missing"], MUTATIONS["json-add"], matchConditions=[{"name": "a", "expression": "object.metadata.name != 'free'"}]),
        post(CM, configmap("free")),
        post(CM, configmap("b")),
        *REMOVED,
    ),
    scenario(
        "in-order",
        ROWS,
        post(CM, configmap("a")),
        *installed(MUTATIONS["apply-label"], patched("[JSONPatch{op: 'add', path: '/data/seen', value: object.metadata.labels.seen}]"), variables=[{"name": "x", "expression": "object.metadata.name"}]),
        post(CM, configmap("b")),
        put(f"{CM}/a", configmap("a", {"x": "y"})),
        patch(f"{CM}/a", {"data": {"z": "z"}}),
        *REMOVED,
    ),
    scenario(
        "params",
        ROWS,
        post(SERVICE_ACCOUNT, param("values", "red")),
        *installed(
            patched("[JSONPatch{op: 'add', path: '/data/team', value: params.metadata.annotations.key}]"),
            paramKind=PARAM_KIND,
            bound=binding(paramRef={"name": "values", "parameterNotFoundAction": "Deny"}),
        ),
        post(CM, configmap("b")),
        *REMOVED,
    ),
    scenario(
        "deployments",
        ROWS,
        *installed(
            applied("Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'side', image: 'busybox'}]}}}}"),
            ready=DEPLOYMENT,
            matchConstraints={"resourceRules": [RULE | {"apiGroups": ["apps"], "resources": ["deployments"]}], "namespaceSelector": HERE},
        ),
        post(DEPLOYMENT, deployment("b")),
        *REMOVED,
    ),
    scenario(
        "atomic",
        ROWS,
        *installed(
            applied("Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: Object.spec.selector.matchLabels{a: 'b'}}}}"),
            ready=DEPLOYMENT,
            matchConstraints={"resourceRules": [RULE | {"apiGroups": ["apps"], "resources": ["deployments"]}], "namespaceSelector": HERE},
        ),
        post(DEPLOYMENT, deployment("b")),
        *REMOVED,
    ),
    scenario(
        "stored",
        "Webhooks, Kinds",
        post(POLICIES, policy(MUTATIONS["apply-label"]), as_="p"),
        put(f"{POLICIES}/{{free}}", "${p..}"),
        patch(f"{POLICIES}/{{free}}", {"spec": {"reinvocationPolicy": "IfNeeded"}}),
        post(BINDINGS, binding(matchResources={})),
        *REMOVED,
    ),
    scenario(
        "refused",
        "Webhooks, Kinds, Status errors",
        *[
            post(POLICIES, each, dryRun="All")
            for each in (
                policy(), policy({}), policy({"patchType": "x"}), policy({"patchType": "JSONPatch"}), policy({"patchType": "ApplyConfiguration"}),
                policy(patched(" ")), policy(applied("1")), policy(patched("1")), policy(patched("[]")), policy(patched("[1]")), policy(applied("JSONPatch{}")), policy(patched("[JSONPatch{color: 'x'}]")),
                policy(patched("[JSONPatch{op: 1}]")), policy(applied("Foo{}")), policy(patched("[]") | applied("Object{}")), policy(READY, reinvocationPolicy=""), policy(READY, reinvocationPolicy="x"),
                policy(READY, matchConstraints={"resourceRules": [RULE | {"operations": ["DELETE"]}]}), policy(READY, failurePolicy="x"), policy(READY, matchConstraints=None), policy(applied("variables.x")),
            )
        ],
        *[post(BINDINGS, each, dryRun="All") for each in (binding(policyName=""), binding(paramRef={}), binding(matchResources={"resourceRules": [RULE | {"operations": ["DELETE"]}]}))],
    ),
]  # fmt: skip
