"""``steersman up``: reads the application, shows its services, and starts the session.

Importing the modules of a server takes a second, so the first lines are printed before.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import shutil
import sys

from steersman.application import Application
from steersman.cli.failure import Failure, Misuse
from steersman.cli.uncollected_imports import uncollected_imports
from steersman.cli.up.output import Output
from steersman.cli.up.places import SessionStopping, run_command
from steersman.cli.up.summary import start_summary
from steersman.cli.up.up_options import UpOptions
from steersman.projects import ApplicationSource, ProjectIdentity, SessionRecord, has_owner


def run_up(options: UpOptions) -> int:
    """Run the application; returns an exit code."""
    aborts = options.abort_on_exit or options.abort_on_failure or options.exit_code_from
    if (options.detach or options.wait) and aborts:
        raise Misuse(
            "--detach and --wait cannot be combined with --abort-on-exit, --abort-on-failure or --exit-code-from"
        )
    try:
        return run_command(lambda: _run(options))
    except asyncio.CancelledError:
        return 130


async def _run(options: UpOptions) -> int:
    source, selection = options.source(), options.selection()
    # Read once: the services that this command shows are those that start. An edit meanwhile is applied after that.
    if options.background:
        whole: Application = pickle.load(sys.stdin.buffer)  # noqa: S301 - `start_in_background` has sent it
    else:
        whole = source.read()
    application = selection.scaled(whole)
    if options.exit_code_from and options.exit_code_from not in application.services:
        known = ", ".join(application.services)
        raise Failure(f"--exit-code-from: no service {options.exit_code_from}; the services are: {known}")
    output = Output(os.environ)
    for warning in application.warnings:
        output.note(f"warning: {warning}")
    state = ProjectIdentity(application.folder.resolve(), application.name).state_folder(source.environment)
    if not options.background and not has_owner(state):
        for line in start_summary(application):
            output.text(line)
    _check_runtime(application, options, output)
    try:
        return await _start(options, source, whole, output)
    except SessionStopping as stopping:
        output.note(f"{application.name} is stopping: it starts again after that")
        await _wait_for_end(stopping.record, within=options.timeout)
        return await _start(options, source, source.renewed(whole), output)
    finally:
        await output.drain()


async def _start(options: UpOptions, source: ApplicationSource, whole: Application, output: Output) -> int:
    if (options.detach or options.wait) and not options.background:
        with uncollected_imports():
            from steersman.cli.up.background import start_in_background  # noqa: PLC0415 - see above
        return await start_in_background(source, options.selection(), whole, output, within=options.timeout)
    with uncollected_imports():
        from steersman.apiserver import CertificateProcess  # noqa: PLC0415 - see above
    # Begins first: it issues the certificates while this process imports.
    async with CertificateProcess() as certificates:
        with uncollected_imports():
            from steersman.cli.up.foreground import run_session  # noqa: PLC0415 - see above
        return await run_session(options, source, whole, output, certificates.issued)


async def _wait_for_end(record: SessionRecord, *, within: float) -> None:
    from steersman.workloads import wait_for_end  # noqa: PLC0415 - see above

    try:
        async with asyncio.timeout(within):
            await wait_for_end(record.pid, record.start)
    except TimeoutError:
        raise Failure(f"{record.name} did not stop within {within:g} s; kill it with: kill -9 {record.pid}") from None


def _check_runtime(application: Application, options: UpOptions, output: Output) -> None:
    """Warn about containers whose runtime is not installed. Raises `Failure` if the command would wait for them."""
    runtime = options.container_runtime
    containers = [name for name, service in application.services.items() if not service.is_process]
    if not containers or options.background or shutil.which(runtime) is not None:
        return
    other = "docker" if runtime == "podman" else "podman"
    advice = f"install it, use --container-runtime {other}, or pass the names of other services"
    text = f"{', '.join(containers)} cannot start, because {runtime} is not installed: {advice}"
    if options.detach or options.wait:
        raise Failure(text)
    output.note(f"warning: {text}")
