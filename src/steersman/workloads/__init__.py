"""The developer control plane: processes, containers and services as objects.

Built so far: the kinds (`kinds`), their states (`transitions`) and the runner of processes (`processes`). No controllers
join them yet.

What the room guarantees
- **No orphans.** On Linux every process ends with its session: a daemonized grandchild too, also after kill -9. What
  cannot be guaranteed on another system is refused.
- State moves through the API alone: what a dashboard shows is what any client can read.
- A service keeps its address between runs.
"""

from steersman.workloads.kinds import KINDS as KINDS
