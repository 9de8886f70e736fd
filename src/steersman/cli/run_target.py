"""``steersman run``: a service of the application in this folder, or the manager of a module."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from steersman.cli.failure import Failure, Misuse
from steersman.cli.modules import look_here_first
from steersman.cli.run import RunOptions, run_manager


def run_target(
    target: str, words: list[str], files: list[str], project: str | None, *, terminal: bool | None, **options: Any
) -> int:
    """Run a service if the application has one of that name, otherwise a manager; returns an exit code."""
    # Imported on demand: an operator in a Pod needs no application, and starts faster without its modules.
    if ":" not in target and (files or import_module("steersman.application").find_files(Path.cwd(), os.environ)):
        services = import_module("steersman.cli.up.service_run")
        known = services.service_names(files, project)
        if known is None or target in known:
            return services.run_service(target, words, files, project, terminal=terminal)
        if not (files or project or words or terminal is not None or _is_module(target)):
            raise Failure(
                f"no service and no module {target} here; the services are: {', '.join(known)} (a manager: MODULE:NAME)"
            )
    needs = (
        ("-f and -p need", files or project),
        ("a command after -- needs", words),
        ("-t and -T need", terminal is not None),
    )
    for what, given in needs:
        if given:
            raise Misuse(f"no service {target} in the application here: {what} a service")
    return run_manager(RunOptions(target=target, **options))


def _is_module(target: str) -> bool:
    """Whether a word names a module, or so little a name of one that its own error says more."""
    look_here_first()
    top = target.partition(".")[0]
    return not top.isidentifier() or find_spec(top) is not None
