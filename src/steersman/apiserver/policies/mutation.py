"""The plugin MutatingAdmissionPolicy: policies may change an object, before the webhooks are called."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, cast

import msgspec

from steersman.apiserver.admission import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.documents import copied
from steersman.apiserver.errors import RequestRejected
from steersman.apiserver.field_managers import managed_of
from steersman.apiserver.policies.invocations import invocations
from steersman.apiserver.policies.mutating_policy import MutatingPolicy, MutationFailed
from steersman.apiserver.policies.stored_policies import Binding, StoredPolicies
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.webhooks.hook_call import seen
from steersman.apiserver.webhooks.matches import Subject, converted, subject_of
from steersman.apiserver.webhooks.mutation import Rounds, is_exempt, read_mutated, take_mutated
from steersman.apiserver.webhooks.variables import namespace_value, request_values, typed_object
from steersman.apiserver.workers import Workers
from steersman.cel import untyped
from steersman.errors import StatusCause
from steersman.golang import quoted
from steersman.objects import GroupVersionKind


class _Problem(NamedTuple):
    """A problem that denies a write, and the reason of that denial."""

    message: str
    reason: str


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
        rounds.is_patched = False
        subject = subject_of(attributes)
        chosen: list[tuple[MutatingPolicy, Binding, Any, Definition]] = []
        problems: list[_Problem] = []
        # Policies are chosen by the object before all mutations.
        for each in bound:
            for binding, target, param, problem in await invocations(self._registry, each, subject, typed_params=True):
                if binding is None or target is None:
                    problems += _problems(each.policy, binding, problem, "Forbidden")
                else:
                    chosen.append((each.policy, binding, param, target))
        # Once a match condition has seen an object, mutations see the types of its fields too.
        typed_kinds: set[GroupVersionKind] = set()
        for policy, binding, param, target in chosen:
            if policy.conditions:
                typed_kinds.add(target.gvk)
            shows_types = target.gvk in typed_kinds
            problems += await self._invoked(policy, binding, param, subject, target, rounds, shows_types=shows_types)
        if rounds.is_patched:
            # Unlike a webhook, a policy is also evaluated again because of its own patch.
            rounds.require()
            attributes.wants_reinvocation = True
        rounds.output = copied(attributes.obj)
        if problems:
            raise _denied(attributes, problems)

    async def _invoked(
        self,
        policy: MutatingPolicy,
        binding: Binding,
        param: Any,
        subject: Subject,
        target: Definition,
        rounds: Rounds,
        *,
        shows_types: bool,
    ) -> list[_Problem]:
        """Apply the mutations of one invocation. Returns the problems that deny the write."""
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
        found: list[_Problem] = []
        form = attributes.view.definition if attributes.view else target
        if not shows_types:
            values |= {"object": obj, "oldObject": old}
        managed = managed_of(self._registry, form, "")
        for number, (sort, _, growth) in enumerate(policy.mutations):

            def mutated(number: int = number, sort: str = sort) -> Tree:
                return _read(attributes, form, policy.mutated(number, values, managed), sort)

            size += growth
            try:
                made = await self._workers.run(mutated, size=size)
                values["object"] = typed_object(made, form) if shows_types else made
                rounds.is_patched = True
            except MutationFailed as failed:
                found += _problems(policy, binding, str(failed))
        changed = cast("Tree", untyped(values["object"]))
        if changed != obj:
            source = attributes.definition
            # The rest of the request handles a larger object.
            attributes.request.size = max(attributes.request.size, size)
            if attributes.view is None and target is not source:
                changed = cast("Tree", await converted(changed, target, source))
            take_mutated(attributes, changed)
            rounds.require()
            attributes.wants_reinvocation = True
        if policy.reinvoked:
            rounds.called.add(key)
        return found


def _read(attributes: Attributes, form: Definition, made: Any, sort: str) -> Tree:
    """A mutated object with its defaults. Raises `MutationFailed`; a JSON patch that makes no object rejects the write."""
    gvk, source = form.gvk, attributes.definition.gvk
    is_patch = sort == "JSONPatch"
    try:
        read = read_mutated(attributes, form, made, "Strict" if is_patch and not form.custom else "Ignore")
    except RequestRejected as refused:
        if is_patch:
            raise
        why = refused.status.message.removeprefix("Internal error occurred: ")
        decoding = "error decoding from json: " if why.startswith("illegal base64") else ""
        kind = f"{gvk.group}/{gvk.version}, Kind={gvk.kind}"
        raise MutationFailed(f"unable to convert unstructured object to {kind}: {decoding}{why}") from None
    if attributes.view is not None and attributes.definition.custom and gvk.group != source.group:
        raise MutationFailed(f"request to convert CR to an invalid group/version: {gvk.api_version}")
    if attributes.view is None and gvk.group != source.group:
        # kube-apiserver looks for the version of the request in the group of the policy's rule.
        words = f"{gvk.version}.{gvk.kind} is not suitable for converting to {quoted(source.api_version)}"
        raise MutationFailed(f'{words} in scheme "pkg/runtime/scheme.go:111"')
    return read


def _identity(param: Any) -> str:
    if param is None:
        return ""
    metadata: Tree = untyped(param)["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def _problems(policy: MutatingPolicy, binding: Binding | None, why: str, reason: str = "Invalid") -> list[_Problem]:
    if policy.ignores_failures:
        return []
    if binding is None:
        return [_Problem(f'policy "{policy.name}" denied request: {why}', reason)]
    return [_Problem(f"policy '{policy.name}' with binding '{binding.name}' denied request: {why}", reason)]


def _denied(attributes: Attributes, problems: list[_Problem]) -> RequestRejected:
    causes = tuple(StatusCause(message=problem.message) for problem in problems)
    refused = attributes.refused("", causes)
    first = problems[0]
    return RequestRejected(msgspec.structs.replace(refused.status, message=first.message, reason=first.reason))
