"""Decides from the rows of a board whether everything has started, what has failed, and when to end. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from steersman.application import ServiceDefinition
from steersman.ui import Row, failed_dependency

#: Restarts after which a command that waits for a start counts the service as failed.
_RESTARTS_MAX = 3

_CANNOT_START = "the application cannot start; stopping all services"

Services = Mapping[str, ServiceDefinition]


class AbortRules(msgspec.Struct, frozen=True, kw_only=True):
    """When the exit of one service ends the run."""

    on_exit: bool = False
    on_failure: bool = False
    #: The service whose exit code is that of the command; empty: the service that ended first.
    code_from: str = ""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run ends, and the exit code of the command."""

    code: int
    why: str = ""
    #: The services that have failed, if they are the reason: a sentence for each.
    problems: tuple[str, ...] = ()
    #: Whether the code is that of the command, whatever service ``--exit-code-from`` names: the application cannot start.
    is_final: bool = False


def will_restart(row: Row, services: Services) -> bool:
    """Whether the restart policy starts a service again that has ended."""
    service = services.get(row.name)
    if service is None or (row.exit_code is None and row.state == "failed"):
        return False
    policy, maximum = service.restart.policy, service.restart.maximum
    if policy == "on-failure":
        return row.exit_code != 0 and (maximum is None or row.restarts < maximum)
    return policy in {"always", "unless-stopped"}


def has_ended(row: Row, services: Services) -> bool:
    """Whether a service has ended for good."""
    return row.state in {"finished", "failed"} and not row.retried and not will_restart(row, services)


def hopeless(rows: Iterable[Row], services: Services) -> dict[str, str]:
    """The services whose dependency can no longer be met, each with the service that it waits for."""
    unmet: dict[str, str] = {}
    by_name = {row.name: row for row in rows}
    changed = True
    while changed:
        changed = False
        for row in by_name.values():
            if row.state == "waiting" and row.name not in unmet:
                for name, condition in row.needs:
                    if name in by_name and _is_unmeetable(by_name[name], condition, services, unmet):
                        unmet[row.name] = name
                        changed = True
                        break
    return unmet


def blocking(depends_on: Sequence[tuple[str, str]], rows: Sequence[Row], services: Services) -> str:
    """Why a service with these dependencies cannot start; empty if it can, now or later."""
    by_name = {row.name: row for row in rows}
    if reason := failed_dependency(depends_on, by_name):
        # Other services of a running session may have failed too, which is not why this one waits.
        needed = _needed(depends_on, by_name)
        return "; ".join(failures([row for row in rows if row.name in needed], services)) or reason
    lost = hopeless(rows, services)
    for name, condition in depends_on:
        if name in by_name and by_name[name].state == "stopped" and by_name[name].replicas:
            return f"{name} is stopped, and it waits for {name}: start it with steersman start {name}"
        if name in by_name and _is_unmeetable(by_name[name], condition, services, lost):
            return _lost_words(by_name[name], lost)
    return ""


def _needed(depends_on: Sequence[tuple[str, str]], by_name: Mapping[str, Row]) -> set[str]:
    """The services on which others depend, directly or through others."""
    found: set[str] = set()
    waiting = [name for name, _ in depends_on]
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in found:
            found.add(name)
            waiting += [each for each, _ in by_name[name].needs]
    return found


def _lost_words(needed: Row, lost: Mapping[str, str]) -> str:
    """Why the dependents of a service cannot start."""
    words = "cannot start" if needed.name in lost else ended_words(needed)
    return f"{needed.name} {words}, and it waits for {needed.name}"


def _is_unmeetable(needed: Row, condition: str, services: Services, lost: Mapping[str, str]) -> bool:
    if needed.name in lost:
        return True
    if not has_ended(needed, services):
        return False
    match condition:
        case "completed":
            return needed.exit_code != 0
        case "healthy":
            return True
        case _:
            return needed.exit_code is None


def failures(rows: Sequence[Row], services: Services) -> list[str]:
    """Why the application cannot start: a sentence for each service.

    As in Compose, an unhealthy service, whose retries are used up, has failed to start.
    """
    sentences: list[str] = []
    for row in rows:
        if row.state == "failed" and not will_restart(row, services):
            sentences.append(f"{row.name} {ended_words(row)}")
        elif row.health == "unhealthy":
            sentences.append(f"{row.name} is unhealthy" + (f": {row.message}" if row.message else ""))
        elif row.restarts >= _RESTARTS_MAX and row.summary == "restarting":
            sentences.append(f"{row.name} keeps restarting: {row.message or ended_words(row)}")
    lost, by_name = hopeless(rows, services), {row.name: row for row in rows}
    return sentences + [f"{name} cannot start: {_lost_words(by_name[needed], lost)}" for name, needed in lost.items()]


