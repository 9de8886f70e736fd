"""``steersman run`` for a service: one run of it in this terminal."""

from __future__ import annotations

from collections.abc import Sequence

from steersman.application import ApplicationError
from steersman.cli.failure import Failure
from steersman.cli.up.places import PlaceOptions
from steersman.cli.up.terminal_command import CommandOptions, run_once
from steersman.projects import ServiceSelection


def run_service(
    name: str, words: Sequence[str], files: Sequence[str], project: str | None, *, terminal: bool | None
) -> int:
    """Run a service, or words in its place; returns an exit code."""
    return run_once(CommandOptions(name=name, words=words, files=files, project=project, terminal=terminal))


def service_names(files: Sequence[str], project: str | None) -> list[str] | None:
    """The services of the application in this folder, or of these files; None if only its running session has them."""
    place = PlaceOptions(files=files, project=project)
    try:
        return list(place.source().load(ServiceSelection(profiles=("*",))).services)
    except ApplicationError as error:
        session = place.find()
        if session is not None and session.is_running:
            return None
        raise Failure(f"the application here has errors (to run a manager, write MODULE:NAME):\n{error}") from error
