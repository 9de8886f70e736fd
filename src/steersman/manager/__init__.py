"""Controllers as one program: caches, leadership, start and stop, health, metrics and a debug page.

Guarantees:

- **Only the leader acts.** A deposed leader stops writing before another candidate can take its Lease. It can lead
  again later in the same process.
- **With shards, one replica acts on a key.** Replicas share the namespaces; a range of them moves after its owner has
  drained it, or when the owner's Lease has expired.
- A term's Lease is released only after its work has ended. The successor starts at once, with fresh caches.
- Start and stop are ordered, and stop drains. A controller that fails ends the program with its error.
- Controllers can be added and removed while the program runs.
- A program is observable: named health checks for the kubelet, metrics under the names that dashboards expect, and the
  page of `steersman.debug`, which only the on-call engineer can read.
- One `async with` owns every task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman.manager.endpoints import HttpEndpoints as HttpEndpoints
from steersman.manager.event_log import EventLog as EventLog
from steersman.manager.health import Checks as Checks, HealthCheck as HealthCheck
from steersman.manager.leader import Campaign as Campaign, LeaderElection as LeaderElection, Term as Term
from steersman.manager.manager import Manager as Manager
from steersman.manager.readiness import ready_of as ready_of
from steersman.manager.shutdown import report_threads as report_threads
from steersman.manager.signals import (
    LAST_SECONDS as LAST_SECONDS,
    end_process as end_process,
    end_process_after as end_process_after,
    on_signals as on_signals,
)

# Imported on first use: few programs have shards, and only commands need permissions.
if TYPE_CHECKING:
    from steersman.manager.permissions import (
        PermissionRule as PermissionRule,
        Permissions as Permissions,
        permissions_of as permissions_of,
        written_bindings as written_bindings,
    )
    from steersman.manager.shards.settings import Shards as Shards
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.manager.permissions": ["PermissionRule", "Permissions", "permissions_of", "written_bindings"],
            "steersman.manager.shards.settings": ["Shards"],
        },
    )

#: Programs import nothing from this room: its names are for other rooms.
__all__: list[str] = []
