"""Calls of index functions, which are user code: a failure affects one object, is logged and counted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from typing import Any

from steersman.cache.indexes import IndexFunction, values_of
from steersman.cache.stored_object import StoredObject
from steersman.errors import is_exit
from steersman.telemetry import FailureLog

_log = logging.getLogger("steersman.cache")


class IndexCalls:
    """Calls the index functions of one kind."""

    def __init__(self, kind: str, decode: Callable[[StoredObject], Any]) -> None:
        self._kind = kind
        self._decode = decode
        #: The object decoded last: several functions are called with the same one in turn.
        self._decoded: tuple[StoredObject, Any] | None = None
        self._failure_log = FailureLog()
        self.failures = 0

    def values(self, function: IndexFunction, stored: StoredObject, *, name: str = "") -> tuple[Hashable, ...]:
        """Return the index values of an object; no values if the function fails."""
        try:
            if self._decoded is None or self._decoded[0] is not stored:
                self._decoded = (stored, self._decode(stored))
            return values_of(function(self._decoded[1]), function)
        except BaseException as error:
            # User code: any error affects that key only.
            if is_exit(error):
                raise
            self.failures += 1
            self._failure_log.report(
                _log,
                error,
                asyncio.get_running_loop().time(),
                "index %s of %s failed on %s",
                repr(name) if name else "",
                self._kind,
                stored.key,
                then="; lookups by this index do not find the object",
            )
            return ()
