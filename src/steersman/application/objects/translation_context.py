"""What the objects of one service need from the other services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from steersman.application.labels import DEPENDS_ON, ORDER, PROJECT, SERVICE
from steersman.application.model import Application, ServiceDefinition
from steersman.application.objects.names import replica_names
from steersman.application.objects.ports import ServedPort
from steersman.application.objects.remarks import Remarks
from steersman.objects import ObjectMeta
from steersman.workloads.kinds import Dependency

#: The network of containers without networks.
DEFAULT_NETWORK = "default"
_CONDITIONS = {
    "service_started": "Started",
    "service_healthy": "Healthy",
    "service_completed_successfully": "Completed",
}


class TranslationContext(msgspec.Struct, frozen=True, kw_only=True):
    """An application, and the ports of its services."""

    application: Application
    project: str
    ports: Mapping[str, tuple[ServedPort, ...]]
    remarks: Remarks

    def meta(
        self, definition: ServiceDefinition, name: str, annotations: Mapping[str, str] | None = None
    ) -> ObjectMeta:
        """The metadata of a workload of a service."""
        order = list(self.application.services).index(definition.name)
        depends = [
            {"service": each.service, "condition": each.condition}
            | ({} if each.required else {"optional": "true"})
            | ({"restart": "true"} if each.restart else {})
            for each in definition.depends_on
        ]
        own = {ORDER: str(order), DEPENDS_ON: msgspec.json.encode(depends).decode()}
        return ObjectMeta(name=name, labels=self.labels(definition), annotations={**own, **(annotations or {}), **own})

    def labels(self, definition: ServiceDefinition) -> dict[str, str]:
        """The labels of an object of a service."""
        return {PROJECT: self.project, SERVICE: definition.name}

    def networks(self, definition: ServiceDefinition) -> tuple[str, ...]:
        """The keys of the networks that a container joins."""
        if definition.networks is None:
            return (DEFAULT_NETWORK,)
        return tuple(each.name for each in definition.networks)

    def dependencies(self, definition: ServiceDefinition) -> list[Dependency]:
        """The objects that a service waits for."""
        found: list[Dependency] = []
        for each in definition.depends_on:
            other = self.application.services.get(each.service)
            if other is None:
                if each.required:
                    self.remarks.error(definition, f"depends_on: service {each.service} is not declared")
                else:
                    self.remarks.warn(
                        definition,
                        f"depends_on: service {each.service} is not declared; ignored, because it is not required",
                    )
                continue
            kind = "ExecutableReplicaSet" if other.is_process else "Container"
            found += [
                Dependency(
                    kind=kind,
                    name=name,
                    condition=_CONDITIONS[each.condition],  # type: ignore[arg-type]
                    **set_fields(optional=None if each.required else True),
                )
                for name in replica_names(other)
            ]
        return found

    def producers(self, definition: ServiceDefinition) -> dict[str, str]:
        """The annotation that names the Services of a service; empty if there is none."""
        entries = [each.producer for each in self.ports[definition.name]]
        return {"service-producer": msgspec.json.encode(entries).decode()} if entries else {}


def set_fields(**fields: Any) -> dict[str, Any]:
    """The fields that have a value; the others stay unset and are not sent."""
    return {name: value for name, value in fields.items() if value is not None and value not in ([], {})}
