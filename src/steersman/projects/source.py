"""The files of an application, and the selection of its services."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from steersman.application import (
    Application,
    ApplicationError,
    Problem,
    is_edited,
    load_application,
    select_services,
)
from steersman.projects.scales import ALL, with_scales
from steersman.projects.session_record import SessionRecord


class ServiceSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The services that a command names, and how many of each."""

    #: Empty: all services without a profile, and those of `profiles`.
    names: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    scales: Mapping[str, int] = {}
    #: Services that run beside those without a name, because another command named them.
    beside: tuple[str, ...] = ()

    @classmethod
    def recorded(cls, record: SessionRecord) -> ServiceSelection:
        """The services and scales of a session."""
        return cls(names=record.names, profiles=record.profiles, scales=record.scales, beside=record.beside)

    def joined(self, other: ServiceSelection) -> ServiceSelection:
        """The services of both; the scales of ``other`` win."""
        named = (*self.names, *other.names)
        names = named if self.names and other.names else ()
        # One of them means all services: of the other, those stay that no profile enables.
        beside = (*self.beside, *other.beside, *(() if names else named))
        return ServiceSelection(
            names=tuple(dict.fromkeys(names)),
            profiles=tuple(dict.fromkeys((*self.profiles, *other.profiles))),
            scales={**self.scales, **other.scales},
            beside=tuple(dict.fromkeys(beside)),
        )

    def started(self, whole: Application) -> Application:
        """The services with which a session starts, as `declared`. Raises `ApplicationError` if no service is enabled."""
        found = self.declared(whole)
        if not found.services and not found.objects:
            profiles = ", ".join(
                dict.fromkeys(each for service in whole.services.values() for each in service.profiles)
            )
            text = f"no service is enabled: enable one of the profiles {profiles} with --profile, or name a service"
            raise ApplicationError(Problem(text))
        return found

    def declared(self, whole: Application, *, is_edit: bool = False) -> Application:
        """The selected services of an application, with the scales of its files.

        An edit may remove or rename a service whose scale an earlier command has set.
        """
        unknown = self.scales.keys() - whole.services.keys() - {ALL}
        if unknown and not is_edit:
            known = ", ".join(whole.services)
            raise ApplicationError(Problem(f"no service {', '.join(sorted(unknown))}; the services are: {known}"))
        return select_services(whole, self.names, self.profiles, beside=self.beside)

    def scaled(self, whole: Application) -> Application:
        """The selected services of an application, with these scales. Raises `ApplicationError` with all problems."""
        return with_scales(self.declared(whole), self.scales)


class ApplicationSource(msgspec.Struct, frozen=True, kw_only=True):
    """The files of an application, which are read at the start and after each edit."""

    folder: Path
    environment: Mapping[str, str]
    files: tuple[Path, ...] = ()
    env_files: tuple[Path, ...] = ()
    name: str | None = None

    def load(self, selection: ServiceSelection) -> Application:
        """Read the files, and select services with their scales. Raises `ApplicationError` with all problems."""
        return selection.scaled(self.read())

    def read(self) -> Application:
        """Read the files. Returns all services, whatever their profiles. Raises `ApplicationError` with all problems."""
        return load_application(
            self.folder, files=self.files, env_files=self.env_files, name=self.name, environment=self.environment
        )

    def renewed(self, application: Application) -> Application:
        """The application of an earlier `read`, or of a new one if a file was edited since."""
        return self.read() if is_edited(application) else application
