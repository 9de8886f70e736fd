"""``steersman run``: a service of the application in this folder, or the manager of a module."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from steersman.cli.failure import Failure, Misuse
from steersman.cli.run import RunOptions, run_manager
from steersman.cli.targets.modules import look_here_first
from steersman.cli.working_folder import working_folder


def run_target(
    target: str, words: list[str], files: list[str], project: str | None, *, terminal: bool | None, **options: Any
) -> int:
    """Run a service if the application has one of that name, otherwise a manager; returns an exit code."""
    if ":" not in target and (files or _has_application()):
        from steersman.cli.up.service_run import run_service, service_names  # noqa: PLC0415 - see `_has_application`

        known = service_names(files, project)
        if known is None or target in known:
            return run_service(target, words, files, project, terminal=terminal)
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


def _has_application() -> bool:
    # Imported on demand: an operator in a Pod needs no application, and starts faster without its modules.
    from steersman.application import find_files  # noqa: PLC0415 - see above

    return bool(find_files(working_folder(), os.environ))


def _is_module(target: str) -> bool:
    """Whether a word names a module, or so little a name of one that its own error says more."""
    look_here_first()
    top = target.partition(".")[0]
    return not top.isidentifier() or find_spec(top) is not None
