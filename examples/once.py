"""A Task runs once: its result is in its status, and no restart repeats it.

Shows: claiming before acting, a result that is not lost when writing it fails, leader election.

No program can guarantee that an effect outside its database happens exactly once. This one guarantees *at most* once and
reports the rest: a Task whose operator died in the middle is `Lost`, and a person decides. (If repeating the work is
harmless, do not claim it; just do it.)

Run it with `steersman run examples.once --install-crds`, and try:

    kubectl apply -f - <<< '{"apiVersion": "once.example.com/v1", "kind": "Task", "metadata": {"name": "date"},
                             "spec": {"argv": ["date"]}}'
    kubectl get tasks
"""

import asyncio
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Literal

from steersman import (
    Context,
    Done,
    LeaderElection,
    Manager,
    PrinterColumn,
    Reconciler,
    Request,
    Resource,
    Spec,
    Status,
    utc_now,
)
from steersman.errors import NotFound
from steersman.markers import Immutable, MinItems
from steersman.objects import replace

#: The number of output characters to keep.
OUTPUT_LIMIT = 1000


class TaskSpec(Spec):
    argv: Annotated[list[str], MinItems(1), Immutable("a Task cannot be changed; create another Task")]


class TaskStatus(Status):
    phase: Literal["Running", "Succeeded", "Failed", "Lost"] | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    exit_code: int | None = None
    output: str | None = None


class Task(
    Resource[TaskSpec, TaskStatus],
    group="once.example.com",
    version="v1",
    columns=(
        PrinterColumn(name="Phase", type="string", json_path=".status.phase"),
        PrinterColumn(name="Output", type="string", json_path=".status.output"),
    ),
):
    """Work to be done once."""


class TaskReconciler(Reconciler[Task]):
    def __init__(self) -> None:
        #: Unwritten results, by uid.
        self._results: dict[str, TaskStatus] = {}

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        """Claim, run and report, each at most once."""
        task = await ctx.client.find(Task, request.key)
        if task is None:
            return Done()
        status = task.status or TaskStatus()
        if status.completed_at is not None or task.deleting:
            self._results.pop(task.uid, None)
            return Done()
        if status.phase is None:
            # The claim: the server rejects it if the Task changed since we read it.
            task.status = status = TaskStatus(phase="Running", started_at=utc_now())
            task = (await ctx.client.save(task)).object
            self._results[task.uid] = await perform(task.spec.argv)
        # Claimed by another process: only the leader runs, so that process is gone.
        result = self._results.get(task.uid, TaskStatus(phase="Lost", completed_at=utc_now()))
        task.status = replace(result, started_at=status.started_at, observed_generation=task.generation)
        # A patch, because a label that was set meanwhile must not block the result.
        with suppress(NotFound):  # deleted meanwhile
            await ctx.client.patch_from(task, task, subresource="status")
        self._results.pop(task.uid, None)
        return Done()


async def perform(argv: list[str]) -> TaskStatus:
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(*argv, stdout=pipe, stderr=asyncio.subprocess.STDOUT)
    except OSError as error:
        return TaskStatus(phase="Failed", completed_at=utc_now(), exit_code=127, output=str(error))
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:  # the operator is stopping
            process.kill()
            await process.wait()
    text = output.decode(errors="replace")[:OUTPUT_LIMIT]
    return TaskStatus(
        phase="Failed" if process.returncode else "Succeeded",
        completed_at=utc_now(),
        exit_code=process.returncode,
        output=text,
    )


manager = Manager(name="once", leader=LeaderElection("once"))
# timeout=None: a Task takes as long as it takes
manager.controller(Task).options(timeout=None).run_with(TaskReconciler())
