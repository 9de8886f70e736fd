"""Controllers as one program: caches, leadership, start and stop, health, metrics and a debug page.

Guarantees:

- **Only the leader acts.** A deposed leader stops writing before its lease can be taken, and can lead again later in
  the same process.
- A term's lease is released only after its work has ended; a successor then starts at once, with fresh caches.
- Ordered start and stop, with drain; a controller that fails takes the program down with its error.
- Controllers can be added and removed while the program runs.
- What a program does can be seen: named checks for the kubelet, metrics under the names that dashboards know, and a page
  for the person on call, which is shown to nobody else.
- One `async with` owns every task.
"""

from steersman.manager.endpoints import Endpoints
from steersman.manager.fence import NotLeading
from steersman.manager.health import Check, Checks
from steersman.manager.leader import Campaign, LeaderElection, Term
from steersman.manager.manager import Manager
from steersman.manager.permissions import PermissionRule, Permissions, permissions_of
from steersman.manager.statistics import (
    BlockedLoop,
    CheckResult,
    Explanation,
    LeaderStatistics,
    ManagerStatistics,
)

__all__ = [
    "BlockedLoop",
    "Campaign",
    "Check",
    "CheckResult",
    "Checks",
    "Endpoints",
    "Explanation",
    "LeaderElection",
    "LeaderStatistics",
    "Manager",
    "ManagerStatistics",
    "NotLeading",
    "PermissionRule",
    "Permissions",
    "Term",
    "permissions_of",
]
