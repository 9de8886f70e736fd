"""What an operator would change on a server, without changing anything: `plan_changes`.

Guarantees
- Nothing is written. The client of a plan sends only reads and dry runs, and only to servers that support dry runs.
  Writes with another client are not planned: they happen. `steersman plan` blocks those too.
- An operator sees its own plan: it reads what it created, and what it deleted is gone.
- A plan ends: it records what a reconcile would wait for instead of waiting.
- A plan contains no value of a Secret.
"""

from steersman.plan.diffs import object_diff as object_diff
from steersman.plan.dry_runs import only_dry_runs as only_dry_runs
from steersman.plan.planner import plan_changes as plan_changes
from steersman.plan.result import Plan as Plan, PlannedChange as PlannedChange, Remark as Remark

__all__ = [
    "Plan",
    "PlannedChange",
    "Remark",
    "plan_changes",
]
