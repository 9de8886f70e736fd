"""The protocol that an external API implements, and the answers that a reconcile gets.

Guarantees
- Everything here is data or a protocol, so a test can compare answers without the external service.
- A key identifies one Kubernetes object forever. A new object of the same name has another UID.

An effect happens exactly once if the service can find by key what it was asked to create. If it cannot, because its list lags
or it has no lookup, the effect happens at least once.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import msgspec

from steersman.objects import Key, Object
from steersman.patterns.machine.steps import Answer, Wait

T_contra = TypeVar("T_contra", bound=Object, contravariant=True)
R = TypeVar("R")


class ExternalKey(msgspec.Struct, frozen=True, kw_only=True):
    """The object that an effect is for: its UID and its generation.

    Mark the external object with ``uid`` and find it by that. The UID stays the same for the lifetime of the Kubernetes object,
    including its deletion. ``str(key)`` is ``UID.GENERATION``: use it as an idempotency token for one request, or as the mark of
    an effect that happens once per generation.
    """

    uid: str
    #: 0 if the kind has no generations.
    generation: int
    #: The kind of the object, such as "SecureStorage".
    kind: str
    #: Namespace and name, for messages. The next object of that name has another UID.
    key: Key

    def __str__(self) -> str:
        return f"{self.uid}.{self.generation}"


class Api(Protocol[T_contra, R]):
    """The external service as one kind of object uses it: a class such as ``Buckets`` with these async methods.

    Two more methods are optional:
    - ``def up_to_date(self, obj, found) -> bool`` reports, without IO, whether ``found`` matches the object. Without it, anything
      found counts as up to date.
    - ``async def update(self, key, obj, found) -> R`` changes ``found`` to match the object. It raises if the external object is
      gone, and never creates a new one. Without it, Steersman reports an external object that is out of date and leaves it alone.

    Steersman retries with backoff whatever a method raises. A `create` that raised may have succeeded on the service, so Steersman
    does not call it again until `find` returns None. Raise `ServiceRefused` if certainly nothing was created: the retry then comes
    sooner. Raise `ServiceBusy` if the service asks to wait, such as with 429 and Retry-After.

    ``obj`` is the Kubernetes object as it was last read. It says where to look, such as the region or the account; the key says
    what to look for.
    """

    async def find(self, key: ExternalKey, obj: T_contra, /) -> R | None:
        """Look up the external object for this key at the service itself; None if it does not exist."""
        ...

    async def create(self, key: ExternalKey, obj: T_contra, /) -> R:
        """Create the external object, marked so that `find` finds it from then on."""
        ...

    async def delete(self, key: ExternalKey, obj: T_contra, found: R, /) -> None:
        """Delete the external object, or start to: Steersman calls `find` until it is gone. Succeeds if it is gone already."""
        ...


class ServiceRefused(Exception):
    """Raised by an `Api`: the service refused the request and certainly did nothing. Conditions show the message unchanged."""


class ServiceBusy(ServiceRefused):
    """Raised by an `Api`: the service did nothing and asks to wait, such as with the status 429 or 503 and Retry-After.

    No call to this system starts before ``retry_after`` seconds have passed, for any object: neither of this `External` nor of
    another one with the same `CallLimit`. Then the call is made again.
    """

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        if not 0 <= retry_after < float("inf"):
            raise ValueError(f"ServiceBusy: retry_after must be a number of seconds, 0 or more (got {retry_after})")
        self.retry_after = retry_after


class Present(Answer, Generic[R], frozen=True):
    """The external object exists and matches the Kubernetes object."""

    found: R


class Working(Answer, frozen=True):
    """Work is in progress. Its result requeues the object."""

    message: str

    @property
    def wait(self) -> Wait:
        """The same answer as a step of a state."""
        return Wait(self.message, reason="ExternalPending")


class Broken(Answer, frozen=True):
    """The service refused, failed or did not answer. Steersman retries with backoff while reconciles keep asking."""

    message: str

    @property
    def wait(self) -> Wait:
        """The same answer as a step of a state."""
        return Wait(self.message, reason="ExternalError")


class Absent(Answer, frozen=True):
    """The external object does not exist: a lookup did not find it."""
