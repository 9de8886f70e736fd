"""The invocations of a policy for one write: one for each matching binding and parameter."""

from __future__ import annotations

from typing import Any, NamedTuple

from steersman.apiserver.errors import RequestRejected
from steersman.apiserver.policies.params import InvalidParams, collected, param_definition
from steersman.apiserver.policies.policy import Policy
from steersman.apiserver.policies.stored_policies import Binding, BoundPolicy
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.registry.definition import Definition
from steersman.apiserver.webhooks.matches import Subject
from steersman.apiserver.webhooks.variables import typed_object


class Invocation(NamedTuple):
    """One evaluation of a policy, or the problem that prevents it. Without a binding, the problem is the policy's."""

    binding: Binding | None
    #: The resource in whose version the policy gets the write.
    target: Definition | None = None
    param: Any = None
    problem: str = ""


async def invocations(
    registry: ResourceRegistry, bound: BoundPolicy[Any], subject: Subject, *, typed_params: bool
) -> list[Invocation]:
    """The invocations of a policy for a write; none if it does not match.

    In kube-apiserver, mutating policies see the types of parameters of built-in kinds, and validating ones their JSON.
    """
    policy: Policy = bound.policy
    definition: Definition | None = None
    try:
        target = await policy.constraints.matched(registry, subject)
        if target is None:
            return []
        definition = None if policy.params is None else param_definition(registry, policy.params)
    except (InvalidParams, RequestRejected) as problem:
        return [Invocation(None, problem=f"failed to configure policy: {problem}")]
    found: list[Invocation] = []
    for binding in bound.bindings:
        params: list[Any] = [None]
        try:
            if binding.resources is not None and await binding.resources.matched(registry, subject) is None:
                continue
            if definition is not None:
                storage = subject.attributes.context.storage
                params = await collected(storage, definition, binding.params, subject.namespace)
        except (InvalidParams, RequestRejected) as problem:
            found.append(Invocation(binding, problem=f"failed to configure binding: {problem}"))
            continue
        if definition is not None and typed_params:
            params = [typed_object(param, definition) for param in params]
        found += [Invocation(binding, target, param) for param in params]
    return found
