"""The plugin ValidatingAdmissionPolicy: policies may deny a write, warn about it, or annotate its audit event."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec

from steersman.apiserver.admission import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.errors import RequestRejected
from steersman.apiserver.policies.invocations import invocations
from steersman.apiserver.policies.stored_policies import Binding, BoundPolicy, StoredPolicies
from steersman.apiserver.policies.validating_policy import Denial, PolicyVerdict, ValidatingPolicy
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.webhooks.hook_call import seen
from steersman.apiserver.webhooks.matches import Subject, subject_of
from steersman.apiserver.webhooks.mutation import is_exempt
from steersman.apiserver.webhooks.variables import namespace_value, request_values
from steersman.apiserver.workers import Workers
from steersman.errors import StatusCause
from steersman.golang import printed_json

_CODES: Final = {"Forbidden": 403, "RequestEntityTooLarge": 413}
_FAILURE: Final = "validation.policy.admission.k8s.io/validation_failure"
_ANNOTATION_MAX: Final = 10 * 1024
#: The failures that an annotation lists, as in kube-apiserver.
_FAILURES_MAX: Final = 50


class ValidatingPolicies(Plugin):
    """Evaluates the stored policies."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})

    def __init__(
        self, policies: StoredPolicies[ValidatingPolicy], registry: ResourceRegistry, workers: Workers
    ) -> None:
        self._policies = policies
        self._registry = registry
        self._workers = workers

    async def validate(self, attributes: Attributes) -> None:
        """Evaluate the policies that match a write. The first one to deny it determines the error."""
        bound = await self._policies.current()
        if not bound or is_exempt(attributes):
            return
        evaluation = _Evaluation(subject_of(attributes), self._registry, self._workers)
        for each in bound:
            await evaluation.evaluate(each)
        evaluation.annotate()
        if evaluation.rejections:
            raise evaluation.rejections[0]


class _Evaluation:
    """The evaluation of all policies for one write."""

    def __init__(self, subject: Subject, registry: ResourceRegistry, workers: Workers) -> None:
        self.subject = subject
        self._workers = workers
        self._registry = registry
        self.rejections: list[RequestRejected] = []
        self._failures: list[dict[str, Any]] = []

    async def evaluate(self, bound: BoundPolicy[ValidatingPolicy]) -> None:
        """Evaluate a policy that matches the write, for each of its bindings and their parameters."""
        policy, subject = bound.policy, self.subject
        notes: dict[str, list[str]] = {}
        values: dict[str, Any] | None = None
        for binding, target, param, problem in await invocations(self._registry, bound, subject, typed_params=False):
            if binding is None or target is None:
                if not policy.ignores_failures:
                    self._reject(policy, binding, problem, "")
                continue
            if values is None:
                values = request_values(subject, target, *await seen(subject, target))
                values["namespaceObject"] = await namespace_value(subject)
            complete, size = values | {"params": param}, policy.counts_as(subject.attributes.request.size)
            verdict = await self._workers.run(partial(policy.verdict, complete), size=size)
            self._take(policy, binding, verdict, notes)
        for key, texts in notes.items():
            subject.attributes.request.annotations.setdefault(f"{policy.name}/{key}", ", ".join(texts))

    def annotate(self) -> None:
        """Note the failures of all policies whose bindings ask for an audit."""
        if self._failures:
            failures = printed_json(self._failures[:_FAILURES_MAX])
            self.subject.attributes.request.annotations.setdefault(_FAILURE, failures)

    def _take(
        self, policy: ValidatingPolicy, binding: Binding, verdict: PolicyVerdict, notes: dict[str, list[str]]
    ) -> None:
        for denial in verdict.denials:
            self._denied(policy, binding, denial)
        for key, text in verdict.annotations:
            texts = notes.setdefault(key, [])
            if (cut := text[:_ANNOTATION_MAX]) not in texts:
                texts.append(cut)
        for error in verdict.errors:
            self._reject(policy, binding, error, "")

    def _denied(self, policy: ValidatingPolicy, binding: Binding, denial: Denial) -> None:
        attributes = self.subject.attributes
        for action in binding.actions:
            if action == "Deny":
                self._reject(policy, binding, denial.message, denial.reason)
            elif action == "Warn":
                by = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
                attributes.warn(f"Validation failed for {by}: {denial.message}")
            else:
                failure = {
                    "message": denial.message,
                    "policy": policy.name,
                    "binding": binding.name,
                    "expressionIndex": denial.number,
                    "validationActions": binding.actions,
                }
                self._failures.append(failure)

    def _reject(self, policy: ValidatingPolicy, binding: Binding | None, why: str, reason: str) -> None:
        by = f"ValidatingAdmissionPolicy '{policy.name}'"
        by = by if binding is None else f"{by} with binding '{binding.name}'"
        message = f"{by} denied request: {why}"
        attributes = self.subject.attributes
        refused = attributes.refused(message, (StatusCause(message=message),))
        reason = reason or "Invalid"
        status = msgspec.structs.replace(refused.status, reason=reason, code=_CODES.get(reason, 422))
        self.rejections.append(RequestRejected(status, refused.headers))
