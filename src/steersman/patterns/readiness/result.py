"""The result of a readiness rule, and constructors for its few forms. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.patterns.readiness.fields import generation, number


class Readiness(msgspec.Struct, frozen=True):
    """Whether an object has become what its spec asks for, and why not."""

    ready: bool
    #: One CamelCase word, valid as the reason of a condition.
    reason: str
    #: Text that follows the object's name, such as "1 of 3 replicas are ready".
    message: str
    #: Waiting does not help: a user has to change the object.
    failed: bool = False


def unobserved(obj: Any) -> Readiness | None:
    """The result if the controller has not observed the current generation; None if it has."""
    seen, asked = number(obj, "status", "observed_generation"), generation(obj)
    return stale(seen, asked) if seen < asked else None


def stale(seen: int, asked: int) -> Readiness:
    """The result if a status is about an older generation."""
    if not seen:
        return waits("NotObserved", "its controller has not looked at it yet")
    return waits("NotObserved", f"its controller has not seen the last change yet (generation {asked}, seen {seen})")


def ready(message: str = "it is ready", *, reason: str = "Ready") -> Readiness:
    """The object is ready."""
    return Readiness(ready=True, reason=reason, message=message)


def waits(reason: str, message: str) -> Readiness:
    """The object is not ready yet, and may become ready by itself."""
    return Readiness(ready=False, reason=reason, message=message)


def failed(reason: str, message: str) -> Readiness:
    """The object is not ready, and waiting does not help."""
    return Readiness(ready=False, reason=reason, message=message, failed=True)
