"""Reject mistakes in the declaration of an `External` where it is written, and say what to write instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable

#: How many arguments each method takes; those of earlier versions take no object.
_COUNTS = {"find": (2, 1), "create": (2,), "delete": (3, 2), "update": (3,)}


def check_name(name: str) -> str:
    """Reject an empty name; returns how error messages refer to the external."""
    if not name:
        raise ValueError('External(...) needs a name for its messages: name="bucket"')
    return f"External(name={name!r})"


def check_api(api: object, where: str) -> None:
    """Reject an object that does not implement `Api`."""
    what = type(api).__name__
    if isinstance(api, type):
        raise TypeError(f"{where}: {api.__name__} is a class; pass an instance: External({api.__name__}(), ...)")
    parameters = {"find": "key, obj", "create": "key, obj", "delete": "key, obj, found", "update": "key, obj, found"}
    for name, takes in parameters.items():
        method = getattr(api, name, None)
        if method is None and name == "update":
            continue
        if method is None:
            raise TypeError(f"{where}: {what} has no method {name}; write async def {name}(self, {takes})")
        if not inspect.iscoroutinefunction(method):
            raise TypeError(
                f"{where}: {what}.{name} is not async; write async def {name}(self, {takes}), and call blocking code "
                "with await asyncio.to_thread(...)"
            )
        if not any(takes_object(method, count) for count in _COUNTS[name]):
            raise TypeError(
                f"{where}: {what}.{name} cannot be called with ({takes}); write async def {name}(self, {takes}), and keep"
                " everything else in attributes of the instance"
            )
    judge = getattr(api, "up_to_date", None)
    if judge is None and hasattr(api, "update"):
        raise TypeError(
            f"{where}: {what} has update but no up_to_date, which decides when to call it; write def"
            " up_to_date(self, obj, found) -> bool"
        )
    if inspect.iscoroutinefunction(judge):
        raise TypeError(
            f"{where}: {what}.up_to_date is async, but it must compare without IO; write def"
            " up_to_date(self, obj, found), and let find return what it needs"
        )
    if judge is not None and not takes_object(judge, 2):
        raise TypeError(
            f"{where}: {what}.up_to_date cannot be called with (obj, found); write def up_to_date(self, obj, found) -> bool"
        )


def check_seconds(where: str, *, above: bool, **options: float | None) -> None:
    """Reject values that are not a number of seconds; ``above`` also rejects 0."""
    for name, value in options.items():
        if value is None:
            continue
        if not 0 <= value < float("inf") or (above and value == 0):
            raise ValueError(
                f"{where}: {name} must be a number of seconds{' above 0' if above else ', 0 or more'} (got {value})"
            )


def takes_object(method: Callable[..., object], count: int) -> bool:
    """Whether a method takes ``count`` positional arguments; with one less, it is of the form without the object."""
    try:
        inspect.signature(method).bind(*range(count))
    except TypeError:
        return False
    return True
