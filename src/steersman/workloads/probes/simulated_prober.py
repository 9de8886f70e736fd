"""A prober for simulations: its owner decides what each check finds."""

from __future__ import annotations

import asyncio

from steersman.workloads.probes.checks import Check, ImpossibleCheck
from steersman.workloads.probes.probe import SUCCESS, OnVerdict, Verdict


class SimulatedProber:
    """Every check that is possible succeeds, unless ``verdicts`` has another verdict for it."""

    def __init__(self) -> None:
        self.verdicts: dict[Check, Verdict] = {}
        #: Every check that was run, in order.
        self.runs: list[Check] = []

    def start(self, check: Check, timeout: float, report: OnVerdict) -> asyncio.Handle:  # noqa: ARG002 - at once
        """Report the verdict that was set for this check."""
        self.runs.append(check)
        verdict = SUCCESS if not isinstance(check, ImpossibleCheck) else Verdict(succeeded=False, reason=check.reason)
        # Compared, because a check with a map has no hash.
        verdict = next((found for known, found in self.verdicts.items() if known == check), verdict)
        return asyncio.get_running_loop().call_soon(report, verdict)
