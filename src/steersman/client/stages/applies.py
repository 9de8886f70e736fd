"""The stages of applying: what is known to change nothing is not sent, the rest is.

Guarantees
- Our own resources' constraints are checked before sending (see `steersman.client.checks`).
- A known apply costs no request, and returns the object as the cache has it.
"""

from __future__ import annotations

from typing import Any, Protocol

from steersman.client.apply_mistakes import mistake_in
from steersman.client.bindings import VerbCall
from steersman.client.checks import check_write
from steersman.client.stages.observers import ApplyMemory
from steersman.client.stages.prepared_apply import PreparedApply, another_uid
from steersman.client.stages.senders import Sender, send_write
from steersman.errors import DecodeError, InternalError, Invalid
from steersman.objects import AnyObject
from steersman.wire import APPLY_PATCH


class ApplyStage(Protocol):
    """A stage of applying."""

    def known(self, prepared: PreparedApply[AnyObject]) -> AnyObject | None:
        """The object, if the prepared apply would change nothing; None if it must be sent."""
        ...

    def is_known(self, prepared: PreparedApply[Any]) -> bool:
        """Whether the prepared apply would change nothing; for callers that do not need the object."""
        ...

    async def send(self, prepared: PreparedApply[AnyObject], *, resource_version: str = "", uid: str = "") -> AnyObject:
        """Send a prepared apply, optionally bound to a version or a uid.

        - With a version, it applies only if the object has that version or is missing; otherwise it is a `Conflict`.
          `NO_VERSION`, a version that no object has, therefore only creates.
        - With a uid, it applies only to exactly that object; another uid is a `Conflict`.
        """
        ...

    def live(self) -> ApplyStage:
        """The same stage, for which no apply is known."""
        ...


class SentApplies:
    """Sends every apply."""

    def __init__(self, sender: Sender, *, validate: bool) -> None:
        self._sender = sender
        self._validate = validate

    def known(self, prepared: PreparedApply[AnyObject]) -> AnyObject | None:
        """None: nothing is known without asking the server."""

    def is_known(self, prepared: PreparedApply[Any]) -> bool:
        """False: nothing is known without asking the server."""
        del prepared
        return False

    async def send(self, prepared: PreparedApply[AnyObject], *, resource_version: str = "", uid: str = "") -> AnyObject:
        """See `ApplyStage.send`."""
        binding, intent = prepared.binding, prepared.intent
        tried = VerbCall("apply", binding.gvk, intent.key)
        check_write(
            prepared.obj,
            tried,
            validate=self._validate,
            warn=self._sender.warn,
            intent=True,
            subresource=intent.subresource,
            body=intent.body,
        )
        try:
            return await send_write(
                self._sender,
                "apply",
                binding,
                intent.key,
                prepared.body_at(resource_version, uid),
                prepared.options,
                subresource=intent.subresource,
                media_type=APPLY_PATCH,
            )
        except Invalid as error:
            if not uid or all(cause.field != "metadata.uid" for cause in error.causes):
                raise
            raise another_uid(error, uid) from None
        except InternalError as error:
            if (mistake := mistake_in(prepared.obj)) is None:
                raise
            raise type(mistake)(f"{tried}: {mistake}") from error

    def live(self) -> ApplyStage:
        """Itself."""
        return self


class RememberedApplies:
    """Remembers what was applied, and ``skips`` what would change nothing."""

    def __init__(self, inner: ApplyStage, memory: ApplyMemory, *, skips: bool = True) -> None:
        self._inner = inner
        self._memory = memory
        self._skips = skips

    def known(self, prepared: PreparedApply[AnyObject]) -> AnyObject | None:
        """See `ApplyStage.known`."""
        raw = self._memory.unchanged(prepared.intent) if self._skips and not prepared.options.dry_run else None
        if raw is None:
            return None
        try:
            return prepared.binding.decode(raw)
        except DecodeError:
            return None  # this type cannot decode the cached object: send the apply

    def is_known(self, prepared: PreparedApply[Any]) -> bool:
        """See `ApplyStage.is_known`."""
        return self._skips and not prepared.options.dry_run and self._memory.unchanged(prepared.intent) is not None

    async def send(self, prepared: PreparedApply[AnyObject], *, resource_version: str = "", uid: str = "") -> AnyObject:
        """See `ApplyStage.send`; remembers the server's result."""
        answer = await self._inner.send(prepared, resource_version=resource_version, uid=uid)
        if not prepared.options.dry_run:
            self._memory.applied(prepared.intent, answer)
        return answer

    def live(self) -> ApplyStage:
        """The same, which skips nothing and still remembers."""
        return RememberedApplies(self._inner, self._memory, skips=False)
