"""Waits until a server no longer applies the webhooks and policies that earlier scenarios deleted.

kube-apiserver hears of them by watches, and reads its policies again only about once a second. It hears of the
configurations of one kind in order: once a new one counts, all deletions before it do.
"""

from __future__ import annotations

from conformance.bodies import CM, Tree, configmap, named
from conformance.player import Server, play
from conformance.report import describe_step
from conformance.scenario import Step, Until, delete, post, scenario
from conformance.scenarios.mutating_policies import patched
from conformance.scenarios.webhooks import CONFIGURATIONS, CREATED, configured, denied, hook

_API = "admissionregistration.k8s.io/v1"


def _label(sort: str, family: str) -> Tree:
    """Marks the one object that a configuration sees: no namespace is needed to tell, as one may be gone."""
    return {"settled": f"{{free}}-{sort.lower()}-{family}"}


def _counts(labels: Tree, status: int) -> Until:
    return Until(post(CM, configmap("settled", labels=labels), dryRun="All"), status)


def _after_hooks(sort: str) -> list[Step]:
    labels, path = _label(sort, "hook"), CONFIGURATIONS.format(sort.lower())
    told = hook("settled", denied(code=418), namespaceSelector={}, objectSelector={"matchLabels": labels})
    return [post(path, configured(told, kind=sort)), _counts(labels, 418), delete(f"{path}/{{free}}")]


def _after_policies(sort: str) -> list[Step]:
    labels, path = _label(sort, "policy"), f"/apis/{_API}/{sort.lower()}admissionpolic"
    spec: Tree = {"matchConstraints": {"resourceRules": [CREATED], "objectSelector": {"matchLabels": labels}}}
    bound: Tree = {"policyName": "{free}"}
    if sort == "Validating":
        spec["validations"] = [{"expression": "false", "reason": "RequestEntityTooLarge"}]
        bound["validationActions"] = ["Deny"]
    else:
        spec["mutations"] = [patched("[JSONPatch{op: 'remove', path: '/none'}]")]
        spec["reinvocationPolicy"] = "Never"
    return [
        post(f"{path}ybindings", named(_API, f"{sort}AdmissionPolicyBinding", "{free}", spec=bound)),
        post(f"{path}ies", named(_API, f"{sort}AdmissionPolicy", "{free}", spec=spec)),
        _counts(labels, 413 if sort == "Validating" else 403),
        delete(f"{path}ies/{{free}}"),
        delete(f"{path}ybindings/{{free}}"),
    ]


#: Ends when every deletion before it counts.
_SETTLEMENT = scenario(
    "settlement",
    "Webhooks",
    *(step for sort in ("Validating", "Mutating") for step in (_after_hooks(sort), _after_policies(sort))),
)


async def settle(server: Server) -> str:
    """Wait until the server applies nothing that was deleted. Returns the step that shows the opposite; empty if none does."""
    played = await play(server, _SETTLEMENT)
    for step, answer in zip(_SETTLEMENT.steps, played.answers, strict=False):
        if answer.get("status") not in ({step.status} if isinstance(step, Until) else {200, 201}):
            return f"{server.name} has not settled: {describe_step(step)}\n    was answered with {answer}"
    return ""
