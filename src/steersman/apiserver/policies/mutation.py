"""The plugin MutatingAdmissionPolicy: policies may change an object, before the webhooks are called."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import msgspec

from steersman.apiserver.admission import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.documents import copied
from steersman.apiserver.errors import RequestRejected, forbidden
from steersman.apiserver.field_managers import managed_of
from steersman.apiserver.policies.invocations import Invocation, invocations
from steersman.apiserver.policies.mutating_policy import MutatingPolicy, MutationFailed
from steersman.apiserver.policies.stored_policies import Binding, StoredPolicies
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.webhooks.hook_call import seen
from steersman.apiserver.webhooks.matches import Subject, converted, subject_of
from steersman.apiserver.webhooks.mutation import Rounds, is_exempt, read_mutated, take_mutated
from steersman.apiserver.webhooks.variables import namespace_value, request_values
from steersman.apiserver.workers import Workers
from steersman.errors import StatusCause


class MutatingPolicies(Plugin):
    """Evaluates the stored policies."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE", "UPDATE", "CONNECT"})

    def __init__(self, policies: StoredPolicies[MutatingPolicy], registry: ResourceRegistry, workers: Workers) -> None:
        self._policies = policies
        self._registry = registry
        self._workers = workers

    async def admit(self, attributes: Attributes) -> None:
        """Evaluate the policies that match a write, in order."""
        bound = await self._policies.current()
        if not bound or is_exempt(attributes) or attributes.obj is None:
            return
        attributes.state = attributes.state or {}
        rounds: Rounds = attributes.state.setdefault(MutatingPolicies, Rounds())
        if attributes.is_reinvocation and rounds.output != attributes.obj:
            rounds.require()
        subject = subject_of(attributes)
        problems: list[str] = []
        for each in bound:
            target = await each.policy.constraints.matched(self._registry, subject)
            if target is None:
                continue
            for one in await invocations(self._registry, each.policy, each.bindings, subject):
                problems += await self._invoked(each.policy, one, subject, target, rounds)
        rounds.output = copied(attributes.obj)
        if problems:
            raise _denied(attributes, problems)

    async def _invoked(
        self, policy: MutatingPolicy, invocation: Invocation, subject: Subject, target: Definition, rounds: Rounds
    ) -> list[str]:
        """Apply the mutations of one invocation. Returns the problems that deny the write."""
        binding, param, problem = invocation
        if problem or binding is None:
            return _problems(policy, binding, problem)
        obj, old = await seen(subject, target)
        values = request_values(subject, target, obj, old) | {"params": param}
        size = policy.counts_as(subject.attributes.request.size)
        holds, problem = await self._workers.run(partial(policy.conditions.verdict, values), size=size)
        if problem:
            return _problems(policy, binding, problem)
        key = (policy.name, binding.name, _identity(param))
        attributes = subject.attributes
        if not holds or (attributes.is_reinvocation and key not in rounds.again):
            return []
        values["namespaceObject"] = await namespace_value(subject)
        found: list[str] = []
        form = attributes.view.definition if attributes.view else target
        managed = managed_of(self._registry, form, "")
        for number in range(len(policy.mutations)):
            try:
                mutate = partial(policy.mutated, number, values, managed)
                made = await self._workers.run(mutate, size=size)
                strict = policy.mutations[number][0] == "JSONPatch" and not form.custom
                values["object"] = read_mutated(attributes, form, made, "Strict" if strict else "Ignore")
            except MutationFailed as failed:
                found += _problems(policy, binding, str(failed))
        if values["object"] != obj:
            changed = cast("Tree", values["object"])
            source = attributes.definition
            if attributes.view is None and target is not source:
                changed = cast("Tree", await converted(changed, target, source))
            take_mutated(attributes, changed)
            rounds.require()
            attributes.wants_reinvocation = True
        if policy.reinvoked:
            rounds.called.add(key)
        return found


def _identity(param: Any) -> str:
    if param is None:
        return ""
    metadata: Tree = param["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def _problems(policy: MutatingPolicy, binding: Binding | None, why: str) -> list[str]:
    if policy.ignores_failures:
        return []
    if binding is None:
        return [f'policy "{policy.name}" denied request: {why}']
    return [f"policy '{policy.name}' with binding '{binding.name}' denied request: {why}"]


def _denied(attributes: Attributes, problems: list[str]) -> RequestRejected:
    causes = tuple(StatusCause(message=each) for each in problems)
    refused = forbidden(attributes.definition.named, attributes.name, "", causes)
    return RequestRejected(msgspec.structs.replace(refused.status, message=problems[0], reason="Invalid"))
