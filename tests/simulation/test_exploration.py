"""Schedules that share the beginning of a run: each is the run that it is on its own."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading

import msgspec

from steersman import Context, Done, Manager, ObjectMeta, Request, Resource, Spec, Status
from steersman.aio import randomness, utc_now
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import Exploration, Objects, Scenario, ScenarioUser, at_rest
from steersman.simulation.exploration.process_warm_up import warm_up_process
from steersman.simulation.runs.faults import CrashBefore, LostReply
from steersman.simulation.runs.places import Place
from steersman.simulation.runs.schedules import FaultSchedule, PlacedFault, Result
from steersman.simulation.runs.world import World


class TicketSpec(Spec):
    seat: str = ""


class TicketStatus(Status):
    printed: str = ""


class Ticket(Resource[TicketSpec, TicketStatus], group="exploration.example.com", version="v1"):
    """Something that is printed."""


def printer() -> Manager:
    """An operator that keeps when it wrote, and a random number."""
    manager = Manager(name="printer")

    async def reconcile(ctx: Context, request: Request) -> Done:
        ticket = await ctx.client.find(Ticket, request.key)
        if ticket is not None and not ticket.deleting and ticket.status is None:
            stub = ConfigMap(metadata=ObjectMeta(name=ticket.key.name, namespace=ticket.key.namespace))
            await ctx.client.apply(stub, owner=ticket, force=True)
            ticket.status = TicketStatus(printed=f"{utc_now():%S.%f} {randomness().random()}")
            await ctx.client.save(ticket)
        return Done()

    manager.controller(Ticket).owns(ConfigMap).run_with(reconcile)
    return manager


async def print_two(user: ScenarioUser) -> None:
    for name in ("stalls", "circle"):
        await user.client.create(Ticket(metadata=ObjectMeta(name=name), spec=TicketSpec(seat=name)))
        await user.settled()


def printed(objects: Objects) -> bool:
    """Never hold at the end, with the values as the reason: a result shows what happened in its run."""
    tickets = objects.list(Ticket)
    assert len(tickets) < 2, " ".join(ticket.status.printed for ticket in tickets if ticket.status)
    return True


SCENARIO = Scenario(printer, print_two, checks=[at_rest(printed)])


def explored(schedules: list[FaultSchedule]) -> dict[FaultSchedule, Result]:
    exploration = Exploration(SCENARIO, faults=(CrashBefore(), LostReply()))
    results: list[Result] = []
    exploration.runs(schedules, results.append)
    assert len(results) == len(schedules)
    return {result.schedule: result for result in results}


def run_alone(schedule: FaultSchedule) -> tuple[list[str], list[PlacedFault]]:
    world = World(SCENARIO, seed=schedule.seed, decide=schedule.decide)
    world.run()
    return list(world.failed_checks.values()), [PlacedFault(fault, place) for fault, place in world.network.fired]


def at(verb: str, resource: str, name: str, **more: object) -> Place:
    place = Place(actor="operator", verb=verb, resource=resource, key=f"default/{name}")
    return msgspec.structs.replace(place, **more)


PLACES = [
    at("apply", "configmaps", "stalls"),
    at("update", "tickets/status", "stalls", group="exploration.example.com"),
    at("update", "tickets/status", "circle", group="exploration.example.com"),
]


def schedule(*faults: PlacedFault, seed: int = 1) -> FaultSchedule:
    return FaultSchedule(seed=seed, faults=faults)


def assert_runs_of_their_own(schedules: list[FaultSchedule]) -> None:
    for each, result in explored(schedules).items():
        words, fired = run_alone(each)
        assert words
        assert [violation.words for violation in result.violations] == words, str(each)
        assert list(result.fired) == fired, str(each)


def test_schedules_of_one_seed_share_the_run_before_their_first_fault() -> None:
    first, second, third = (PlacedFault(CrashBefore(), place) for place in PLACES)
    lost = PlacedFault(LostReply(), PLACES[0])
    nowhere = PlacedFault(LostReply(), at("apply", "configmaps", "balcony"))
    # The fault that happens first need not be the first of its schedule.
    assert_runs_of_their_own(
        [schedule(), schedule(nowhere), schedule(lost), schedule(third, lost), schedule(second, first), schedule(third)]
    )


def test_schedules_with_seeds_of_their_own_share_the_start_of_the_server() -> None:
    crash = PlacedFault(CrashBefore(), PLACES[1])
    schedules = [schedule(crash, seed=seed) for seed in (1, 2, 3)]
    assert_runs_of_their_own(schedules)
    words = {violation.words for result in explored(schedules).values() for violation in result.violations}
    assert len(words) == len(schedules)


def test_a_pair_is_played_once() -> None:
    exploration = Exploration(Scenario(printer, print_two), faults=(CrashBefore(),))
    assert not exploration.prepare()
    few, all_ = exploration.pairs(5), exploration.pairs(2000)
    assert len({frozenset(each.faults) for each in few}) == 5
    assert len({frozenset(each.faults) for each in all_}) == len(all_) < 2000


def pending_tasks() -> set[asyncio.Task[object]]:
    gc.collect()
    return {each for each in gc.get_objects() if isinstance(each, asyncio.Task) and not each.done()}


def test_what_all_runs_need_is_loaded_without_a_trace() -> None:
    """It happens in the process of the caller, who has tasks, threads and handlers of their own."""
    warm_up_process.cache_clear()
    handlers, threads, before = list(logging.getLogger().handlers), threading.active_count(), pending_tasks()
    warm_up_process()
    assert logging.getLogger().handlers == handlers
    assert threading.active_count() == threads
    assert pending_tasks() <= before
