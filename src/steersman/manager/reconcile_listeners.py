"""Listeners for finished reconciles. A listener that fails affects nothing else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeAlias

from steersman.controller import KeyRecord
from steersman.errors import is_exit
from steersman.telemetry import FailureLog

_log = logging.getLogger("steersman.manager")

#: Called with the controller's name and the record of each finished reconcile.
ReconcileListener: TypeAlias = Callable[[str, KeyRecord], None]


class ReconcileListeners:
    """The functions added with `Manager.on_reconcile`."""

    def __init__(self) -> None:
        self._listeners: list[ReconcileListener] = []
        self._failure_log = FailureLog()

    def add(self, listener: ReconcileListener) -> None:
        """Add a listener."""
        self._listeners.append(listener)

    def notify(self, controller: str, record: KeyRecord) -> None:
        """Call every listener. Exceptions are logged."""
        for listener in self._listeners:
            try:
                listener(controller, record)
            except BaseException as error:
                # User code: it cannot fail the reconcile that has ended.
                if is_exit(error):
                    raise
                self._failure_log.report(
                    _log,
                    error,
                    asyncio.get_running_loop().time(),
                    "controller %s: an on_reconcile listener failed for %s",
                    controller,
                    record.request,
                )
