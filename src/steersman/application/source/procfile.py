"""Reads Procfiles: each line ``NAME: COMMAND`` is a process."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from steersman.application.model import DependsOn, Place, Port, ServiceDefinition
from steersman.application.syntax.report import Report, shown
from steersman.application.syntax.texts import read_text

#: The process that prepares a release, for example by a migration. The others start after it, as on Heroku.
_RELEASE: Final = "release"
_LINE = re.compile(r"(?P<name>[A-Za-z0-9_-]+):\s*(?P<command>\S.*)")
_FIRST_PORT = 5000
_STEP = 100
_LINES_MAX = 500
_PORT_MAX = 65535


def read_procfile(
    file: Path,
    dotenv: Mapping[str, str],
    environment: Mapping[str, str],
    report: Report,
) -> dict[str, ServiceDefinition]:
    """The processes of a Procfile. Their environment includes ``.env``, which overrides that of the shell."""
    text = read_text(file, report)
    services: dict[str, ServiceDefinition] = {}
    port = _first_port(dotenv, environment, report)
    for number, line in enumerate((text or "").splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        place = Place(file, number, 1)
        found = _LINE.fullmatch(stripped)
        if found is None:
            report.warn(place, f"ignored a line that is not NAME: COMMAND: {shown(stripped)}")
            continue
        name = found["name"]
        if name in services:
            report.error(place, f"the process {name} is already declared on line {services[name].place.line}")
            continue
        if len(services) >= _LINES_MAX or port > _PORT_MAX:
            report.error(place, f"a Procfile has at most {_LINES_MAX} processes with ports up to {_PORT_MAX}")
            break
        # By convention only the process web listens; its port becomes PORT.
        listens, has_port = name == "web", name != _RELEASE
        variables = {key: value for key, value in dotenv.items() if key != "PORT"}
        services[name] = ServiceDefinition(
            name=name,
            place=place,
            command=("/bin/sh", "-c", found["command"]),
            environment={**variables, "PORT": str(port)} if has_port and not listens else variables,
            ports=(Port(published=port, target=port),) if listens else (),
            own_port=port if has_port and not listens else None,
            working_folder=str(file.parent),
        )
        port += _STEP if has_port else 0
    if text is not None and not services and not report.has_errors:
        report.error(file, "the Procfile declares no process: add a line NAME: COMMAND")
    if _RELEASE not in services:
        return services
    after_release = (DependsOn(service=_RELEASE, condition="service_completed_successfully"),)
    return {
        name: service if name == _RELEASE else msgspec.structs.replace(service, depends_on=after_release)
        for name, service in services.items()
    }


def _first_port(dotenv: Mapping[str, str], environment: Mapping[str, str], report: Report) -> int:
    text = dotenv.get("PORT") or environment.get("PORT") or str(_FIRST_PORT)
    if re.fullmatch(r"[0-9]{1,5}", text) and 0 < int(text) <= _PORT_MAX:
        return int(text)
    report.error(None, f"PORT in .env or in the shell must be a number from 1 to {_PORT_MAX}, not {shown(text)}")
    return _FIRST_PORT
