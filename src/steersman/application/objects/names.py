"""Names of objects, in which fewer characters are allowed than in names of services."""

from __future__ import annotations

import re
from collections.abc import Iterable

from steersman.application.model import Application, ServiceDefinition
from steersman.application.objects.remarks import Remarks

_OTHER = re.compile(r"[^a-z0-9]+")
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def object_name(name: str) -> str:
    """The name of the object for a service, a network or a volume: ``My_DB`` becomes ``my-db``."""
    return _OTHER.sub("-", name.lower()).strip("-")


def replica_names(definition: ServiceDefinition) -> tuple[str, ...]:
    """The names of the ExecutableReplicaSet, or of the Containers, of a service.

    The first Container has the same name at every scale, so that it keeps running when the scale changes.
    """
    name = object_name(definition.name)
    if definition.is_process:
        return (name,)
    if not definition.scale:
        return ()
    return (name, *(f"{name}-{number}" for number in range(2, definition.scale + 1)))


def check_names(application: Application, project: str, remarks: Remarks) -> None:
    """Report names that are not valid for objects or labels."""
    if not _LABEL.fullmatch(project):
        remarks.error(
            None, f"the project name {project!r} must have at most 63 letters, digits, - and _: set another one with -p"
        )
    for definition in application.services.values():
        if not _LABEL.fullmatch(definition.name):
            remarks.error(
                definition,
                "the name must have at most 63 letters, digits, -, _ and ., and start and end with a letter or digit",
            )


def check_unique(kind: str, names: Iterable[tuple[str, ServiceDefinition]], remarks: Remarks) -> None:
    """Report services whose objects of the same kind have the same name."""
    seen: dict[str, ServiceDefinition] = {}
    for name, definition in names:
        other = seen.setdefault(name, definition)
        if other is not definition:
            remarks.error(
                definition,
                f"its {kind} {name} has the same name as that of service {other.name} ({other.place}): rename one service",
            )
