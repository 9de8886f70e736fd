"""A process that starts again has none of what its program kept in modules."""

from __future__ import annotations

from collections import Counter, deque

from simulation.gallery.sites import Site, config_map, creation

from steersman import Context, Done, LeaderElection, Manager, Request
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import ExternalSystem, ScenarioUser, simulate
from steersman.simulation.runs.module_state import ModuleState
from steersman.simulation.scenario import Scenario

number = 0
names: list[str] = []
nested: dict[str, list[int]] = {"kept": [1]}
counts: Counter[str] = Counter()
recent: deque[int] = deque(maxlen=2)
service = ExternalSystem("service")
something = object()
things = {"one": something}


class Reconciler:
    """Keeps state in attributes."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.runs = 0


reconciler = Reconciler()


def setup() -> tuple[()]:
    return ()


async def workload(user: ScenarioUser) -> None:
    await user.settled()


def change() -> None:
    """Do what a program does while it runs."""
    global number  # noqa: PLW0603 - what a program should not do
    number += 1
    names.append("home")
    nested["kept"].append(2)
    nested["new"] = []
    counts["home"] += 1
    recent.extend((1, 2, 3))
    reconciler.seen.add("home")
    reconciler.runs += 1
    service.add("effect")


def test_variables_are_as_at_the_start() -> None:
    """A counter or a memory in a module would survive a simulated crash, and no real one."""
    state, list_before = ModuleState(Scenario(setup, workload), ()), names
    change()
    changed = {name.removeprefix(f"{__name__}.") for name in state.restore()}
    assert changed == {"number", "names", "nested", "counts", "recent", "reconciler.seen", "reconciler.runs"}
    assert (number, names, nested, dict(counts), list(recent)) == (0, [], {"kept": [1]}, {}, [])
    assert (reconciler.seen, reconciler.runs) == (set(), 0)
    assert names is list_before, "other modules may have imported it"
    assert recent.maxlen == 2
    assert state.restore() == []


def test_each_process_has_its_own_variables() -> None:
    """Two replicas that see each other's memory would hide what a crash of one of them loses."""
    state, list_before = ModuleState(Scenario(setup, workload), (), "one"), names
    change()
    held = nested["kept"]
    state.enter("two")
    assert (number, names, nested, dict(counts), list(recent)) == (0, [], {"kept": [1]}, {}, [])
    names.append("shop")
    nested["kept"].append(3)
    state.enter("one")
    assert (number, names, dict(counts), list(recent)) == (1, ["home"], {"home": 1}, [2, 3])
    assert nested == {"kept": [1, 2], "new": []}
    assert nested["kept"] is held, "a task may hold it"
    assert names is list_before
    assert {name.removeprefix(f"{__name__}.") for name in state.restore("two")} == {"names", "nested"}
    assert names == ["home"]
    state.restore("one")


def forgetful_operator() -> Manager:
    """An operator that numbers its children, and keeps the last number in a module."""
    manager = Manager(name="forgetful", leader=LeaderElection("forgetful"))

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting or await ctx.client.find(ConfigMap, request.key) is not None:
            return Done()
        names.append(site.key.name)
        await ctx.client.apply(config_map(site, number=str(len(names))), owner=site, force=True)
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


def test_replicas_do_not_share_variables() -> None:
    """The process that leads after a crash begins with the first number, as it does in a cluster."""
    report = simulate(forgetful_operator, creation, faults=("crash-before-sending",), replicas=2)
    assert report.ok, str(report)


def test_what_is_outside_of_the_process_stays() -> None:
    """An external system survives a crash, and so does the identity of objects that no value describes."""
    state = ModuleState(Scenario(setup, workload), ())
    service.add("another effect")
    things["two"] = object()
    state.restore()
    assert "another effect" in service.objects.values()
    assert things == {"one": something}
