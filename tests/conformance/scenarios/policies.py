"""ValidatingAdmissionPolicies: which compile, what they see, and what becomes of their verdicts."""

from __future__ import annotations

from typing import Any

from conformance.bodies import (
    CM,
    LEASE,
    NAMESPACE,
    POD,
    SERVICE_ACCOUNT,
    configmap,
    lease,
    merged,
    pod,
    service_account,
)
from conformance.scenario import Step, Until, delete, get, patch, post, put, scenario

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
RULE = {
    "operations": ["CREATE", "UPDATE", "DELETE"],
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["configmaps"],
}
HERE = {"matchLabels": {"kubernetes.io/metadata.name": "{ns}"}}
#: The namespace of this play, and the one that it makes.
MINE = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["{ns}", "{free}"]}]}
ROWS = "Webhooks, Status errors"
#: Denies the object that asks whether the policy is there, with a status of its own.
READY = {
    "expression": "object == null || !has(object.metadata.labels) || !('ready' in object.metadata.labels)",
    "reason": "RequestEntityTooLarge",
}


def policy(*validations: Any, name: str = "{free}", **spec: Any) -> dict[str, Any]:
    """A policy on the ConfigMaps of this play; a text is the expression of a validation."""
    told = [{"expression": each} if isinstance(each, str) else each for each in validations]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": [RULE], "namespaceSelector": HERE}, "validations": told} | spec,
    }


