"""``steersman simulate``: runs the operator of a module with every fault at every request, and reports what breaks.

Guarantees
- The exit code is 0 if nothing breaks, 1 if something does, and 2 for an invalid command line.
- The schedule of each finding is kept in a file, and the output has the command that replays it.
- stdout contains the report and nothing else; progress goes to stderr.
"""

from __future__ import annotations

import inspect
import logging
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from steersman import simulation
from steersman.cli.console import Progress, show
from steersman.cli.failure import Failure, Misuse
from steersman.cli.files import write_files
from steersman.cli.targets.managers import find_manager
from steersman.cli.targets.modules import load_module, look_here_first, module_and_name
from steersman.manager import Manager
from steersman.simulation import (
    Fault,
    NoValidObject,
    PageContents,
    Regression,
    Scenario,
    ScenarioUser,
    SimulationReport,
    derived_workload,
    keep_finding,
    named_faults,
    program,
    read_regression,
    replayed,
    story_page,
)
from steersman.telemetry import painted, visible


class SimulateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command line."""

    target: str
    seed: int = 1
    jobs: int | None = None
    pairs: int = 0
    random: int = 0
    faults: str = ""
    replay: str | None = None
    keep: str = "regressions"
    page: str | None = None


def simulate_operator(options: SimulateOptions) -> int:
    """Simulate, or replay; returns an exit code."""
    module, attribute = module_and_name(options.target, "scenario", nothing="all its scenarios")
    faults = _faults(options.faults)
    look_here_first()
    # Each run logs what its faults cause.
    logging.disable(logging.CRITICAL)
    try:
        scenarios = _scenarios(load_module(module), attribute)
        if options.replay is not None:
            return _replay(scenarios, options)
        if options.page is not None and len(scenarios) > 1:
            raise Misuse(f"--page is for one scenario; name one: {', '.join(scenarios)}")
        codes = [_simulate(name, scenario, faults, options) for name, scenario in scenarios.items()]
        return max(codes)
    finally:
        logging.disable(logging.NOTSET)


def _simulate(name: str, scenario: Scenario, faults: Sequence[Fault] | None, options: SimulateOptions) -> int:
    with Progress("schedules") as progress:
        report = simulation.simulated(
            scenario,
            faults=faults,
            pairs=options.pairs,
            random_schedules=options.random,
            seed=options.seed,
            jobs=options.jobs,
            on_progress=progress.update,
        )
    report = msgspec.structs.replace(report, scenario=name)
    for line in str(report).splitlines():
        show(painted(visible(line), "31") if line.lstrip().startswith("->") else visible(line))
    if options.page is not None:
        write_files({Path(options.page): report.page()}, check=False)
    for line in _replays(report, options):
        show(line)
    return 0 if report.ok else 1


def _replays(report: SimulationReport, options: SimulateOptions) -> Iterator[str]:
    """Keep the schedules that fail; returns the commands that replay them."""
    for finding in report.findings:
        try:
            path = keep_finding(Path(options.keep), finding, scenario=report.scenario)
        except (OSError, ValueError) as error:
            raise Failure(
                f"cannot write a schedule to {options.keep}: {error}; choose another folder with --keep"
            ) from error
        yield visible(f"replay: steersman simulate {report.scenario} --replay {shlex.quote(str(path))}")


# replay


def _replay(scenarios: Mapping[str, Scenario], options: SimulateOptions) -> int:
    regression = _regression(Path(options.replay or ""))
    name = regression.scenario if regression.scenario in scenarios else next(iter(scenarios))
    if len(scenarios) > 1 and name != regression.scenario:
        raise Misuse(f"{options.replay} names no scenario of this module; name one: {', '.join(scenarios)}")
    wrong, replays = replayed(scenarios[name], [regression.schedule], jobs=options.jobs or 2)
    if wrong:
        show("\n".join(("wrong without any fault:", *(f"  -> {visible(str(each))}" for each in wrong))))
        return 1
    (replay,) = replays
    if replay.finding is None:
        show("no violation" if replay.complete else "no violation: not all faults of the schedule happen any more")
        return 0
    # Every line of a story is harmless, and a difference has several.
    show(str(replay.finding.story))
    if options.page is not None and replay.finding.story is not None:
        contents = PageContents(scenario=name, summary=f"replay of {options.replay}", stories=[replay.finding.story])
        write_files({Path(options.page): story_page(contents)}, check=False)
    return 1


def _regression(path: Path) -> Regression:
    try:
        return read_regression(path)
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}; name a file that steersman simulate wrote") from error
    except ValueError as error:
        raise Failure(f"{path} is no schedule: {error}; name a file that steersman simulate wrote") from error


# what to run


def _faults(text: str) -> Sequence[Fault] | None:
    """The faults of an option such as ``crash-after-commit,lost-reply``; None for all if it is empty."""
    if not text:
        return None
    try:
        return named_faults(text.split(","))
    except ValueError as error:
        raise Misuse(f"--faults: {error}") from error


def _scenarios(module: ModuleType, attribute: str) -> dict[str, Scenario]:
    """The scenario that was named, or all of the module, or that of its manager."""
    if attribute and isinstance(found := getattr(module, attribute, None), Scenario):
        return {f"{module.__name__}:{attribute}": found}
    every = {name: value for name, value in vars(module).items() if isinstance(value, Scenario)}
    if every and not attribute:
        named = {id(value): name for name, value in reversed(every.items())}
        return {f"{module.__name__}:{name}": every[name] for name in reversed(named.values())}
    target = f"{module.__name__}:{attribute}" if attribute else module.__name__
    declared = find_manager(module, attribute)
    name = attribute or next(name for name, value in vars(module).items() if value is declared)
    workload = _derived_workload(declared if isinstance(declared, Manager) else _made(declared, target), target)
    # Each start of the operator imports the module anew, as a new process does.
    return {target: Scenario(program(module.__name__, name), workload, name=target)}


def _made(maker: Callable[..., Any], target: str) -> Manager:
    """The manager that a function returns."""
    if inspect.signature(maker).parameters or inspect.iscoroutinefunction(maker):
        raise Failure(
            f"{target} needs a client, and a simulation makes its own; name a Manager, a Scenario, "
            "or a function without parameters that returns a Manager"
        )
    manager = maker()
    if not isinstance(manager, Manager):
        raise Failure(f"{target} returned a {type(manager).__name__}; it must return the Manager to run")
    return manager


def _derived_workload(manager: Manager, target: str) -> Callable[[ScenarioUser], Any]:
    """What users do, derived from the manager's kinds."""
    try:
        return derived_workload(manager)
    except NoValidObject as error:
        raise Failure(f"{target}: {error}; put the workload in a Scenario of steersman.simulation") from error
