"""Webhooks and policies that need a namespace, for the deletion of what it left behind: only a deletion gets that far."""

from __future__ import annotations

from typing import Any

from conformance.bodies import CM, NAMESPACE, configmap, named
from conformance.scenario import Step, Until, delete, get, post, put, scenario
from conformance.scenarios import policies, webhooks
from conformance.scenarios.policies import HERE, RULE

_GONE = f"{NAMESPACE}/{{u}}"
_LEFT = f"{_GONE}/configmaps"
_ROWS = "Webhooks, Namespaces, Delete, Status errors"

#: A namespace that ends before its objects.
_LEFT_BEHIND: list[Step] = [
    post(NAMESPACE, named("v1", "Namespace", "{u}")),
    put(f"{_GONE}/finalize", named("v1", "Namespace", "{u}", spec={})),
    *(post(_LEFT, configmap(name, labels={"app": name})) for name in "abc"),
    delete(_GONE),
    delete(_GONE),
    get(_GONE),
]
_DELETED: list[Step] = [
    delete(f"{_LEFT}/a"),
    delete(_LEFT, labelSelector="app=b"),
    delete(f"{_LEFT}/none"),
    delete(_LEFT),
    get(_LEFT),
]


def _policy(name: str, bound: dict[str, Any] | None = None, **spec: Any) -> Any:
    ready = post(CM, configmap("ready", labels={"ready": "yes"}), dryRun="All")
    return scenario(
        f"policy-{name}",
        _ROWS,
        *_LEFT_BEHIND,
        *policies.installed("true", bound=[policies.binding(**bound or {})], **spec),
        *_DELETED,
        *policies.removed(),
        # The engine applies a deleted policy for a while; what plays next may have no namespace either.
        Until(ready, 201),
        alone=True,
    )


def _webhook(name: str, **more: Any) -> Any:
    hook = webhooks.hook(rules=[webhooks.ANY], **more)
    return scenario(
        f"webhook-{name}",
        _ROWS,
        *_LEFT_BEHIND,
        *webhooks.installed(hook),
        *_DELETED,
        webhooks.removed(),
        Until(post(CM, configmap("ready", labels={"ready": "free"}), dryRun="All"), 201),
        alone=True,
    )


def _constraints(**more: Any) -> dict[str, Any]:
    return {"resourceRules": [RULE], **more}


SCENARIOS = [
    _policy("selects"),
    _policy("ignores-failures", failurePolicy="Ignore"),
    _policy("bound", {"matchResources": {"namespaceSelector": HERE}}, matchConstraints=_constraints()),
    _policy("anywhere", matchConstraints=_constraints()),
    _policy("anywhere-ignores-failures", matchConstraints=_constraints(), failurePolicy="Ignore"),
    _policy(
        "other-objects",
        matchConstraints=_constraints(namespaceSelector=HERE, objectSelector={"matchLabels": {"ready": "yes"}}),
    ),
    _webhook("selects"),
    _webhook("other-objects", objectSelector={"matchLabels": {"app": "c"}}),
]
