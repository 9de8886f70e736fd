"""``steersman logs``: prints the logs of the services of an application, or of one object of a developer control plane.

It prints services if an application runs in this folder and no option or name selects an object.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from steersman.application import ApplicationError
from steersman.cli.failure import Misuse
from steersman.cli.log_copy import LogCopy
from steersman.cli.up.places import PlaceOptions, run_command
from steersman.cli.up.service_logs import print_service_logs
from steersman.client import Client
from steersman.projects import ServiceSelection, SessionRecord
from steersman.workloads import GROUP, VERSION

#: How many lines of each replica are printed by default.
_TAIL = 1000


class LogsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command line."""

    names: Sequence[str] = ()
    follow: bool = False
    source: str | None = None
    timestamps: bool = False
    line_numbers: bool = False
    tail: int | None = None
    files: Sequence[str] = ()
    project: str | None = None
    kubeconfig: str | None = None
    context: str | None = None


def print_logs(options: LogsOptions) -> int:
    """Print the logs of services or of a workload; returns an exit code."""
    asks_for_object = bool(options.kubeconfig or options.context or options.source or options.line_numbers) or any(
        "/" in name for name in options.names
    )
    place = PlaceOptions(files=options.files, project=options.project)
    record = place.find()
    if record is not None and record.is_running:
        if not asks_for_object:
            return run_command(lambda: _print_services(record, options))
    elif options.project or not options.names or (not asks_for_object and _is_service(place, options.names)):
        place.running()
    if len(options.names) != 1:
        raise Misuse("name one object: steersman logs [KIND/]NAME")
    kubeconfig = options.kubeconfig
    if kubeconfig is None and options.context is None and record is not None and record.is_running:
        kubeconfig = record.kubeconfig
    return run_command(lambda: _print_object(options, kubeconfig))


def _is_service(place: PlaceOptions, names: Sequence[str]) -> bool:
    """Whether the application in this folder has one of these services, as far as its files can be read."""
    try:
        services = place.source().load(ServiceSelection(profiles=("*",))).services
    except ApplicationError:
        return False
    return any(name in services for name in names)


async def _print_services(record: SessionRecord, options: LogsOptions) -> int:
    tail = options.tail if options.tail is not None else _TAIL
    return await print_service_logs(
        record, options.names, tail=tail, follow=options.follow, timestamps=options.timestamps
    )


async def _print_object(options: LogsOptions, kubeconfig: str | None) -> int:
    kind, _, name = options.names[0].rpartition("/")
    kind = (kind or "executables").lower()
    plural = kind if kind.endswith("s") else f"{kind}s"
    query = [f"source={options.source or 'stdout'}"]
    query += [each for each in ("follow", "timestamps", "line_numbers") if getattr(options, each)]
    if options.tail is not None:
        query.append(f"tail={options.tail}")
    path = f"/apis/{GROUP}/{VERSION}/{plural}/{name}/log?{'&'.join(query)}"
    async with (
        Client.connect(kubeconfig=Path(kubeconfig) if kubeconfig else None, context=options.context) as client,
        client.stream(path) as pieces,
    ):
        # Also after an error: the last line of a broken log is often the one that matters.
        with closing(LogCopy()) as copy:
            async for piece in pieces:
                copy.write(piece)
    return 0
