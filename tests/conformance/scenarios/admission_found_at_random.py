"""What random configurations of admission found to differ once, each in the fewest requests that show it."""

from __future__ import annotations

from typing import Any

from conformance.bodies import (
    CM,
    DEPLOYMENT,
    EVENT,
    NEW_EVENT,
    POD,
    SECRET,
    configmap,
    deployment,
    event,
    merged,
    named,
    new_event,
    pod,
    secret,
)
from conformance.scenario import Step, Until, get, patch, post, scenario
from conformance.scenarios import mutating_policies as policies, webhooks
from conformance.scenarios.mutating_policies import HERE, LABELED, REMOVED, RULE, applied, patched

from samples.site import GROUP

ROWS = "Webhooks, Patch, Status errors"
SITE = f"/apis/{GROUP}/v1/namespaces/{{ns}}/sites"
EVERYTHING = RULE | {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "scope": "Namespaced"}
GENERATED = {"metadata": {"name": None, "generateName": "made-"}}


def _policed(*mutations: Any, resources: str = "configmaps", group: str = "", **spec: Any) -> list[Step]:
    """Install a policy for a resource and for the object that asks whether it is there."""
    rules = [RULE, RULE | {"apiGroups": [group], "resources": [resources]}]
    constraints = {"resourceRules": rules, "namespaceSelector": HERE}
    return policies.installed(*mutations, matchConstraints=constraints, **spec)


def _for_others(made: str) -> Any:
    """An object to apply, except to the one that asks."""
    return applied(f"object.metadata.name == 'ready' ? Object{{}} : {made}")


SCENARIOS = [
    *[
        scenario(
            f"policy-that-changes-its-own-object-{reinvocation.lower()}",
            ROWS,
            *_policed(
                applied("has(object.spec) ? Object{spec: Object.spec{replicas: object.spec.replicas + 1}} : Object{}"),
                resources="deployments", group="apps", reinvocationPolicy=reinvocation,
            ),
            post(DEPLOYMENT, deployment("b", replicas=1)),
            patch(f"{DEPLOYMENT}/b", {"metadata": {"labels": {"a": "b"}}}),
            get(f"{DEPLOYMENT}/b"),
            *REMOVED,
        )
        for reinvocation in ("IfNeeded", "Never")
    ],
    *[
        scenario(
            f"policy-that-applies-{name}",
            ROWS,
            *_policed(_for_others(made), resources="secrets"),
            post(SECRET, secret("b")),
            post(CM, configmap("b")),
            *REMOVED,
        )
        for name, made in (
            ("no-base64", "Object{data: Object.data{seen: '%'}}"),
            ("no-time", "Object{metadata: Object.metadata{creationTimestamp: 'x'}}"),
        )
    ],
    scenario(
        "policy-with-an-escaped-key",
        ROWS,
        *_policed(
            patched("[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'x': 'y'}}, JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('a.b/c~d/~1'), value: 'z'}]"),
        ),
        post(CM, configmap("b")),
        post(policies.POLICIES, policies.policy(patched("[JSONPatch{op: jsonpatch.escapeKey(1)}]")), dryRun="All"),
        post(policies.POLICIES, policies.policy(patched("[JSONPatch{op: jsonpatch.unescapeKey('a')}]")), dryRun="All"),
        *REMOVED,
    ),
    scenario(
        "policy-without-its-params",
        ROWS,
        *_policed(
            patched("[JSONPatch{op: 'add', path: '/data/team', value: params.data.team}]"),
            paramKind={"apiVersion": "v1", "kind": "Secret"},
            bound=policies.binding(paramRef={"name": "none", "parameterNotFoundAction": "Deny"}),
            because="no params found",
        ),
        post(CM, configmap("b")),
        post(CM, merged(configmap("b"), GENERATED)),
        *REMOVED,
    ),
    scenario(
        "policy-for-invalid-custom-resources",
        ROWS,
        *_policed(_for_others(LABELED), resources="sites", group=GROUP),
        # kube-apiserver's policies learn of a new kind later than its other parts
        Until(post(SITE, named(f"{GROUP}/v1", "Site", "b", spec={"image": "x"}), dryRun="All"), 201),
        *[
            post(SITE, named(f"{GROUP}/v1", "Site", "b", spec=spec))
            for spec in ({"image": 5}, {"image": "x", "replicas": "x"}, {"image": "x", "ports": "x"}, {"image": "x", "ports": [{"name": 5}]}, {"image": "x", "replicas": 51}, {"image": True}, {})
        ],
        *REMOVED,
    ),
    scenario(
        "policy-for-events-of-the-other-group",
        ROWS,
        post(EVENT, event("a")),
        *_policed(_for_others(LABELED), resources="events"),
        post(EVENT, event("b")),
        post(NEW_EVENT, new_event("c")),
        patch(f"{NEW_EVENT}/a", {"metadata": {"labels": {"a": "b"}}}),
        *REMOVED,
    ),
    *[
        scenario(
            f"webhook-that-cannot-{name}",
            ROWS,
            *webhooks.installed(webhooks.hook(script=webhooks.patched(operation)), kind="Mutating"),
            post(CM, merged(configmap("b"), {"metadata": {"finalizers": ["example.com/a"]}})),
            webhooks.removed("mutating"),
        )
        for name, operation in {
            "copy-to-nowhere": {"op": "copy", "from": "/metadata/name", "path": "/metadata/labels/x"},
            "move-to-nowhere": {"op": "move", "from": "/metadata/name", "path": "/metadata/labels/x"},
            "copy-from-a-list": {"op": "copy", "from": "/metadata/finalizers/3", "path": "/data/x"},
            "move-from-a-list": {"op": "move", "from": "/metadata/finalizers/3", "path": "/data/x"},
            "move-what-is-missing": {"op": "move", "from": "/data/none", "path": "/data/x"},
            "copy-into-a-list": {"op": "copy", "from": "/metadata/name", "path": "/metadata/finalizers/9"},
            "move-into-a-list": {"op": "move", "from": "/data/key", "path": "/metadata/finalizers/9"},
        }.items()
    ],
    *[
        scenario(
            f"policy-for-subresources-{name}",
            "Webhooks, Subresources, Status errors",
            post(DEPLOYMENT, deployment("a", replicas=1)),
            post(POD, pod("a")),
            post(SITE, named(f"{GROUP}/v1", "Site", "a", spec={"image": "x"})),
            *policies.installed(mutation, matchConstraints={"resourceRules": [EVERYTHING], "namespaceSelector": HERE}),
            patch(f"{DEPLOYMENT}/a/scale", {"spec": {"replicas": 3}}),
            patch(f"{SITE}/a/scale", {"spec": {"replicas": 3}}),
            post(f"{POD}/a/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}),
            *REMOVED,
        )
        for name, mutation in (("applied", _for_others(LABELED)), ("patched", policies.MUTATIONS["json-map"]))
    ],
    scenario(
        "warnings-with-control-characters",
        "Webhooks",
        *webhooks.installed(webhooks.hook(script={"response": {"warnings": ["two\nlines", "", "a\ttab", "\x7f", "\x85", "one"]}})),
        post(CM, configmap("b")),
        webhooks.removed(),
    ),
]  # fmt: skip
