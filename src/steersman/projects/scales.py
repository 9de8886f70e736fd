"""The number of replicas of each service: that of the file, or that of a command such as ``steersman scale web=3``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from steersman.application import Application, ApplicationError, Problem, object_warnings

#: The name that stands for all processes, as in ``all=2``.
ALL: Final = "all"


def scale_numbers(application: Application, scales: Mapping[str, int]) -> dict[str, int]:
    """The number of replicas of each service with these scales.

    `ALL` sets every process that has no scale of its own here, except those that other services wait for to complete.
    """
    awaited = {
        each.service
        for service in application.services.values()
        for each in service.depends_on
        if each.condition == "service_completed_successfully"
    }
    numbers: dict[str, int] = {}
    for name, each in application.services.items():
        is_several = each.is_process and name not in awaited
        numbers[name] = scales.get(name, scales.get(ALL, each.scale) if is_several else each.scale)
    return numbers


def with_scales(application: Application, scales: Mapping[str, int]) -> Application:
    """The application with these scales, and with the warnings about its objects. Raises `ApplicationError`."""
    numbers = scale_numbers(application, scales)
    services = {name: msgspec.structs.replace(each, scale=numbers[name]) for name, each in application.services.items()}
    found = msgspec.structs.replace(application, services=services)
    warnings = object_warnings(found, project=found.name)
    return msgspec.structs.replace(found, warnings=(*found.warnings, *warnings))


def outdated_scales(application: Application, scales: Mapping[str, int]) -> tuple[dict[str, int], list[Problem]]:
    """The services whose scale the application does not allow, with the scale of the file, and a warning for each.

    Raises `ApplicationError` with the errors that the application has even so.
    """
    outdated: dict[str, int] = {}
    warnings: list[Problem] = []
    errors = _errors(application, scales)
    for name, number in scale_numbers(application, scales).items():
        service = application.services[name]
        if not errors or number == service.scale:
            continue
        left = _errors(application, {**scales, **outdated, name: service.scale})
        if len(left) < len(errors):
            why = next(each for each in errors if each not in left).text.removeprefix(f"service {name}: ")
            text = f"service {name}: scale {number} from an earlier command no longer fits, so scale {service.scale}"
            warnings.append(Problem(f"{text} from the file replaces it: {why}", service.place))
            outdated[name], errors = service.scale, left
    if errors:
        raise ApplicationError(*errors)
    return outdated, warnings


def _errors(application: Application, scales: Mapping[str, int]) -> tuple[Problem, ...]:
    try:
        with_scales(application, scales)
    except ApplicationError as error:
        return error.problems
    return ()
