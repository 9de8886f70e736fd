"""The files of an application, and the selection of its services."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from steersman.application import (
    Application,
    ApplicationError,
    Problem,
    ServiceDefinition,
    load_application,
    object_warnings,
    select_services,
)

#: The name that stands for all processes, as in ``all=2``.
ALL: Final = "all"


class ServiceSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The services that a command names, and how many of each."""

    #: Empty: all services without a profile, and those of `profiles`.
    names: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    scales: Mapping[str, int] = {}

    def joined(self, other: ServiceSelection) -> ServiceSelection:
        """The services of both; the scales of ``other`` win."""
        names = (*self.names, *other.names) if self.names and other.names else ()
        return ServiceSelection(
            names=tuple(dict.fromkeys(names)),
            profiles=tuple(dict.fromkeys((*self.profiles, *other.profiles))),
            scales={**self.scales, **other.scales},
        )


class ApplicationSource(msgspec.Struct, frozen=True, kw_only=True):
    """The files of an application, which are read at the start and after each edit."""

    folder: Path
    environment: Mapping[str, str]
    files: tuple[Path, ...] = ()
    env_files: tuple[Path, ...] = ()
    name: str | None = None

    def load(self, selection: ServiceSelection, *, is_edit: bool = False) -> Application:
        """Read the files, and set the scales of the selection. Raises `ApplicationError` with all problems.

        An edit may remove or rename a service whose scale an earlier command has set.
        """
        return with_scales(self.read(selection, is_edit=is_edit), selection.scales)

    def read(self, selection: ServiceSelection, *, is_edit: bool = False) -> Application:
        """Read the files. Returns the selected services with the scales of the files."""
        whole = load_application(
            self.folder, files=self.files, env_files=self.env_files, name=self.name, environment=self.environment
        )
        unknown = selection.scales.keys() - whole.services.keys() - {ALL}
        if unknown and not is_edit:
            known = ", ".join(whole.services)
            raise ApplicationError(Problem(f"no service {', '.join(sorted(unknown))}; the services are: {known}"))
        return select_services(whole, selection.names, selection.profiles)


def with_scales(application: Application, scales: Mapping[str, int]) -> Application:
    """The application with these scales, and with the warnings about its objects.

    `ALL` sets every process that has no scale of its own here, except those that other services wait for to complete.
    """
    awaited = {
        each.service
        for service in application.services.values()
        for each in service.depends_on
        if each.condition == "service_completed_successfully"
    }
    scaled: dict[str, ServiceDefinition] = {}
    for name, each in application.services.items():
        is_several = each.is_process and name not in awaited
        scale = scales.get(name, scales.get(ALL, each.scale) if is_several else each.scale)
        scaled[name] = msgspec.structs.replace(each, scale=scale)
    found = msgspec.structs.replace(application, services=scaled)
    warnings = object_warnings(found, project=found.name)
    return msgspec.structs.replace(found, warnings=(*found.warnings, *warnings))
