"""Simulation: find the bug before the cluster does.

The whole stack runs in one process under a virtual clock and a seed: the API server, its controllers, the operator and its
users. Every fault is tried at every request.

Guarantees
- The same seed, code and Python version give the same run, in any process.
- A fault is one that a real cluster can produce.
- A violation comes with the smallest schedule that shows it, as a file that replays it.

Names are imported on first use, because pytest loads the plugin of this package in every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names

if TYPE_CHECKING:
    from steersman.simulation.checks import (
        Objects as Objects,
        StateCheck as StateCheck,
        always as always,
        at_rest as at_rest,
        sometimes as sometimes,
    )
    from steersman.simulation.derivation import NoValidObject as NoValidObject, derived_workload as derived_workload
    from steersman.simulation.exploration.exploration import Exploration as Exploration
    from steersman.simulation.plugin import Simulation as Simulation
    from steersman.simulation.programs import program as program
    from steersman.simulation.regressions import (
        Regression as Regression,
        Replay as Replay,
        keep_finding as keep_finding,
        read_regression as read_regression,
        replayed as replayed,
    )
    from steersman.simulation.report import (
        Finding as Finding,
        SimulationReport as SimulationReport,
        simulate as simulate,
        simulated as simulated,
    )
    from steersman.simulation.runs.external_system import (
        ExternalFailure as ExternalFailure,
        ExternalSystem as ExternalSystem,
    )
    from steersman.simulation.runs.faults import (
        ALL_FAULTS as ALL_FAULTS,
        Fault as Fault,
        FaultName as FaultName,
        fault_name as fault_name,
        named_faults as named_faults,
    )
    from steersman.simulation.runs.schedules import FaultSchedule as FaultSchedule, Violation as Violation
    from steersman.simulation.scenario import Scenario as Scenario, ScenarioUser as ScenarioUser
    from steersman.simulation.stories import PageContents as PageContents, Story as Story, story_page as story_page
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.simulation.checks": ["Objects", "StateCheck", "always", "at_rest", "sometimes"],
            "steersman.simulation.derivation": ["NoValidObject", "derived_workload"],
            "steersman.simulation.exploration.exploration": ["Exploration"],
            "steersman.simulation.runs.external_system": ["ExternalFailure", "ExternalSystem"],
            "steersman.simulation.runs.faults": ["ALL_FAULTS", "Fault", "FaultName", "fault_name", "named_faults"],
            "steersman.simulation.regressions": ["Regression", "Replay", "keep_finding", "read_regression", "replayed"],
            "steersman.simulation.plugin": ["Simulation"],
            "steersman.simulation.programs": ["program"],
            "steersman.simulation.report": ["Finding", "SimulationReport", "simulate", "simulated"],
            "steersman.simulation.scenario": ["Scenario", "ScenarioUser"],
            "steersman.simulation.runs.schedules": ["FaultSchedule", "Violation"],
            "steersman.simulation.stories": ["PageContents", "Story", "story_page"],
        },
    )

__all__ = [
    "ExternalFailure",
    "ExternalSystem",
    "Objects",
    "Scenario",
    "ScenarioUser",
    "Simulation",
    "always",
    "at_rest",
    "derived_workload",
    "simulate",
    "sometimes",
]
