"""The services of an application as text: the summary at the start, and the table of ``steersman ps``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from steersman.application import Application
from steersman.cli.up.outcomes import ended_words
from steersman.telemetry import painted, visible
from steersman.ui import Row

_CONDITIONS = {
    "service_started": "",
    "service_healthy": " to become healthy",
    "service_completed_successfully": " to complete",
}


def start_summary(application: Application) -> Iterator[str]:
    """The services of an application, and what each waits for."""
    read = [file for file, version in zip(application.files, application.file_versions, strict=True) if version]
    files = ", ".join(each.name for each in read[:3]) or str(application.folder)
    count = len(application.services)
    plural = "" if count == 1 else "s"
    yield f"{painted(application.name, '1')}: {count} service{plural} from {visible(files)}"
    width = max(map(len, application.services), default=0)
    for name, service in application.services.items():
        what = "process" if service.is_process else "container"
        if service.scale != 1:
            what = f"{what} x {service.scale}"
        needs = [f"{each.service}{_CONDITIONS[each.condition]}" for each in service.depends_on]
        waits = f"after {' and '.join(needs)}" if needs else ""
        yield f"  {name:<{width}}  {painted(f'{what:<11}', '2')} {waits}".rstrip()


def table(rows: Sequence[Row]) -> list[str]:
    """The table of ``ps``: a line for each service, without columns that are empty."""
    cells = [["NAME", "STATE", "HEALTH", "READY", "ADDRESS", "RESTARTS", "PID", "MESSAGE"]]
    cells += [
        [
            row.name,
            row.state,
            row.health,
            "" if row.state == "finished" else f"{row.ready}/{row.replicas}",
            ",".join(row.addresses),
            str(row.restarts or ""),
            str(row.pid or ""),
            visible(" ".join(_message(row).split())),
        ]
        for row in rows
    ]
    shown = [number for number in range(len(cells[0])) if any(line[number] for line in cells[1:]) or number < 2]
    widths = {number: max(len(line[number]) for line in cells) for number in shown}
    return ["  ".join(f"{line[number]:<{widths[number]}}" for number in shown).rstrip() for line in cells]


def _message(row: Row) -> str:
    if row.retried:
        return row.message
    if row.waiting_for:
        return f"waits for {row.waiting_for}"
    if row.state == "failed":
        return ended_words(row)
    return row.message


def indented(lines: Iterable[str]) -> str:
    """The lines of a block, indented."""
    return "\n".join(f"  {line}" for line in lines)
