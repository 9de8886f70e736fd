"""The invocations of a policy for one write: one for each matching binding and parameter."""

from __future__ import annotations

from typing import Any, NamedTuple

from steersman.apiserver.policies.params import InvalidParams, collected, param_definition
from steersman.apiserver.policies.policy import Policy
from steersman.apiserver.policies.stored_policies import Binding
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.registry.definition import Definition
from steersman.apiserver.webhooks.matches import Subject


class Invocation(NamedTuple):
    """One evaluation of a policy, or the problem that prevents it. Without a binding, the problem is the policy's."""

    binding: Binding | None
    param: Any = None
    problem: str = ""


async def invocations(
    registry: ResourceRegistry, policy: Policy, bindings: list[Binding], subject: Subject
) -> list[Invocation]:
    """The invocations of a policy that matches a write."""
    definition: Definition | None = None
    try:
        definition = None if policy.params is None else param_definition(registry, policy.params)
    except InvalidParams as problem:
        return [Invocation(None, problem=f"failed to configure policy: {problem}")]
    found: list[Invocation] = []
    for binding in bindings:
        if binding.resources is not None and await binding.resources.matched(registry, subject) is None:
            continue
        params: list[Any] = [None]
        try:
            if definition is not None:
                storage = subject.attributes.context.storage
                params = await collected(storage, definition, binding.params, subject.namespace)
        except InvalidParams as problem:
            found.append(Invocation(binding, problem=f"failed to configure binding: {problem}"))
            continue
        found += [Invocation(binding, each) for each in params]
    return found
