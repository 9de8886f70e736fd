"""Controllers and webhooks as one program. So far only leader election exists; start, stop and health are still to come.

Guarantees:

- **Only the leader acts.** A deposed leader stops writing before its lease can be taken, and can lead again later in
  the same process.
- A term's lease is released only after its work has ended; a successor then starts at once.
- One `async with` owns every task.
"""

from steersman.manager.fence import NotLeading
from steersman.manager.leader import Campaign, LeaderElection, Term

__all__ = ["Campaign", "LeaderElection", "NotLeading", "Term"]
