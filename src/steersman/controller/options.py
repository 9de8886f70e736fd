"""The settings of a controller."""

from __future__ import annotations

from typing import cast

import msgspec

from steersman.controller.outcomes import no_timedelta
from steersman.controller.queue.state import QueueOptions

#: Ten hours: long enough to cost nothing, short enough to repair by tomorrow what no event reported.
RESYNC = 36_000.0


class ControllerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a controller."""

    #: Number of requests that are reconciled at once.
    concurrency: int = 4
    #: Seconds for one reconcile; None means no limit.
    timeout: float | None = 300.0
    queue: QueueOptions = QueueOptions()
    #: Seconds after which every object of the reconciled kind is reconciled again; None or 0 means never.
    resync: float | None = RESYNC

    def __post_init__(self) -> None:
        concurrency = cast("object", self.concurrency)
        if isinstance(concurrency, bool) or not isinstance(concurrency, int):
            raise TypeError(f"concurrency must be an integer, such as concurrency=4 (got {concurrency!r})")
        if self.concurrency < 1:
            raise ValueError(f"concurrency must be at least 1 (got {self.concurrency})")
        no_timedelta(self.timeout, "timeout")
        no_timedelta(self.resync, "resync")
        for option, seconds in cast("dict[str, object]", {"timeout": self.timeout, "resync": self.resync}).items():
            if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float)):
                raise TypeError(f"{option} must be a number of seconds, such as {option}=60 (got {seconds!r})")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout must be a number of seconds above 0, or None for no limit (got {self.timeout})")
        if self.resync is not None and not 0 <= self.resync < float("inf"):
            raise ValueError(f"resync must be a number of seconds, or None or 0 for never (got {self.resync})")
