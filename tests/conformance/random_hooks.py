"""Webhook configurations by chance: rules, selectors, conditions, and answers that follow from the request alone.

Guarantees
- A webhook sees only objects of the namespaces of its play that have no label ``ready``.
- Of the validating webhooks that see a resource at most one answers anything but yes: the engine calls them all at once.
- A mutating webhook may say anything: they are called one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random  # noqa: TID251 - seeded, and the run prints the seed

from conformance.bodies import Tree
from conformance.chances import add, maybe, pick, remove, replace
from conformance.hook_server import scripted
from conformance.random_kinds import RandomKind
from conformance.scenarios.webhooks import ANSWERS, configured, denied

OPERATIONS = ("CREATE", "UPDATE", "DELETE")
_NAME = "kubernetes.io/metadata.name"
#: Selectors of namespaces; each stays within those of a play.
PLACES: tuple[Tree, ...] = (
    {"matchLabels": {_NAME: "{ns}"}},
    {"matchLabels": {_NAME: "{ns}"}},
    {"matchExpressions": [{"key": _NAME, "operator": "In", "values": ["{ns}", "{ns2}"]}]},
    {"matchLabels": {_NAME: "{ns2}"}},
    {"matchLabels": {_NAME: "{ns}"}, "matchExpressions": [{"key": "team", "operator": "Exists"}]},
)
#: Conditions, of webhooks and of policies.
CONDITIONS = (
    "object != null && object.metadata.name == 'b'",
    "object.metadata.name != 'a'",
    "request.operation != 'DELETE'",
    "request.operation == 'UPDATE' && oldObject.metadata.name == 'a'",
    "oldObject == null",
    "request.subResource == ''",
    "!has(request.dryRun) || !request.dryRun",
    "object.metadata.labels.app in ['x', 'y']",
    "object.metadata.?labels[?'app'].orValue('') != 'z'",
    "has(object.spec) && has(object.spec.replicas) && object.spec.replicas > 1",
    "object.spec.replicas > 1",
    "request.resource.resource == request.requestResource.resource",
    "request.kind.group == '' || request.requestKind.version == 'v1'",
    "request.name.startsWith('a')",
    "!has(object.data) || object.data.all(key, key.size() < 3)",
    "true",
)
_ANY_PATCHES = (
    [add("/metadata/labels/hooked", "yes")],
    [add("/metadata/annotations", {"hooked": "yes"})],
    [replace("/metadata/labels/app", "y")],
    [remove("/metadata/labels/app")],
    [add("/metadata/finalizers", ["example.com/hooked"])],
    [{"op": "copy", "from": "/metadata/name", "path": "/metadata/labels/copied"}],
    [{"op": "test", "path": "/metadata/labels/app", "value": "x"}, add("/metadata/labels/tested", "yes")],
    [replace("/metadata/labels/app", "a b")],
    [add("/metadata/ownerReferences", [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1"}])],
)
_PATCHES: dict[str, tuple[list[Tree], ...]] = {
    "configmaps": ([add("/data/hooked", "yes")], [add("/data", {"only": "this"})], [remove("/data")]),
    "secrets": ([add("/data/hooked", "eA==")], [add("/stringData", {"hooked": "x"})], [add("/data", {"k": "%"})]),
    "pods": (
        [replace("/spec/containers/0/image", "hooked:1")],
        [add("/spec/activeDeadlineSeconds", 70)],
        [add("/spec/containers/0/resources", {"requests": {"cpu": "100m"}})],
        [add("/spec/containers/0/securityContext", {"privileged": True})],
        [add("/spec/containers/-", {"name": "side", "image": "side:1"})],
    ),
    "deployments": (
        [replace("/spec/replicas", 5)],
        [add("/spec/template/metadata/labels/hooked", "yes")],
        [add("/spec/template/spec/containers/0/env", [{"name": "HOOKED", "value": "yes"}])],
        [remove("/spec/selector")],
    ),
    "sites": (
        [replace("/spec/image", "a:3")],
        [add("/spec/replicas", 60)],
        [add("/spec/ports", [{"name": "h", "port": 99}])],
    ),
    "persistentvolumeclaims": (
        [add("/spec/storageClassName", "hooked")],
        [add("/spec/resources/requests/storage", "5Gi")],
    ),
    "events": ([replace("/reason", "Hooked")], [add("/note", "hooked")], [add("/message", "hooked")]),
}
_WARNINGS = (["hooked"], ["one", "two", "one"], ['said "so"'], ["x" * 300], ["two\nlines"], ["é"])
_CASES = (
    ("object.metadata.name", ("a", "b")),
    ("object.metadata.labels.app", ("x", "y")),
    ("operation", OPERATIONS),
    ("oldObject", (None,)),
    ("subResource", (None, "status", "scale")),
    ("dryRun", (True,)),
)


def group_version_resource(kind: RandomKind) -> tuple[str, str, str]:
    """What a rule says of a kind."""
    parts = kind.path.split("/")
    return ("", parts[2], parts[-1]) if parts[1] == "api" else (parts[2], parts[3], parts[-1])


def operations(chance: Random) -> list[str]:
    """Some operations, in any case one."""
    return chance.choice((["*"], ["CREATE", "UPDATE"], ["CREATE"], ["UPDATE"], ["DELETE"], list(OPERATIONS)))


def rule(chance: Random, kind: RandomKind, *, alone: bool) -> Tree:
    """A rule that has a kind; one that is not alone has no other."""
    group, version, resource = group_version_resource(kind)
    resources = [resource], [resource], [resource, f"{resource}/status"], [f"{resource}/*"], [resource, f"{resource}/*"]
    made: Tree = {
        "operations": operations(chance),
        "apiGroups": [group],
        "apiVersions": pick(chance, [[version], [version], ["*"]], [["v7"], []]),
        "resources": chance.choice(resources),
        **maybe(chance, 0.3, {"scope": pick(chance, ["Namespaced", "*"], ["Cluster", "Some"])}),
    }
    if alone and chance.random() < 0.2:
        # without this scope it would see what others do without a namespace
        made |= {
            "apiGroups": chance.choice(([group], ["*"])),
            "resources": chance.choice((["*"], ["*/*"], ["*/scale"])),
        }
        made["scope"] = "Namespaced"
    return made


def objects(chance: Random) -> Tree:
    """A selector of objects, never of those that ask whether a configuration counts."""
    expressions: list[Tree] = [{"key": "ready", "operator": "DoesNotExist"}]
    if chance.random() < 0.3:
        expressions.append(
            pick(
                chance,
                [
                    {"key": "app", "operator": "In", "values": ["x", "y"]},
                    {"key": "app", "operator": "NotIn", "values": ["x"]},
                    {"key": "more", "operator": "DoesNotExist"},
                    {"key": "own", "operator": "Exists"},
                ],
                [{"key": "app", "operator": "Odd"}],
            )
        )
    return {"matchExpressions": expressions}


def conditions(chance: Random) -> list[Tree]:
    """One condition or two."""
    chosen = chance.sample(CONDITIONS, chance.choice((1, 1, 2)))
    return [{"name": f"c{at}", "expression": pick(chance, [each], ["object.", "1"])} for at, each in enumerate(chosen)]


def _answer(chance: Random, kinds: Sequence[RandomKind], *, mutating: bool) -> Tree:
    roll = chance.random()
    if mutating and roll < 0.55:
        resources = [group_version_resource(kind)[2] for kind in kinds]
        # A field that a Site does not declare is a known difference: webhooks/patch-of-undeclared-field.
        resource = "sites" if "sites" in resources else chance.choice(resources)
        return {"patch": chance.choice((*_ANY_PATCHES, *(_PATCHES[resource] * 2)))}
    if roll < 0.65:
        return {"response": {"warnings": chance.choice(_WARNINGS), **maybe(chance, 0.3, {"allowed": False})}}
    if roll < 0.75:
        return denied(message="no", **maybe(chance, 0.5, {"code": chance.choice((400, 409, 422)), "reason": "Because"}))
    if roll < 0.83:
        return {"response": {"auditAnnotations": {chance.choice(("key", "a/b", "")): "value"}}}
    if roll < 0.9:
        # Reviews differ in managedFields of Scales before mutation, and in the status of a mutated claim.
        return {} if mutating or any("claims" in kind.path for kind in kinds) else {"echo": True}
    return ANSWERS[chance.choice(sorted(ANSWERS))]


def _script(chance: Random, kinds: Sequence[RandomKind], *, mutating: bool) -> Tree:
    script = _answer(chance, kinds, mutating=mutating) if chance.random() < 0.4 else {}
    cases = []
    for _ in range(chance.choice((0, 1, 1, 2))):
        path, values = chance.choice(_CASES)
        cases.append([path, chance.choice(values), _answer(chance, kinds, mutating=mutating)])
    return {**script, "cases": cases}


def _hook(chance: Random, name: str, kinds: Sequence[RandomKind], script: Tree, *, mutating: bool, alone: bool) -> Tree:
    made: Tree = {
        "name": pick(chance, [f"{name}.example.com"], ["short"]),
        "clientConfig": {"url": "{hooks}" + scripted(**script), "caBundle": "{ca}"},
        "rules": [rule(chance, kind, alone=alone) for kind in kinds],
        "namespaceSelector": chance.choice(PLACES),
        "objectSelector": objects(chance),
        "sideEffects": pick(chance, ["None", "NoneOnDryRun"], ["Some"]),
        "admissionReviewVersions": pick(chance, [["v1"], ["v1"], ["v1beta1", "v1"], ["v2", "v1"]], [["v2"], []]),
        "timeoutSeconds": 10,
        "failurePolicy": chance.choice(("Fail", "Fail", "Ignore")),
        **maybe(chance, 0.4, {"matchPolicy": chance.choice(("Exact", "Equivalent"))}),
        **maybe(chance, 0.3, {"matchConditions": conditions(chance)}),
    }
    if mutating:
        made |= maybe(chance, 0.5, {"reinvocationPolicy": pick(chance, ["IfNeeded", "Never"], ["Often"])})
    if chance.random() < 0.03:
        made["clientConfig"] = {"url": "https://127.0.0.1:1/x", "caBundle": "{ca}"}
    elif chance.random() < 0.02:
        late = [["object.metadata.name", "b", {"sleep": 30}]]
        made |= {"clientConfig": {"url": "{hooks}" + scripted(cases=late), "caBundle": "{ca}"}, "timeoutSeconds": 1}
    return made


def random_configuration(chance: Random, sort: str, name: str, kinds: Sequence[RandomKind]) -> Tree:
    """A configuration of one of the sorts ``Validating`` and ``Mutating``, for some kinds."""
    mutating = sort == "Mutating"
    hooks: list[Tree] = []
    shares: list[list[RandomKind]] = [list(kinds)]
    if mutating:
        shares = [
            chance.sample(list(kinds), chance.randrange(1, len(kinds) + 1)) for _ in range(chance.choice((1, 1, 2, 3)))
        ]
    elif len(kinds) > 1 and chance.random() < 0.5:
        at = chance.randrange(1, len(kinds))
        shares = [list(kinds[:at]), list(kinds[at:])]
    for at, share in enumerate(shares):
        script = _script(chance, kinds, mutating=mutating)
        hooks.append(
            _hook(chance, f"{name[-1]}-{at}", share, script, mutating=mutating, alone=mutating or len(shares) == 1)
        )
    return configured(*hooks, kind=sort, name=name)