def binding(*actions: str, name: str = "{free}", **spec: Any) -> dict[str, Any]:
    """A binding of the policy."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": "{free}", "validationActions": list(actions) or ["Deny"]} | spec,
    }


def kind_of(tree: Any) -> Any:
    return tree["kind"]


def installed(*validations: Any, bound: list[dict[str, Any]] | dict[str, Any] | None = None, **spec: Any) -> list[Step]:
    """Create a policy with its bindings, and wait until the server evaluates it."""
    bindings = [bound] if isinstance(bound, dict) else bound or [binding()]
    return [
        *[post(BINDINGS, each, focus=kind_of) for each in bindings],
        post(POLICIES, policy(READY, *validations, **spec), focus=kind_of),
        Until(post(CM, configmap("ready", labels={"ready": "yes"}), dryRun="All"), 413),
    ]


def installed_silently(*validations: Any, bound: dict[str, Any], **spec: Any) -> list[Step]:
    """Create a policy that denies nothing, and wait for another one: the server takes them in one after the other."""
    return [
        post(BINDINGS, bound, focus=kind_of),
        post(POLICIES, policy(*validations, **spec), focus=kind_of),
        post(BINDINGS, binding(name="{free2}", policyName="{free2}"), focus=kind_of),
        post(POLICIES, policy(READY, name="{free2}"), focus=kind_of),
        Until(post(CM, configmap("ready", labels={"ready": "yes"}), dryRun="All"), 413),
    ]


#: Delete both.
REMOVED_SILENTLY = [
    delete(f"{path}/{name}", focus=kind_of) for path in (POLICIES, BINDINGS) for name in ("{free}", "{free2}")
]


def removed(*names: str) -> list[Step]:
    """Delete the policy and its bindings."""
    return [
        delete(f"{POLICIES}/{{free}}", focus=kind_of),
        *[delete(f"{BINDINGS}/{name}", focus=kind_of) for name in names or ["{free}"]],
    ]


def _refused(name: str, *policies: dict[str, Any]) -> Any:
    return scenario(
        f"refused-{name}", "Webhooks, Kinds, Status errors", *[post(POLICIES, each, dryRun="All") for each in policies]
    )


#: Expressions of a validation, by name.
EXPRESSIONS = {
    "false": "false",
    "name": "object.metadata.name != 'b'",
    "missing": "object.data.none == 'x'",
    "old": "oldObject == null || oldObject.data.key == object.data.key",
    "operation": "request.operation != 'UPDATE'",
    "namespace": "namespaceObject.metadata.name != request.namespace",
    "namespace-labels": "'none' in namespaceObject.metadata.labels",
    "text-and-number": "object.data.key + object.metadata.generation == ''",
    "quantity": "quantity('1Gi').isGreaterThan(quantity('2Gi'))",
    "all": "object.data.all(key, object.data[key].size() > 10)",
    "optional": "object.?metadata.?labels.hasValue()",
    "delete": "request.operation != 'DELETE' || oldObject.metadata.name != 'a'",
}

#: Expressions that show whether an object has Go's types: comparisons of lists and maps with other values, keys of other types.
TYPED = (
    "object.data == 1",
    "object.data != 1",
    "!(1 == object.data)",
    "object.data == null",
    "object.data != null",
    "object.data == {'key': 'value'}",
    "object.data == {'key': 1}",
    "object.data == {'key': 'value', 'x': 'y'}",
    "{'key': 'value'} == object.data",
    "{'a': object.data} == {'a': 1}",
    "[object.data] == [1]",
    "object == oldObject",
    "object.metadata == {'name': 'b'}",
    "object.metadata == 'b'",
    "object.metadata.labels == []",
    "object.metadata.labels in [dyn(1), object.metadata.labels]",
    "object.metadata.finalizers == 'a'",
    "object.metadata.finalizers == ['example.com/a', 'example.com/b']",
    "object.metadata.finalizers == [dyn('example.com/a'), dyn(1)]",
    "object.metadata.finalizers == [dyn([]), dyn('example.com/b')]",
    "object.metadata.finalizers == {}",
    "'example.com/a' in object.metadata.finalizers",
    "1 in object.metadata.finalizers",
    "object.metadata.finalizers + [1] == [dyn('example.com/a'), dyn('example.com/b'), dyn(1)]",
    "object.metadata.finalizers + [] == dyn(1)",
    "[] + object.metadata.finalizers == dyn(1)",
    "object.metadata.finalizers[0] == 'x'",
    "object.metadata.finalizers[1.0] == 'x'",
    "object.metadata.finalizers[1u] == 'x'",
    "object.metadata.finalizers[2.0] == 'x'",
    "object.metadata.finalizers['a'] == 'x'",
    "1 in object.data",
    "object.data[1] == 'x'",
    "object.data[true] == 'x'",
    "object.data[1.5] == 'x'",
    "object.data['none'] == 'x'",
    "dyn(request.userInfo) == dyn(1)",
    "dyn(request.userInfo.groups) == dyn(1)",
    "dyn(request.kind) == dyn({'group': dyn(''), 'version': dyn('v1'), 'kind': dyn(1)})",
    "dyn(request.kind) == dyn({'group': '', 'version': 'v1', 'kind': 'ConfigMap'})",
    "dyn(request) == dyn({})",
    "request.options == 1",
    "object.metadata.managedFields[0].fieldsV1 == 1",
    "dyn(namespaceObject) == dyn(1)",
    "dyn(namespaceObject.metadata.labels) == dyn(1)",
    "dyn(namespaceObject.spec) == dyn({'finalizers': 1})",
    "dyn(namespaceObject.spec) != dyn({'finalizers': 1})",
    "dyn(namespaceObject) == dyn({'apiVersion': 1, 'kind': 1, 'metadata': 1, 'spec': 1, 'status': 1})",
    "type(object) == map && type(object.data) == map && type(object.metadata.finalizers) == list",
    "size(object.metadata.finalizers) == 1",
    "object.metadata.finalizers.map(each, each) == dyn(1)",
    "object.metadata.finalizers.filter(each, each == 1) == []",
    "object.metadata.finalizers.exists(each, each == [])",
    "object.data.exists(key, object.data[key] == {})",
    "params.metadata.annotations == 1",
    "params.metadata.annotations == object.metadata.labels",
    "params == object",
)

VALUES = {"name": "values", "parameterNotFoundAction": "Deny"}

SCENARIOS = [
    *[
        scenario(
            f"types-{number}",
            ROWS,
            post(SERVICE_ACCOUNT, merged(service_account("values"), {"metadata": {"annotations": {"x": "y"}}}), focus=kind_of),
            # Warnings show all that fail, and how. They are cut after 4 KiB.
            *installed(
                *expressions,
                paramKind={"apiVersion": "v1", "kind": "ServiceAccount"},
                bound=[
                    binding("Warn", name="{free}w", paramRef=VALUES),
                    binding(paramRef=VALUES, matchResources={"objectSelector": {"matchLabels": {"ready": "yes"}}}),
                ],
            ),
            post(CM, configmap("b", {"key": "value"}, labels={"x": "y"}, finalizers=["example.com/a", "example.com/b"])),
            *removed("{free}", "{free}w"),
        )
        for number, expressions in enumerate(TYPED[at : at + 12] for at in range(0, len(TYPED), 12))
    ],
    scenario(
        "types-in-conditions",
        ROWS,
        *installed("true", matchConditions=[{"name": "a", "expression": "object.metadata.name == 'ready' || object.metadata.finalizers == 1"}, {"name": "b", "expression": "object.metadata.name != 'free'"}]),
        post(CM, configmap("b", finalizers=["example.com/a"])),
        post(CM, configmap("free", finalizers=["example.com/a"])),
        *removed(),
    ),
    *[
        scenario(
            f"expression-{name}",
            ROWS,
            post(CM, configmap("a")),
            *installed(expression),
            post(CM, configmap("b")),
            put(f"{CM}/a", configmap("a", {"key": "other"})),
            delete(f"{CM}/a"),
            *removed(),
        )
        for name, expression in EXPRESSIONS.items()
    ],
    *[
        scenario(
            f"actions-{'-'.join(actions).lower()}",
            ROWS,
            *install("false", {"expression": "object.x == 1", "message": "told"}, {"expression": "false", "message": "so", "reason": "Forbidden"}, bound=binding(*actions)),
            post(CM, configmap("b")),
            *remove,
        )
        for install, remove, *actions in (
            (installed, removed(), "Deny"), (installed, removed(), "Deny", "Audit"),
            *((installed_silently, REMOVED_SILENTLY, *actions) for actions in (["Warn"], ["Audit"], ["Warn", "Audit"])),
        )
    ],
    scenario(
        "deletion-that-runs-already",
        f"{ROWS}, Delete",
        post(POD, pod("a", nodeName="here"), focus=kind_of),
        post(NAMESPACE, {"metadata": {"name": "{free}"}, "spec": {"finalizers": ["example.com/a"]}}, focus=kind_of),
        delete(f"{NAMESPACE}/{{free}}", focus=lambda tree: tree["status"]),
        delete(f"{POD}/a", focus=kind_of),
        *installed("request.operation != 'DELETE'", matchConstraints={"resourceRules": [RULE, RULE | {"resources": ["pods", "namespaces"]}], "namespaceSelector": MINE}),
        delete(f"{POD}/a", focus=kind_of),
        delete(f"{POD}/a", {"gracePeriodSeconds": 40}, focus=kind_of),
        delete(f"{POD}/a", {"gracePeriodSeconds": 5}),
        delete(POD, {"gracePeriodSeconds": 40}, focus=kind_of),
        delete(f"{NAMESPACE}/{{free}}", focus=lambda tree: tree["status"]),
        *removed(),
        Until(delete(f"{POD}/a", {"gracePeriodSeconds": 0}), 200),
        put(f"{NAMESPACE}/{{free}}/finalize", {"metadata": {"name": "{free}"}, "spec": {"finalizers": []}}, focus=kind_of),
    ),
    scenario(
        "ignored",
        ROWS,
        *installed("object.x == 1", failurePolicy="Ignore"),
        post(CM, configmap("b")),
        *removed(),
    ),
    scenario(
        "denied-collection",
        f"{ROWS}, deletecollection",
        *[post(CM, configmap(name)) for name in "ab"],
        *installed("request.operation != 'DELETE'"),
        delete(CM),
        delete(CM, dryRun="All"),
        delete(f"{CM}/a"),
        *removed(),
    ),
    scenario(
        "ignored-and-denied",
        ROWS,
        *installed("object.x == 1", {"expression": "false", "message": "no"}, failurePolicy="Ignore"),
        post(CM, configmap("b")),
        *removed(),
    ),
    *[
        scenario(f"message-{name}", ROWS, *installed({"expression": "false"} | told), post(CM, configmap("b")), *removed())
        for name, told in {
            "plain": {"message": " spaced "},
            "expression": {"messageExpression": "'name ' + object.metadata.name"},
            "both": {"message": "plain", "messageExpression": "'name ' + object.metadata.name"},
            "failing": {"message": "plain", "messageExpression": "'name ' + string(object.none)"},
            "empty": {"message": "plain", "messageExpression": "''"},
            "lines": {"message": "plain", "messageExpression": "'a\\nb'"},
            "of-request": {"messageExpression": "request.operation + ' by ' + string(request.dryRun)"},
        }.items()
    ],
    scenario(
        "variables",
        ROWS,
        *installed(
            {"expression": "variables.name != 'b'", "messageExpression": "'got ' + variables.twice"},
            "variables.failing == 1 || object.metadata.name != 'c'",
            variables=[
                {"name": "name", "expression": "object.metadata.name"},
                {"name": "twice", "expression": "variables.name + variables.name"},
                {"name": "failing", "expression": "object.none.none"},
            ],
        ),
        post(CM, configmap("b")),
        post(CM, configmap("c")),
        *removed(),
    ),
    scenario(
        "conditions",
        ROWS,
        *installed("false", matchConditions=[{"name": "a", "expression": "!(object.metadata.name in ['free', 'open'])"}, {"name": "b", "expression": "object.metadata.name != 'error' || object.x == 1"}]),
        *[post(CM, configmap(name)) for name in ("free", "bound", "error")],
        *removed(),
    ),
    scenario(
        "params",
        ROWS,
        post(SERVICE_ACCOUNT, merged(service_account("limits"), {"metadata": {"annotations": {"longest": "2"}}}), focus=kind_of),
        *installed(
            {"expression": "params == null || object.metadata.name.size() <= int(params.metadata.annotations.longest)", "messageExpression": "'at most ' + params.metadata.annotations.longest"},
            paramKind={"apiVersion": "v1", "kind": "ServiceAccount"},
            bound=[binding(paramRef={"name": "limits", "parameterNotFoundAction": "Deny"})],
        ),
        post(CM, configmap("b")),
        post(CM, configmap("long")),
        *removed(),
    ),
    scenario(
        "params-selected",
        ROWS,
        post(LEASE, merged(lease("limits"), {"metadata": {"annotations": {"longest": "2"}, "labels": {"limits": "yes"}}}), focus=kind_of),
        *installed(
            "object.metadata.name.size() <= int(params.metadata.annotations.longest)",
            paramKind={"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"},
            bound=[binding(paramRef={"selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Allow"})],
        ),
        post(CM, configmap("long")),
        *removed(),
    ),
    scenario(
        "two-bindings",
        ROWS,
        *installed("object.metadata.name != 'b'", bound=[binding("Deny"), binding("Audit", name="{free2}", matchResources={"resourceRules": [RULE | {"resourceNames": ["c"]}]})]),
        post(CM, configmap("b")),
        post(CM, configmap("c")),
        *removed("{free}", "{free2}"),
    ),
    scenario(
        "excluded",
        ROWS,
        *installed("false", matchConstraints={"resourceRules": [RULE], "namespaceSelector": HERE, "excludeResourceRules": [RULE | {"resourceNames": ["free"]}]}),
        post(CM, configmap("free")),
        post(CM, configmap("bound")),
        *removed(),
    ),
    scenario(
        "audited",
        ROWS,
        *installed("true", auditAnnotations=[{"key": "name", "valueExpression": "'name ' + object.metadata.name"}, {"key": "none", "valueExpression": "null"}, {"key": "failing", "valueExpression": "object.metadata.name == 'b' ? string(object.none) : ''"}]),
        post(CM, configmap("a")),
        post(CM, configmap("b")),
        *removed(),
    ),
    scenario(
        "stored",
        "Webhooks, Kinds",
        post(POLICIES, policy("true", variables=[{"name": "a", "expression": "1"}], auditAnnotations=[{"key": "k", "valueExpression": "'v'"}]), as_="p"),
        put(f"{POLICIES}/{{free}}", "${p..}"),
        patch(f"{POLICIES}/{{free}}", {"spec": {"failurePolicy": "Ignore"}}),
        patch(f"{POLICIES}/{{free}}", {"spec": {"failurePolicy": "Maybe"}}),
        patch(f"{POLICIES}/{{free}}/status", {"status": {"observedGeneration": 1}}),
        post(BINDINGS, binding(matchResources={}), as_="b"),
        patch(f"{BINDINGS}/{{free}}", {"spec": {"validationActions": ["Warn"]}}),
        put(f"{BINDINGS}/{{free}}", binding()),
        get(f"{POLICIES}/{{free}}"),
        get(f"{BINDINGS}/{{free}}"),
        delete(f"{POLICIES}/{{free}}"),
        delete(f"{BINDINGS}/{{free}}"),
    ),
    _refused("constraints", policy("true", matchConstraints=None), policy("true", matchConstraints={}), *[policy("true", matchConstraints={"resourceRules": [RULE | more]}) for more in ({"operations": []}, {"resourceNames": ["a", "a"]}, {"resourceNames": ["a/b"]}, {"apiGroups": []}, {"scope": "x"})], policy("true", matchConstraints={"resourceRules": [RULE], "matchPolicy": "x"}), policy("true", failurePolicy="x")),
    _refused("validations", policy(), policy(""), policy(" "), *[policy({"expression": "true"} | more) for more in ({"message": " "}, {"message": "a\nb"}, {"messageExpression": " "}, {"messageExpression": "1"}, {"messageExpression": "object.x +"}, {"reason": "x"}, {"reason": "NotFound"})]),
    _refused("expressions", *[policy(each) for each in ("1", "object", "params.x", "variables.x", "self", "request.x", "object.x ==", "namespaceObject.x", "'a'.matches('(')", "duration('x') > duration('1s')")]),
    _refused("variables", *[policy("true", variables=variables) for variables in ([{}], [{"name": "a b", "expression": "1"}], [{"name": "for", "expression": "1"}], [{"name": "a", "expression": " "}], [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}], [{"name": "a", "expression": "1"}, {"name": "b", "expression": "variables.a + 'x'"}])], policy("variables.a", variables=[{"name": "a", "expression": "1"}]), policy("variables.b == 1", variables=[{"name": "a", "expression": "1"}])),
    _refused("params", *[policy("params.x == 1", paramKind=kind) for kind in ({}, {"apiVersion": "v1"}, {"apiVersion": "a/b/c", "kind": "x"}, {"apiVersion": "A_/v1", "kind": "x y"}, {"apiVersion": "v1", "kind": "ConfigMap"})]),
    _refused("annotations", *[policy("true", auditAnnotations=annotations) for annotations in ([{}], [{"key": "a b", "valueExpression": "'x'"}], [{"key": "a", "valueExpression": "1"}], [{"key": "a", "valueExpression": "'x'"}, {"key": "a", "valueExpression": "'y'"}], [{"key": "a", "valueExpression": "object.x"}])]),
    scenario(
        "refused-bindings",
        "Webhooks, Kinds, Status errors",
        *[
            post(BINDINGS, merged(binding(), {"spec": spec}), dryRun="All")
            for spec in (
                {"policyName": ""}, {"policyName": "A_"}, {"validationActions": []}, {"validationActions": ["Deny", "Warn"]}, {"validationActions": ["Deny", "Deny"]}, {"validationActions": ["x"]},
                {"paramRef": {}}, {"paramRef": {"name": "a"}}, {"paramRef": {"name": "a", "selector": {}, "parameterNotFoundAction": "Deny"}}, {"paramRef": {"name": "a/b", "parameterNotFoundAction": "x"}},
                {"matchResources": {"matchPolicy": "x"}}, {"matchResources": {"resourceRules": [{}]}},
            )
        ],
    ),
]  # fmt: skip
