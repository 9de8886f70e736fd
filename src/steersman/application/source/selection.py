"""Selects services of an application, with their dependencies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from steersman.application.model import Application, ApplicationError, Problem, ServiceDefinition
from steersman.application.syntax.values import hint


def select_services(
    application: Application, names: Sequence[str] = (), profiles: Sequence[str] = (), *, beside: Sequence[str] = ()
) -> Application:
    """The application with the named services, or with all that are enabled, and with their dependencies.

    A service without profiles is enabled; one with profiles is enabled if one of them is, or if it is named. ``*``
    enables all profiles. Without ``profiles``, COMPOSE_PROFILES applies. ``beside`` has the services that run beside all
    that are enabled; one that is not declared has no effect. Raises ApplicationError if a name is
    unknown, or if a service needs one that is not enabled.
    """
    services = application.services
    unknown = [name for name in names if name not in services]
    if unknown:
        known = f"; the services are: {', '.join(services)}"
        raise ApplicationError(*(Problem(f"no service {name}{hint(name, services) or known}") for name in unknown))
    active = {*(profiles or application.profiles)}
    for name in names:
        active.update(services[name].profiles)
    wanted = list(names)
    if not names:
        wanted = [name for name, service in services.items() if _is_enabled(service, active) or name in beside]
        for name in beside:
            active.update(services[name].profiles if name in services else ())
    chosen = _with_dependencies(application, wanted, active)
    kept = {
        name: msgspec.structs.replace(
            service, depends_on=tuple(each for each in service.depends_on if each.service in chosen)
        )
        for name, service in services.items()
        if name in chosen
    }
    return msgspec.structs.replace(application, services=kept)


def _is_enabled(service: ServiceDefinition, active: Iterable[str]) -> bool:
    return not service.profiles or "*" in active or not {*service.profiles}.isdisjoint(active)


def _with_dependencies(application: Application, wanted: Iterable[str], active: set[str]) -> set[str]:
    chosen: set[str] = set()
    waiting = list(wanted)
    problems: list[Problem] = []
    while waiting:
        name = waiting.pop()
        if name in chosen:
            continue
        chosen.add(name)
        service = application.services[name]
        for depends in service.depends_on:
            other = application.services.get(depends.service)
            if other is not None and _is_enabled(other, active):
                waiting.append(depends.service)
            elif depends.required:
                needed = f" (profiles: {', '.join(other.profiles)})" if other else ""
                problems.append(
                    Problem(f"{name} depends on {depends.service}, which is not enabled{needed}", service.place)
                )
    if problems:
        raise ApplicationError(*problems)
    return chosen
