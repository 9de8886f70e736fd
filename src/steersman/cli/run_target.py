"""``steersman run``: a service of the application in this folder, or the manager of a module."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from steersman.cli.failure import Misuse
from steersman.cli.run import RunOptions, run_manager


def run_target(
    target: str, words: list[str], files: list[str], project: str | None, *, terminal: bool | None, **options: Any
) -> int:
    """Run a service if the application has one of that name, otherwise a manager; returns an exit code."""
    # Imported on demand: an operator in a Pod needs no application, and starts faster without its modules.
    if ":" not in target and (files or import_module("steersman.application").find_files(Path.cwd(), os.environ)):
        services = import_module("steersman.cli.up.service_run")
        if services.has_service(target, files, project):
            return services.run_service(target, words, files, project, terminal=terminal)
    needs = (
        ("-f and -p need", files or project),
        ("a command after -- needs", words),
        ("-t and -T need", terminal is not None),
    )
    for what, given in needs:
        if given:
            raise Misuse(f"no service {target} in the application here: {what} a service")
    return run_manager(RunOptions(target=target, **options))
