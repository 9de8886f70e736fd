"""Controllers as one program: caches, leadership, start and stop. Health, metrics and a debug page are still to come.

Guarantees:

- **Only the leader acts.** A deposed leader stops writing before its lease can be taken, and can lead again later in
  the same process.
- A term's lease is released only after its work has ended; a successor then starts at once, with fresh caches.
- Ordered start and stop, with drain; a controller that fails takes the program down with its error.
- One `async with` owns every task.
"""

from steersman.manager.fence import NotLeading
from steersman.manager.leader import Campaign, LeaderElection, Term
from steersman.manager.manager import Manager

__all__ = ["Campaign", "LeaderElection", "Manager", "NotLeading", "Term"]
