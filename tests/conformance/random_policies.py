"""Admission policies with a binding and params by chance.

Guarantees
- No expression has the variable ``authorizer``, which the embedded server does not support.
- A policy sees only objects of the namespaces of its play that have no label ``ready``.
- A policy has one binding, which finds one param at most: the engine takes more of them in no order.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random  # noqa: TID251 - seeded, and the run prints the seed

from conformance.bodies import Tree, named, service_account
from conformance.chances import maybe, pick
from conformance.random_hooks import PLACES, conditions, objects, rule
from conformance.random_kinds import RandomKind
from conformance.scenarios.mutating_policies import applied, patched

API = "admissionregistration.k8s.io/v1"
PARAM_KIND = {"apiVersion": "v1", "kind": "ServiceAccount"}
_MATCHES = (
    "object == null || object.metadata.name != 'b'",
    "object.metadata.labels.app != 'x'",
    "request.operation != 'DELETE' || oldObject.metadata.name == 'a'",
    "!has(object.spec) || !has(object.spec.replicas) || object.spec.replicas < 3",
    "object.spec.replicas < 3",
    "has(object.metadata.annotations)",
    "!has(object.data) || object.data.all(key, object.data[key].size() < 2)",
    "request.subResource == ''",
    "oldObject == null || object == null || oldObject.metadata.labels == object.metadata.labels",
    "oldObject.metadata.generation == object.metadata.generation",
    "variables.name != 'b'",
    "variables.size < 3 && variables.name != 'a'",
    "variables.broken == 1 || variables.name == 'a'",
    "params == null || object.metadata.name in params.metadata.annotations.names.split(',')",
    "params.metadata.annotations.names.contains(object.metadata.name)",
    "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == request.namespace",
    "namespaceObject.metadata.name == '{ns2}'",
    "object.metadata.?labels[?'app'].orValue('none') in ['x', 'y', 'none']",
    "object.kind == request.kind.kind && object.apiVersion.endsWith(request.kind.version)",
    "request.options.?fieldManager.orValue('') != 'ada'",
    "!has(object.metadata.finalizers) || object.metadata.finalizers.size() < 2",
    "object.spec.template.spec.containers.all(c, c.image.startsWith('example.com/'))",
    "object.spec.containers.all(c, has(c.resources) && has(c.resources.requests))",
    "quantity(object.spec.resources.requests.storage).isLessThan(quantity('2Gi'))",
    "object.spec.image.matches('^a:[12]$')",
    "false",
    "true",
)
_ODD_MATCHES = ("object.", "1", "params.x ==", "variables.none", "self.a")
_MESSAGES = (
    "'bad ' + request.operation + ' of ' + request.resource.resource",
    "'name ' + object.metadata.name",
    "'named ' + variables.name",
    "''",
    "'two\\nlines'",
    "string(object.spec.replicas) + ' is too many'",
    "params.metadata.name",
)
_VARIABLES = [
    {"name": "name", "expression": "object == null ? oldObject.metadata.name : object.metadata.name"},
    {"name": "size", "expression": "object.metadata.labels.size()"},
    {"name": "broken", "expression": "object.none.none"},
]
_MUTATIONS = (
    applied("Object{metadata: Object.metadata{labels: Object.metadata.labels{seen: 'yes'}}}"),
    applied("Object{metadata: Object.metadata{labels: Object.metadata.labels{app: variables.name}}}"),
    applied("Object{metadata: Object.metadata{annotations: Object.metadata.annotations{by: request.operation}}}"),
    applied("Object{data: Object.data{seen: object.metadata.name}}"),
    applied("Object{spec: Object.spec{replicas: 4}}"),
    applied("has(object.spec) && has(object.spec.replicas) ? Object{spec: Object.spec{replicas: object.spec.replicas + 1}} : Object{}"),
    applied("Object{spec: Object.spec{image: 'a:4'}}"),
    applied("Object{metadata: Object.metadata{finalizers: ['example.com/seen']}}"),
    applied("Object{color: 'red'}"),
    applied("Object{}"),
    patched("[JSONPatch{op: 'add', path: '/metadata/labels/patched', value: 'yes'}]"),
    patched("[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/key'), value: variables.name}]"),
    patched("[JSONPatch{op: 'replace', path: '/metadata/labels/app', value: 'z'}]"),
    patched("[JSONPatch{op: 'remove', path: '/metadata/labels/more'}]"),
    patched("[JSONPatch{op: 'test', path: '/metadata/labels/app', value: 'x'}, JSONPatch{op: 'add', path: '/metadata/labels/app', value: 'y'}]"),
    patched("has(object.data) && object.data.size() > 0 ? [JSONPatch{op: 'add', path: '/data/patched', value: 'yes'}] : []"),
    patched("has(object.metadata.labels) ? [JSONPatch{op: 'add', path: '/metadata/labels/names', value: string(params.metadata.annotations.names.size())}] : []"),
    patched("[JSONPatch{op: 'copy', from: '/metadata/name', path: '/metadata/labels/copied'}]"),
    patched("[]"),
)  # fmt: skip


def params() -> list[Tree]:
    """The params that bindings may name; no webhook and no policy sees them."""
    made = []
    for name, names in (("one", "a,c"), ("two", "a,b")):
        metadata = {"name": name, "labels": {"ready": "param", "which": name}, "annotations": {"names": names}}
        made.append({**service_account(name), "metadata": metadata})
    return made


def _policy(chance: Random, kind: str, name: str, kinds: Sequence[RandomKind], operations: list[list[str]]) -> Tree:
    rules = [rule(chance, each, alone=True) for each in kinds]
    for each in rules:
        each["operations"] = pick(chance, operations, [[]])
    constraints = {
        "resourceRules": rules,
        "namespaceSelector": chance.choice(PLACES),
        "objectSelector": objects(chance),
        **maybe(chance, 0.4, {"matchPolicy": chance.choice(("Exact", "Equivalent"))}),
        **maybe(chance, 0.15, {"excludeResourceRules": [{**chance.choice(rules), "resourceNames": ["a"]}]}),
    }
    spec: Tree = {
        "matchConstraints": constraints,
        "variables": _VARIABLES,
        "failurePolicy": chance.choice(("Fail", "Fail", "Ignore")),
        **maybe(chance, 0.6, {"paramKind": PARAM_KIND}),
        **maybe(chance, 0.25, {"matchConditions": conditions(chance)}),
    }
    return named(API, kind, name, spec=spec)


def _validation(chance: Random) -> Tree:
    made: Tree = {"expression": pick(chance, _MATCHES, _ODD_MATCHES)}
    if chance.random() < 0.3:
        made["message"] = pick(chance, ["told", " spaced "], ["two\nlines", ""])
    if chance.random() < 0.3:
        made["messageExpression"] = pick(chance, _MESSAGES, ["1", "object."])
    if chance.random() < 0.2:
        made["reason"] = pick(chance, ["Unauthorized", "Forbidden", "Invalid", "RequestEntityTooLarge"], ["Odd"])
    return made


def random_policy(chance: Random, sort: str, name: str, kinds: Sequence[RandomKind]) -> Tree:
    """A policy of one of the sorts ``Validating`` and ``Mutating``, for some kinds."""
    if sort == "Mutating":
        made = _policy(chance, "MutatingAdmissionPolicy", name, kinds, [["CREATE"], ["UPDATE"], ["CREATE", "UPDATE"]])
        made["spec"]["reinvocationPolicy"] = pick(chance, ["Never", "IfNeeded"], ["Often"])
        made["spec"]["mutations"] = chance.sample(_MUTATIONS, chance.choice((1, 1, 2, 3)))
    else:
        made = _policy(
            chance, "ValidatingAdmissionPolicy", name, kinds, [["*"], ["CREATE"], ["CREATE", "UPDATE"], ["DELETE"]]
        )
        made["spec"]["validations"] = [_validation(chance) for _ in range(chance.choice((1, 1, 2, 3)))]
        audited = {"key": "by", "valueExpression": "'by ' + request.operation"}
        made["spec"] |= maybe(chance, 0.15, {"auditAnnotations": [audited]})
    if "paramKind" not in made["spec"]:
        made = _without_params(made)
    return made


def _without_params(policy: Tree) -> Tree:
    """A policy without what would not compile; if nothing is left, with what matches nothing."""
    spec = policy["spec"]
    for field in ("validations", "mutations"):
        if field in spec:
            kept = [each for each in spec[field] if "params" not in str(each)]
            spec[field] = kept or [{"expression": "true"} if field == "validations" else patched("[]")]
    return policy


def random_binding(chance: Random, sort: str, name: str, policy: str) -> Tree:
    """A binding of a policy, which may name a param that is there or is not."""
    spec: Tree = {"policyName": policy}
    if sort == "Validating":
        spec["validationActions"] = pick(
            chance, [["Deny"], ["Deny"], ["Warn"], ["Deny", "Audit"], ["Warn", "Audit"]], [["Deny", "Warn"], []]
        )
    if chance.random() < 0.6:
        which = chance.choice(
            ({"name": "one"}, {"name": "two"}, {"name": "none"}, {"selector": {"matchLabels": {"which": "one"}}})
        )
        spec["paramRef"] = {
            **which,
            "parameterNotFoundAction": chance.choice(("Allow", "Deny")),
            **maybe(chance, 0.5, {"namespace": "{ns}"}),
        }
    if chance.random() < 0.3:
        spec["matchResources"] = {
            "objectSelector": objects(chance),
            **maybe(chance, 0.5, {"namespaceSelector": chance.choice(PLACES)}),
        }
    return named(API, f"{sort}AdmissionPolicyBinding", name, spec=spec)
