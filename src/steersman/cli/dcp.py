"""``steersman dcp``: the developer control plane, until it is stopped.

Guarantees
- When the line with the kubeconfig is printed, the server answers; only that line goes to stdout.
- The first SIGTERM or Ctrl-C deletes all objects in order, within the budget; the second ends at once. Either way no
  process is left, but for persistent ones.
- The exit code is 0 after a requested stop, 1 with a reason if it cannot start or a controller has failed.
"""

from __future__ import annotations

import asyncio
import shlex
from functools import partial
from typing import Literal

import msgspec

from steersman.aio import Supervisor
from steersman.cli.console import show_data, tell, tell_banner
from steersman.cli.failure import Failure
from steersman.cli.signals import StopSignals
from steersman.cli.working_folder import working_folder
from steersman.telemetry import configure_logging
from steersman.workloads import DeveloperControlPlane, real_parts, wait_for_end


class DcpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command line."""

    folder: str | None = None
    kubeconfig: str | None = None
    port: int = 0
    #: PID, or PID:START with its start time in clock ticks.
    monitor: str | None = None
    budget: float = 120.0
    container_runtime: Literal["podman", "docker"] = "podman"
    verbose: bool = False


def run_dcp(options: DcpOptions) -> int:
    """Run the control plane; returns an exit code."""
    configure_logging(level="INFO" if options.verbose else "WARNING", form="terminal")
    monitored = _monitored(options.monitor)
    try:
        plane = DeveloperControlPlane(
            folder=options.folder,
            port=options.port,
            kubeconfig=options.kubeconfig,
            parts=partial(real_parts, runtime=options.container_runtime, project=str(working_folder())),
            budget=options.budget,
        )
        asyncio.run(_run(plane, monitored))
    except OSError as error:
        where = f"cannot use {error.filename}: " if error.filename else ""
        raise Failure(f"{where}{error.strerror or error}") from error
    except (RuntimeError, ValueError) as error:
        raise Failure(str(error)) from error
    except asyncio.CancelledError:
        tell("stopped at once; processes are being killed")
        return 1
    return 0


async def _run(plane: DeveloperControlPlane, monitored: tuple[int, int | None] | None) -> None:
    async with plane, Supervisor() as tasks:
        StopSignals(plane.stopping)
        assert plane.session is not None
        lines = [("server", plane.url), ("output", str(plane.session.logs)), ("stop", "Ctrl-C; twice to stop at once")]
        if monitored is not None:
            lines.insert(2, ("monitors", f"pid {monitored[0]}"))
            tasks.start(_monitor(plane, *monitored), name="monitored process")
        tell_banner("runs processes, services and containers as objects", lines)
        tell("In another terminal:")
        show_data(f"export KUBECONFIG={shlex.quote(str(plane.kubeconfig))}\n")
        tell()
        await plane.stopping.wait()
        tasks.cancel()
        tell("stopping: deleting all objects")
    tell("stopped")


async def _monitor(plane: DeveloperControlPlane, pid: int, start: int | None) -> None:
    await wait_for_end(pid, start)
    tell(f"pid {pid} has ended")
    plane.stopping.set()


def _monitored(text: str | None) -> tuple[int, int | None] | None:
    if text is None:
        return None
    pid, colon, start = text.partition(":")
    if not pid.isdigit() or int(pid) < 1 or (colon and not start.isdigit()):
        raise Failure(f"--monitor must be PID or PID:START, with the start time in clock ticks (got {text!r})")
    return int(pid), int(start) if colon else None
