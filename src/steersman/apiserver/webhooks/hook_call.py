"""One call of one webhook: sends the review, checks the answer, and adds warnings and annotations to the request."""

from __future__ import annotations

import asyncio
import re
from functools import partial

from steersman.aio import new_uid
from steersman.apiserver.admission import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.errors import RequestRejected, bad_request, forbidden, internal, timeout
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.registry.admission_expressions import counts_as
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.webhooks.configurations import Configurations, Webhook
from steersman.apiserver.webhooks.matches import Subject, converted, matched
from steersman.apiserver.webhooks.reviews import Verdict, read_verdict, review, review_version
from steersman.apiserver.webhooks.targets import CallFailed, WebhookCaller
from steersman.apiserver.webhooks.variables import request_values
from steersman.apiserver.workers import Workers
from steersman.errors import ApiStatus
from steersman.golang import duration_nanoseconds, quoted
from steersman.wire import Pairs, first_values

_CODE_MAX = 999
#: kube-apiserver drops a warning with such a character.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LATE = "request did not complete within requested timeout"


class HookPlugin(Plugin):
    """A plugin that calls the webhooks of stored configurations."""

    operations = frozenset[AdmissionOperation]({"CREATE", "UPDATE", "DELETE", "CONNECT"})

    def __init__(
        self, configurations: Configurations, caller: WebhookCaller, registry: ResourceRegistry, workers: Workers
    ) -> None:
        self._configurations = configurations
        self._caller = caller
        self._registry = registry
        self._workers = workers


async def chosen(registry: ResourceRegistry, workers: Workers, hook: Webhook, subject: Subject) -> Definition | None:
    """The resource in whose version to send a write to a webhook; None if the webhook does not match it."""
    target = await matched(registry, hook, subject)
    if target is None or hook.conditions is None:
        return target
    values = request_values(subject, target, *await seen(subject, target))
    holds, problem = await workers.run(
        partial(hook.conditions.verdict, values), size=counts_as(hook.condition_texts, subject.attributes.request.size)
    )
    if problem and not hook.ignores_failures:
        raise forbidden(subject.attributes.definition.named, subject.name, problem)
    return target if holds else None


async def seen(subject: Subject, target: Definition) -> tuple[Tree | None, Tree | None]:
    """The new and the old object in the version of a resource."""
    obj, old, source = subject.obj(), subject.old(), subject.attributes.definition
    if subject.attributes.view is not None or target is source:
        return obj, old
    return await converted(obj, source, target), await converted(old, source, target)


async def sent(subject: Subject, target: Definition, *, mutating: bool) -> tuple[Tree | None, Tree | None]:
    """The result of `seen`. A failed conversion raises kube-apiserver's error.

    For mutating webhooks, the message of that error has its prefix twice.
    """
    try:
        return await seen(subject, target)
    except RequestRejected as failed:
        once = internal(failed.status.message)
        raise (internal(once.status.message) if mutating else once) from None


async def call_hook(
    caller: WebhookCaller,
    workers: Workers,
    hook: Webhook,
    subject: Subject,
    target: Definition,
    objects: tuple[Tree | None, Tree | None],
    *,
    mutating: bool,
) -> Verdict:
    """Call a webhook and return its verdict. Raises `RequestRejected` if it denies the write, and `CallFailed`."""
    attributes = subject.attributes
    if attributes.dry_run and hook.has_side_effects:
        raise bad_request(f"admission webhook {quoted(hook.name)} does not support dry run")
    version = review_version(hook.review_versions)
    uid = new_uid()
    body = review(subject, target, uid, *objects, version)
    seconds, is_whole = _seconds(attributes, hook)
    end = asyncio.get_running_loop().time() + seconds
    answer = await _answer(caller, hook, body, seconds, is_whole=is_whole)
    read = partial(read_verdict, answer, uid, mutating=mutating, version=version)
    try:
        # The worker threads may be busy with other requests.
        async with asyncio.timeout_at(end):
            verdict = await workers.run(read, size=len(answer))
    except TimeoutError:
        if is_whole:
            raise timeout(f"{_LATE} - context deadline exceeded") from None
        raise CallFailed(f"failed to call webhook: its answer was not read within {seconds:g} s") from None
    for key, value in verdict.annotations.items():
        attributes.request.annotations.setdefault(f"{hook.name}/{key}", value)
    for text in verdict.warnings:
        if text and not _CONTROL.search(text):
            attributes.warn(text)
    if not verdict.allowed:
        raise denied(hook.name, verdict.status)
    return verdict


async def _answer(caller: WebhookCaller, hook: Webhook, body: bytes, seconds: float, *, is_whole: bool) -> bytes:
    """Call a webhook and return its answer."""
    try:
        answer = await caller(hook.target, body, timeout=seconds)
    except (RequestRejected, CallFailed) as error:
        if is_whole and "context deadline exceeded" in str(error):
            raise timeout(f"{_LATE} - context deadline exceeded") from None
        raise CallFailed(f"failed to call webhook: {error}") from None
    except Exception as error:
        raise CallFailed(f"failed to call webhook: {error}") from error
    if not isinstance(answer, bytes):  # pyright: ignore[reportUnnecessaryIsInstance] - a caller may be the program's own
        raise CallFailed(f"failed to call webhook: the caller returned a {type(answer).__name__} instead of bytes")
    return answer


def _seconds(attributes: Attributes, hook: Webhook) -> tuple[float, bool]:
    """The time limit of a call, and whether it is the limit of the whole request."""
    text = first_values(attributes.request.wire.query).get("timeout", "")
    try:
        whole = duration_nanoseconds(text) / 10**9 if text else 0.0
    except ValueError:
        whole = 0.0
    return (whole, True) if 0 < whole <= hook.timeout else (float(hook.timeout), False)


def denied(name: str, status: ApiStatus | None) -> RequestRejected:
    """The error for a write that a webhook denies."""
    status = status or ApiStatus()
    by = f"admission webhook {quoted(name)} denied the request"
    why = status.message or status.reason
    seconds = status.retry_after_seconds
    headers: Pairs = (("Retry-After", str(seconds)),) if seconds > 0 else ()
    return RequestRejected(
        ApiStatus(
            metadata=status.metadata,
            status="Failure" if status.status in {"", "Success"} else status.status,
            message=f"{by}: {why}" if why else f"{by} without explanation",
            reason=status.reason,
            details=status.details,
            # HTTP has three digits for it.
            code=max(status.code, 400) if status.code <= _CODE_MAX else 500,
        ),
        headers,
    )


def failed_calling(hook: Webhook, failure: CallFailed) -> RequestRejected:
    """The error for a write whose webhook could not be called."""
    return internal(f"failed calling webhook {quoted(hook.name)}: {failure}")
