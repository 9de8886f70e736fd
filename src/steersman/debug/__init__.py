"""What a running manager shows about itself: statistics as values, and the debug page (`steersman.debug.page`).

Guarantees
- Statistics are frozen values without Kubernetes objects, and encode to JSON directly.
- The page is a pure function of the statistics: one HTML document that loads nothing.
- The page is a package of its own: a manager without endpoints does not import it.
"""

from steersman.debug.statistics import (
    STALE_AFTER as STALE_AFTER,
    BlockedLoop as BlockedLoop,
    CheckResult as CheckResult,
    Explanation as Explanation,
    LeaderStatistics as LeaderStatistics,
    ManagerStatistics as ManagerStatistics,
    Phase as Phase,
    ReadyCondition as ReadyCondition,
    ShardStatistics as ShardStatistics,
    UnreadyObject as UnreadyObject,
    UnreadyObjects as UnreadyObjects,
)
from steersman.debug.text import (
    count as count,
    duration as duration,
    next_run as next_run,
    percent as percent,
    stamp as stamp,
)

#: Programs import nothing from this room: its names are for other rooms.
__all__: list[str] = []