def listed(sentences: Sequence[str]) -> str:
    """Sentences about services as text: one as it is, several below each other."""
    if len(sentences) == 1:
        return sentences[0]
    return "\n".join([f"{len(sentences)} services have failed:", *(f"  {sentence}" for sentence in sentences)])


def is_decided(rows: Sequence[Row], services: Services) -> bool:
    """Whether each service has started or has failed."""
    lost = hopeless(rows, services)
    return all(has_started(row) or failures([row], services) for row in rows if row.name not in lost)


def has_started(row: Row) -> bool:
    """Whether a service is running, and healthy if it has probes, or has finished."""
    if row.state == "running":
        return row.health in {"", "healthy"} and row.ready >= row.replicas
    return row.state in {"finished", "stopped"}


def ending(rows: Sequence[Row], services: Services, rules: AbortRules) -> Ending | None:
    """Why the run ends now; None while it continues."""
    for row in _exits(rows, services):
        failed = row.exit_code != 0
        if rules.on_exit or (rules.on_failure and failed):
            code = row.exit_code if row.exit_code is not None else 1
            return Ending(code=code, why=f"{row.name} has ended; stopping all services")
    if rules != AbortRules() and any(row.retried for row in rows):
        # In CI, waiting for a port or for the health of a dependency would never end.
        return Ending(code=1, why=_CANNOT_START, problems=tuple(failures(rows, services)), is_final=True)
    # A service that is scaled to 0 has nothing that could end.
    scaled = [row for row in rows if row.replicas]
    lost = hopeless(scaled, services)
    ended = [row for row in scaled if has_ended(row, services)]
    if not scaled or len(ended) + len(lost) < len(scaled):
        return None
    if any(name in services and services[name].watch for name in (row.name for row in ended)):
        # An edit of a watched file restarts it.
        return None
    problems = [row.name for row in ended if row.exit_code is None and row.state == "failed"]
    if problems or lost:
        return Ending(code=1, why=_CANNOT_START, problems=tuple(failures(rows, services)))
    return Ending(code=0, why="all services have ended")


def _exits(rows: Sequence[Row], services: Services) -> Iterator[Row]:
    """The services that have ended, except finished tasks that others wait for, such as a migration."""
    work = {name for row in rows for name, condition in row.depends_on if condition == "completed"}
    for row in rows:
        if has_ended(row, services) and not (row.name in work and row.exit_code == 0):
            yield row


def ended_words(row: Row) -> str:
    """How a service has ended: ``failed with exit code 3``."""
    if row.retried:
        return f"failed: {row.message}"
    if row.exit_code is None:
        return f"failed to start: {row.message}" if row.message else "failed to start"
    if row.exit_code == 0:
        return f"finished: {row.message}" if row.message else "finished"
    reason = f": {row.message}" if " is in use by " in row.message else ""
    return f"failed with exit code {row.exit_code}{reason}"


def change_words(before: Row | None, row: Row) -> str:
    """The words for a change; empty if it needs no line."""
    seen = before is not None and (before.summary, before.health, before.restarts)
    if seen == (row.summary, row.health, row.restarts):
        # The service runs, but clients may not reach it, because another program has its port. A failing probe is no news.
        has_news = (
            row.summary == "running"
            and row.health in {"", "healthy"}
            and before is not None
            and row.message != before.message
        )
        return f"has a problem: {row.message}" if has_news and row.message else ""
    if row.health == "unhealthy" and not row.message and (before is None or before.health != "healthy"):
        # Probes fail until a service is ready: that is expected.
        return ""
    where = f" at {', '.join(row.addresses)}" if row.addresses else ""
    reason = f" with exit code {row.exit_code}" if row.exit_code else ""
    message = f": {row.message}" if row.message else ""
    running = {
        "": f"runs{where}{message}",
        "healthy": f"is healthy{where}{message}",
        "unhealthy": f"is unhealthy{message}",
    }
    words = {
        # The summary at the start already says it.
        "waiting": f"waits for {row.waiting_for}" if row.waiting_for and before is not None else "",
        "starting": "",
        "stopping": "",
        "running": running.get(row.health, ""),
        "finished": ended_words(row),
        "failed": ended_words(row),
        # Without an exit code it is still running: a watched file has changed.
        "restarting": f"ended{reason}; {row.state}" if row.exit_code is not None else "",
    }
    return words.get(row.summary, f"is {row.state}{message}")
