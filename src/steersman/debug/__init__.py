"""What a running manager shows about itself: statistics as values, and the debug page (`steersman.debug.page`).

Guarantees
- Statistics are frozen values without Kubernetes objects, and encode to JSON directly.
- The page is a pure function of the statistics: one HTML document that loads nothing.
- The page is a package of its own: a manager without endpoints does not import it.
"""

from steersman.debug.statistics import (
    STALE_AFTER,
    BlockedLoop,
    CheckResult,
    Explanation,
    LeaderStatistics,
    ManagerStatistics,
    Phase,
    ReadyCondition,
)
from steersman.debug.text import count, duration, next_run, percent, stamp

__all__ = [
    "STALE_AFTER",
    "BlockedLoop",
    "CheckResult",
    "Explanation",
    "LeaderStatistics",
    "ManagerStatistics",
    "Phase",
    "ReadyCondition",
    "count",
    "duration",
    "next_run",
    "percent",
    "stamp",
]
