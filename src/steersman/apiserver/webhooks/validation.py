"""Validating webhooks: each may deny a write. They are called concurrently."""

from __future__ import annotations

import asyncio
from typing import Final

from steersman.apiserver.admission import Attributes
from steersman.apiserver.errors import RequestRejected
from steersman.apiserver.registry.definition import Definition
from steersman.apiserver.webhooks.configurations import Webhook
from steersman.apiserver.webhooks.hook_call import HookPlugin, call_hook, chosen, failed_calling, sent
from steersman.apiserver.webhooks.matches import Subject, subject_of
from steersman.apiserver.webhooks.mutation import is_exempt
from steersman.apiserver.webhooks.targets import CallFailed

_FAILED_OPEN: Final = "failed-open.validating.webhook.admission.k8s.io/"


class ValidatingWebhooks(HookPlugin):
    """The plugin ValidatingAdmissionWebhook."""

    async def validate(self, attributes: Attributes) -> None:
        """Call the webhooks that match a write. The first one to deny it determines the error."""
        hooks = (await self._configurations.current()).validating
        if not hooks or is_exempt(attributes):
            return
        subject = subject_of(attributes)
        called: list[tuple[Webhook, Definition]] = []
        for hook in hooks:
            target = await chosen(self._registry, self._workers, hook, subject)
            if target is not None:
                called.append((hook, target))
        rejections: list[RequestRejected] = []
        await asyncio.gather(*(self._call(index, *each, subject, rejections) for index, each in enumerate(called)))
        if rejections:
            raise rejections[0]

    async def _call(
        self, index: int, hook: Webhook, target: Definition, subject: Subject, rejections: list[RequestRejected]
    ) -> None:
        attributes = subject.attributes
        try:
            await call_hook(
                self._caller,
                self._workers,
                hook,
                subject,
                target,
                await sent(subject, target, mutating=False),
                mutating=False,
            )
        except RequestRejected as refused:
            rejections.append(refused)
        except CallFailed as failure:
            if hook.ignores_failures:
                attributes.request.annotations.setdefault(f"{_FAILED_OPEN}round_0_index_{index}", hook.name)
            else:
                rejections.append(failed_calling(hook, failure))
