"""A Schedule creates a Job at a fixed interval.

Shows: a time-driven controller. It stores only the last tick; the next one follows from the clock, so a restart, a late
run and a changed interval need no special case. If the operator was down, one Job makes up for all missed ticks, and the
status counts them.

A Job is named after its tick: a crash between creating it and writing the status does not create it twice.

Run it with `steersman run examples.schedule --install-crds`, and try:

    kubectl apply -f - <<< '{"apiVersion": "time.example.com/v1", "kind": "Schedule", "metadata": {"name": "tidy"},
                             "spec": {"every": "30s", "image": "busybox", "args": ["date"]}}'
    kubectl get schedules,jobs
"""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple

from steersman import (
    Context,
    Done,
    Manager,
    ObjectMeta,
    PrinterColumn,
    Request,
    RequeueAfter,
    Resource,
    Spec,
    Status,
    utc_now,
)
from steersman.errors import AlreadyExists
from steersman.kinds.batch_v1 import Job, JobSpec
from steersman.kinds.core_v1 import Container, PodSpec, PodTemplateSpec
from steersman.markers import MaxLength, Minimum, Pattern, Rule
from steersman.objects import parse_duration

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ScheduleSpec(Spec):
    every: Annotated[str, Pattern("^[1-9][0-9]*[smh]$"), MaxLength(10)]
    """The interval, such as 30s, 5m or 1h; ticks are at whole multiples of it, in UTC."""
    image: str
    args: list[str] | None = None
    keep: Annotated[int, Minimum(1)] = 3
    """The number of Jobs to keep."""


class ScheduleStatus(Status):
    last_tick: datetime | None = None
    missed: int = 0


class Schedule(
    Resource[ScheduleSpec, ScheduleStatus],
    group="time.example.com",
    version="v1",
    rules=(Rule(rule="self.metadata.name.size() <= 52", message="the names of its Jobs would be too long"),),
    columns=(
        PrinterColumn(name="Every", type="string", json_path=".spec.every"),
        PrinterColumn(name="Last", type="date", json_path=".status.lastTick"),
    ),
):
    """Work to be done at a fixed interval."""


class Ticks(NamedTuple):
    """The last due tick, if any; the number of missed ticks before it; the next tick."""

    due: datetime | None
    missed: int
    next: datetime


def ticks_between(since: datetime, until: datetime, every: timedelta) -> Ticks:
    count = (until - EPOCH) // every
    unseen = count - (since - EPOCH) // every
    due = EPOCH + count * every if unseen > 0 else None
    return Ticks(due, max(unseen - 1, 0), EPOCH + (count + 1) * every)


def job_for(schedule: Schedule, tick: datetime) -> Job:
    work = Container(name="work", image=schedule.spec.image, args=schedule.spec.args)
    return Job(
        metadata=ObjectMeta(name=f"{schedule.key.name}-{tick.timestamp():.0f}", namespace=schedule.key.namespace),
        spec=JobSpec(template=PodTemplateSpec(spec=PodSpec(containers=[work], restart_policy="Never"))),
    )


async def reconcile(ctx: Context, request: Request) -> Done | RequeueAfter:
    schedule = await ctx.client.find(Schedule, request.key)
    if schedule is None or schedule.deleting:
        return Done()
    status = schedule.ensure_status()
    since = status.last_tick or schedule.metadata.creation_timestamp or utc_now()
    ticks = ticks_between(since, utc_now(), parse_duration(schedule.spec.every))
    if ticks.due is not None:
        with suppress(AlreadyExists):  # an earlier attempt got this far
            await ctx.client.create(job_for(schedule, ticks.due), owner=schedule)
        status.last_tick, status.missed = ticks.due, status.missed + ticks.missed
    status.observed_generation = schedule.generation
    await ctx.client.save(schedule)
    await prune(ctx, schedule)
    return RequeueAfter(max((ticks.next - utc_now()).total_seconds(), 0.001))


async def prune(ctx: Context, schedule: Schedule) -> None:
    jobs = await ctx.client.owned_by(Job, schedule)
    newest_first = sorted(jobs, key=lambda job: job.key.name, reverse=True)
    for job in newest_first[schedule.spec.keep :]:
        if not job.deleting:
            await ctx.client.delete(job, propagation="Background", missing_ok=True)


manager = Manager(name="schedule")
manager.controller(Schedule).owns(Job).run_with(reconcile)
