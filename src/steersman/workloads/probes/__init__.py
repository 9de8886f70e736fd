"""Probes of the health of processes and containers.

Guarantees
- A probe runs every 100 ms until its first success, then at its interval: a workload is healthy within moments.
- Runs of one probe never overlap, and each ends with its timeout.
- A listener hears of every change of an outcome, and of mere repetitions once a minute.
- When the block of a `HealthMonitor` ends, no probe runs.
"""

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman.workloads.probes.checks import (
    Check as Check,
    CommandCheck as CommandCheck,
    HttpCheck as HttpCheck,
    ImpossibleCheck as ImpossibleCheck,
    ProbedWorkload as ProbedWorkload,
    TcpCheck as TcpCheck,
)
from steersman.workloads.probes.declarations import declared_probes as declared_probes, probe_texts as probe_texts
from steersman.workloads.probes.monitor import HealthMonitor as HealthMonitor, health_of as health_of
from steersman.workloads.probes.probe import (
    OnVerdict as OnVerdict,
    Probe as Probe,
    Prober as Prober,
    Run as Run,
    Schedule as Schedule,
    Verdict as Verdict,
)
from steersman.workloads.probes.real_prober import RealProber as RealProber

# Imported on first use: a session does not need it.
if TYPE_CHECKING:
    from steersman.workloads.probes.simulated_prober import SimulatedProber as SimulatedProber
else:
    __getattr__, __dir__ = lazy_names(__name__, {"steersman.workloads.probes.simulated_prober": ["SimulatedProber"]})
