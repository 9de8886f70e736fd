"""Loads the application of a folder."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Mapping, Sequence
from operator import ne
from pathlib import Path

import msgspec

from steersman.application.model import Application, ApplicationError, FileVersion, Network, Problem, ServiceDefinition
from steersman.application.source.discovery import (
    check_owners,
    find_files,
    is_procfile,
    override_files,
    preferred_files,
)
from steersman.application.source.environment import read_dotenv_files
from steersman.application.source.files import Files, declared_name
from steersman.application.source.kubernetes import objects_of_files
from steersman.application.source.procfile import read_procfile
from steersman.application.source.resources import read_contents, read_networks, read_volumes
from steersman.application.source.services import Declarations, ServiceReader
from steersman.application.syntax.nodes import MapNode, ScalarNode
from steersman.application.syntax.report import Report, shown
from steersman.application.syntax.texts import version_of
from steersman.application.syntax.values import Values, hint

_PROJECT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_TOP_KEYS = ("name", "include", "services", "networks", "volumes", "secrets", "configs")
_SERVICES_MAX = 1000
#: The longest project name: it is a label. A longer name of a folder is shortened.
_NAME_MAX = 63


def load_application(
    folder: Path,
    *,
    files: Sequence[Path] = (),
    env_files: Sequence[Path] = (),
    name: str | None = None,
    environment: Mapping[str, str],
) -> Application:
    """The application of a folder, with all its services, whatever their profiles.

    Without ``files``, it searches the folder and its parents for steersman.yaml, then Compose's names, then a Procfile.
    Files of a parent folder must belong to this user or to root, see `discovery`. ``env_files`` replace ``.env``.
    ``environment`` is that of the shell. Raises ApplicationError with all problems.
    """
    folder = folder.absolute()
    # A file refers to a variable as text. A process inherits its bytes all the same.
    environment = {_text(name): _text(value) for name, value in environment.items()}
    report = Report()
    found = [folder / file for file in files]
    if not found:
        found = find_files(folder, environment, env_files)
        beside_found = [each for each in {file.parent / ".env" for file in found} if each.exists()]
        check_owners([*found, *beside_found], folder, environment)
    if not found:
        raise ApplicationError(
            Problem(
                f"no steersman.yaml, compose.yaml or Procfile in {folder} or its parent folders; name a file with -f"
            )
        )
    base = found[0].parent
    dotenv_files = _dotenv_files(
        base, [] if files or folder == base else [folder], [folder / file for file in env_files]
    )
    dotenv = read_dotenv_files(dotenv_files, environment, report)
    variables = {**dotenv, **environment}
    given = name or variables.get("COMPOSE_PROJECT_NAME")
    if is_procfile(found):
        project = _project_name(given, base, report)
        services = read_procfile(found[0], dotenv, environment, report)
        application = Application(name=project, folder=base, services=services)
    else:
        project = _project_name(given or declared_name(found, base, variables), base, report)
        application = _from_yaml(found, base, project, {**variables, "COMPOSE_PROJECT_NAME": project}, report)
    if not files:
        missing = (*override_files(found[0]), *preferred_files(found[0]))
        report.files.update((each, ()) for each in missing if not each.exists())
    report.raise_errors()
    return msgspec.structs.replace(
        application,
        files=tuple(report.files),
        file_versions=tuple(report.files.values()),
        main_file=found[0],
        profiles=tuple(part for part in re.split(r"[,\s]+", variables.get("COMPOSE_PROFILES", "")) if part),
        warnings=report.warnings(),
    )


def is_edited(application: Application) -> bool:
    """Whether a file of the application was edited, replaced or removed after it was read."""
    return any(map(ne, map(_version, application.files), application.file_versions))


def _version(file: Path) -> FileVersion:
    try:
        return version_of(file.stat())
    except OSError:
        return ()


def _text(value: str) -> str:
    """A value in which a replacement character stands for each byte that is not UTF-8, as in Docker."""
    return value if value.isascii() else os.fsencode(value).decode(errors="replace")


def _dotenv_files(base: Path, nearer: Sequence[Path], env_files: Sequence[Path]) -> list[tuple[Path, bool]]:
    if env_files:
        return [(file, True) for file in env_files]
    return [(each / ".env", False) for each in (base, *nearer)]


def _project_name(given: str | ScalarNode | None, base: Path, report: Report) -> str:
    """The name that the user has given, in a file or elsewhere, or else one from the folder."""
    text = given.text if isinstance(given, ScalarNode) else given
    if text:
        in_file = given if isinstance(given, ScalarNode) else None
        advice = "change it here, or set another one with -p" if in_file else "set another one with -p"
        if not _PROJECT_NAME.fullmatch(text):
            report.error(
                in_file,
                f"the project name {shown(text)} must consist of lowercase letters, digits, _ and -,"
                f" and start with a letter or digit: {advice}",
            )
        return text
    name = re.sub(r"[^a-z0-9_-]", "", base.name.lower()).strip("_-") or "default"
    if len(name) <= _NAME_MAX:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: _NAME_MAX - 9].rstrip('_-')}-{digest}"


def _from_yaml(
    files: Sequence[Path], base: Path, project: str, environment: Mapping[str, str], report: Report
) -> Application:
    reader = Files(report)
    document = reader.read(files, base, environment)
    if document is None or (report.has_errors and not document.items):
        return Application(name=project, folder=base, services={})
    values = Values(report)
    own = () if document.origin.is_compose else ("collector", "objects")
    values.check_keys(document, "the file", (*_TOP_KEYS, *own), ("version", "models"))
    objects = [*reader.objects, *(objects_of_files(document.get("objects"), values) if own else ())]
    services, service_reader = _services(document, values, reader.incomplete)
    _check_dependencies(services, service_reader, report)
    if not services and not objects and not report.has_errors:
        report.error(document, "the file declares no services")
    collector_node = document.get("collector") if own else None
    collector = values.text(collector_node, "collector")
    if collector is not None and collector_node is not None and collector not in services:
        report.error(collector_node, f"collector: no service {shown(collector)}{hint(collector, services)}")
    networks = read_networks(values, document.get("networks"), project)
    if any(_uses_default_network(service) for service in services.values()):
        networks.setdefault("default", Network(name=f"{project}_default"))
    return Application(
        name=project,
        folder=base,
        services=services,
        volumes=read_volumes(values, document.get("volumes"), project),
        networks=networks,
        secrets=read_contents(values, document.get("secrets"), "secrets"),
        configs=read_contents(values, document.get("configs"), "configs"),
        collector=collector,
        objects=tuple(tree for tree, _ in objects),
        object_places=tuple(place for _, place in objects),
    )


def _services(
    document: MapNode, values: Values, incomplete: Collection[str]
) -> tuple[dict[str, ServiceDefinition], ServiceReader]:
    reader = ServiceReader(values, Declarations(document), incomplete)
    table = values.table(document.get("services"), "services")
    found: dict[str, ServiceDefinition] = {}
    for name, node in table.items.items() if table else ():
        if name.startswith("x-") or table is None:
            continue
        if len(found) >= _SERVICES_MAX:
            values.report.error(table.key(name), f"an application has at most {_SERVICES_MAX} services")
            break
        service = reader.read(name, table.key(name), node)
        if service is not None:
            found[name] = service
    return found, reader


def _uses_default_network(service: ServiceDefinition) -> bool:
    if service.is_process:
        return False
    return service.networks is None or any(use.name == "default" for use in service.networks)


def _check_dependencies(services: dict[str, ServiceDefinition], reader: ServiceReader, report: Report) -> None:
    for name, service in [*services.items()]:
        kept = list(service.depends_on)
        for depends in service.depends_on:
            node, other = reader.dependency_nodes[name, depends.service], services.get(depends.service)
            if other is None:
                text = f"{name} depends on {shown(depends.service)}, which is not declared"
                if depends.required:
                    report.error(node, f"{text}{hint(depends.service, services)}")
                else:
                    report.warn(node, text)
                    kept.remove(depends)
            elif (
                depends.condition == "service_healthy"
                and other.healthcheck is None
                and other.name not in reader.incomplete
            ):
                text = f"{name} waits until {other.name} is healthy, but {other.name} has no healthcheck"
                if other.is_process:
                    report.error(node, text)
                else:
                    report.warn(node, f"{text} in the files, and Steersman does not read that of the image")
        services[name] = msgspec.structs.replace(service, depends_on=tuple(kept))
    _check_cycles(services, reader, report)


def _check_cycles(services: Mapping[str, ServiceDefinition], reader: ServiceReader, report: Report) -> None:
    """Report cycles: what remains after removing, again and again, all services without dependencies."""
    waiting = {
        name: {each.service for each in service.depends_on if each.service in services}
        for name, service in services.items()
    }
    while ready := [name for name, others in waiting.items() if not others & waiting.keys()]:
        for name in ready:
            del waiting[name]
    seen: set[str] = set()
    for start in waiting:
        path = [start]
        while path[-1] not in seen:
            seen.add(path[-1])
            path.append(min(waiting[path[-1]] & waiting.keys()))
        if path[-1] in path[:-1]:
            cycle = path[path.index(path[-1]) :]
            report.error(
                reader.dependency_nodes[cycle[0], cycle[1]], f"services wait for each other: {' -> '.join(cycle)}"
            )
