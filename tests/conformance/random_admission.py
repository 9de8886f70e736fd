"""Admission by chance: webhook configurations, policies, quotas, limits and levels of security, and requests that meet them.

Guarantees
- A sequence follows from its seed alone.
- A sequence consists of blocks: a request, or a change of configurations with what waits until it counts. Left-out blocks
  leave no server waiting.
- After each change, an object that only the newest `ready` configuration rejects is tried until both servers reject it.
  A server hears of the configurations of one kind in order: once the last one counts, all before it do.
- Steps ask nothing that one server may answer in two ways: see `random_hooks` and `random_policies`.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random  # noqa: TID251 - seeded, and the run prints the seed
from typing import Any, TypeAlias

from conformance.bodies import CM, NAMESPACE, POD, SERVICE_ACCOUNT, Tree, configmap, container, merged, named, pod
from conformance.chances import maybe, pick, replace
from conformance.random_hooks import random_configuration
from conformance.random_kinds import SITE
from conformance.random_policies import API, PARAM_KIND, params, random_binding, random_policy
from conformance.random_requests import RequestSequence
from conformance.scenario import Call, Scenario, Step, Until, delete, get, patch, post, put
from conformance.scenarios.limit_ranges import item, limited
from conformance.scenarios.mutating_policies import patched
from conformance.scenarios.pod_security import LABEL
from conformance.scenarios.quotas import enforced
from conformance.scenarios.webhooks import CONFIGURATIONS, configured, denied, hook

from samples.site import GROUP

#: Steps that belong together.
Block: TypeAlias = tuple[Step, ...]
#: Requests of one sequence, changes of configurations aside.
LENGTH = 60
_CHANGE_EVERY = 10
_KINDS = ("claim", "configmap", "deployment", "event", "newevent", "pod", "secret", "site")
_SORTS = ("Validating", "Mutating")
_POLICIES, _BINDINGS = f"/apis/{API}/{{}}admissionpolicies", f"/apis/{API}/{{}}admissionpolicybindings"
_READY = "{u2}-ready"
_HARD: tuple[Tree, ...] = (
    {"pods": "4", "requests.cpu": "2"},
    {"count/configmaps": "6", "secrets": "5"},
    {"persistentvolumeclaims": "3", "requests.storage": "5Gi"},
    {"count/deployments.apps": "4", f"count/sites.{GROUP}": "4", "pods": "2"},
    {"limits.memory": "1Gi", "count/events": "5"},
)
_LIMITS: tuple[Tree, ...] = (
    item(default={"cpu": "500m", "memory": "100Mi"}, defaultRequest={"cpu": "100m"}),
    item(max={"cpu": "1"}, min={"cpu": "50m"}),
    item("Pod", max={"cpu": "1"}),
    item("PersistentVolumeClaim", min={"storage": "1Gi"}, max={"storage": "2Gi"}),
)


def _kind_of(tree: Any) -> Any:
    return tree["kind"]


def _asks(label: str, path: str = CM) -> Call:
    """Try the object that only the newest ready configuration rejects."""
    body = configmap("ready") if path == CM else named(f"{GROUP}/v1", "Site", "ready", spec={"image": "a:1"})
    return post(path, merged(body, {"metadata": {"labels": {"ready": label}}}), dryRun="All")


def _applied(path: str, body: Tree) -> Step:
    return patch(
        f"{path}/{body['metadata']['name']}", body, "apply", fieldManager="ready", force="true", focus=_kind_of
    )


def _hooks_ready(sort: str, number: int) -> list[Step]:
    """Wait until webhook configurations count as they are now."""
    label = f"hook-{sort.lower()}-{number}"
    told = hook("ready", denied(code=418), objectSelector={"matchLabels": {"ready": label}})
    made = configured(told, kind=sort, name=_READY)
    return [_applied(CONFIGURATIONS.format(sort.lower()), made), Until(_asks(label), 418)]


def _policies_ready(sort: str, number: int) -> list[Step]:
    """Wait until policies, bindings and params count as they are now."""
    label = f"policy-{sort.lower()}-{number}"
    selected = {"objectSelector": {"matchLabels": {"ready": label}}}
    metadata = {"name": "ready", "labels": {"ready": "param"}, "annotations": {"number": str(number)}}
    rule = {
        "operations": ["CREATE"],
        "apiGroups": ["", GROUP],
        "apiVersions": ["v1"],
        "resources": ["configmaps", "sites"],
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": "{ns}"}}
    known = f"params.metadata.?annotations[?'number'].orValue('') == '{number}'"
    spec: Tree = {
        "paramKind": PARAM_KIND,
        "matchConstraints": {"resourceRules": [rule], "namespaceSelector": here, **selected},
    }
    bound: Tree = {"policyName": _READY, "matchResources": selected}
    bound["paramRef"] = {"name": "ready", "parameterNotFoundAction": "Allow"}
    if sort == "Validating":
        spec["validations"] = [{"expression": f"!({known})", "reason": "RequestEntityTooLarge"}]
        bound["validationActions"] = ["Deny"]
    else:
        spec["mutations"] = [patched(f"{known} ? [JSONPatch{{op: 'remove', path: '/none'}}] : []")]
        spec["reinvocationPolicy"] = "Never"
    return [
        _applied(SERVICE_ACCOUNT, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        _applied(_BINDINGS.format(sort.lower()), named(API, f"{sort}AdmissionPolicyBinding", _READY, spec=bound)),
        _applied(_POLICIES.format(sort.lower()), named(API, f"{sort}AdmissionPolicy", _READY, spec=spec)),
        *(Until(_asks(label, path), 413 if sort == "Validating" else 403) for path in (CM, SITE)),
    ]


class _AdmissionSequence(RequestSequence):
    def __init__(self, chance: Random, length: int) -> None:
        super().__init__(chance, _KINDS, length)
        self.has_users = False
        self.blocks: list[Block] = []
        self.settled = 0
        self.present: set[str] = set()
        families = [("hooks", sort) for sort in _SORTS] + [("policies", sort) for sort in _SORTS]
        self.families = chance.sample(families, chance.choice((1, 2, 2, 3)))

    def close(self) -> None:
        """Make a block of the steps since the last one."""
        if self.steps:
            self.blocks.append(tuple(self.steps))
        self.steps = []

    # -- what stays as it is

    def labeled(self) -> None:
        """Give the first namespace a level of security, and wait until it counts."""
        chance = self.chance
        level = chance.choice(("baseline", "restricted"))
        mode = chance.choice(("enforce", "warn"))
        labels = {LABEL + mode: level, **maybe(chance, 0.3, {LABEL + "audit": "restricted"})}
        self.steps.append(patch(f"{NAMESPACE}/{{ns}}", {"metadata": {"labels": labels}}, focus=_kind_of))
        asks = pod("ready", containers=[container(securityContext={"privileged": True})])
        call = post(POD, merged(asks, {"metadata": {"labels": {"ready": "level"}}}), dryRun="All")
        self.steps.append(Until(call, 403) if mode == "enforce" else Until(call, 201, "would violate PodSecurity"))

    def prepare(self) -> None:
        """Levels of security, limits and quotas, and some objects."""
        if self.flip(0.3):
            self.labeled()
            self.close()
        if self.flip(0.3):
            self.steps.append(limited(*self.chance.sample(_LIMITS, self.chance.choice((1, 2)))))
            self.close()
        if self.flip(0.4):
            self.steps += enforced(self.chance.choice(_HARD))
            self.close()
        for _ in range(8):
            self.create()
            self.close()

    def apply(self) -> None:
        """An apply without null: after a mutating policy, the engine takes a null in a custom resource for a value."""
        super().apply()
        self._leave_out(": None")

    def scale(self) -> None:
        """A scale that is valid: the engine validates it after mutating admission, the embedded server before."""
        super().scale()
        self._leave_out("'replicas': -1")

    def _leave_out(self, words: str) -> None:
        if self.steps and isinstance(self.steps[-1], Call) and words in repr(self.steps[-1].body):
            self.steps.pop()

    # -- changes of configurations

    def change(self, family: str, sort: str) -> None:
        """Change configurations of one sort, and wait until they count."""
        self.settled += 1
        if family == "hooks":
            name = "{u}-" + self.chance.choice("ab" if sort == "Mutating" else "a")
            path = CONFIGURATIONS.format(sort.lower())
            self.write(path, random_configuration(self.chance, sort, name, list(self.kinds.values())), "webhooks")
            self.steps += _hooks_ready(sort, self.settled)
        else:
            self.change_policy(sort)
            self.steps += _policies_ready(sort, self.settled)
        self.close()

    def change_policy(self, sort: str) -> None:
        chance = self.chance
        policies, bindings, name = _POLICIES.format(sort.lower()), _BINDINGS.format(sort.lower()), "{u}-a"
        if "params" not in self.present:
            self.present.add("params")
            self.steps += [post(SERVICE_ACCOUNT, each) for each in params()]
        elif self.flip(0.2):
            changed = {"metadata": {"annotations": {"names": chance.choice(("a", "b", "a,b,c"))}}}
            self.steps.append(patch(f"{SERVICE_ACCOUNT}/{chance.choice(('one', 'two'))}", changed))
        new = f"{policies}/{name}" not in self.present
        which = chance.randrange(4) if not new else 0
        if which != 1:
            self.write(bindings, random_binding(chance, sort, name, name), "spec")
        if which != 2:
            kinds = chance.sample(list(self.kinds.values()), chance.randrange(1, len(self.kinds) + 1))
            self.write(policies, random_policy(chance, sort, name, kinds), "spec")

    def write(self, path: str, body: Tree, field: str) -> None:
        """Create a configuration, or change or delete it; one that was rejected is not there, which both servers say."""
        name = body["metadata"]["name"]
        one = f"{path}/{name}"
        if one not in self.present:
            self.present.add(one)
            self.steps.append(post(path, body))
        elif self.flip(0.2):
            self.present.discard(one)
            self.steps.append(delete(one))
        elif self.flip(0.3):
            self.steps.append(get(one, as_="old"))
            self.steps.append(put(one, merged(body, {"metadata": {"resourceVersion": "$rv:old"}})))
        elif self.flip(0.3):
            self.steps.append(patch(one, body, "apply", fieldManager=pick(self.chance, ["ada", "ben"]), force="true"))
        else:
            self.steps.append(patch(one, [replace(f"/{field}", body[field])], "json"))

    def leave(self) -> None:
        """Delete all configurations."""
        for one in sorted(self.present - {"params"}):
            self.steps.append(delete(one, focus=_kind_of))
        for family, sort in self.families:
            paths = [CONFIGURATIONS] if family == "hooks" else [_POLICIES, _BINDINGS]
            self.steps += [delete(f"{path.format(sort.lower())}/{_READY}", focus=_kind_of) for path in paths]
        self.close()

    def make_blocks(self) -> list[Block]:
        """All steps, in blocks."""
        self.prepare()
        for family in self.families:
            self.change(*family)
        weighed = {
            self.create: 13, self.read: 2, self.replace: 5, self.edit: 3, self.merge: 7, self.operate: 4, self.status: 4,
            self.scale: 3, self.apply: 8, self.own_subresource: 3, self.remove: 3, self.survey: 1,
        }  # fmt: skip
        for number in range(self.length):
            self.chance.choices(list(weighed), weights=list(weighed.values()))[0]()
            self.close()
            if number % _CHANGE_EVERY == _CHANGE_EVERY - 1:
                self.change(*self.chance.choice(self.families))
        self.steps.append(get(POD.replace("pods", "resourcequotas")))
        self.close()
        self.leave()
        return self.blocks


def random_admission(seed: int, number: int, *, length: int = LENGTH) -> tuple[str, list[Block]]:
    """The name and the blocks of the sequence of this number from a seed."""
    sequence = _AdmissionSequence(Random(f"admission/{seed}/{number}"), length)
    return f"random-admission/seed-{seed}-number-{number}", sequence.make_blocks()


def scenario_of(name: str, blocks: Sequence[Block]) -> Scenario:
    """The scenario of some blocks."""
    return Scenario(name, tuple(step for block in blocks for step in block))
