"""From an application to its objects."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from itertools import zip_longest

from steersman.application.labels import NO_ADDRESS, PROJECT
from steersman.application.model import Application, ApplicationError, Network, Place, Problem, ServiceDefinition
from steersman.application.objects.containers import containers
from steersman.application.objects.names import check_names, check_unique, object_name, replica_names
from steersman.application.objects.ports import ServedPort, check_ports, served_ports
from steersman.application.objects.processes import replica_set
from steersman.application.objects.remarks import Remarks
from steersman.application.objects.translation_context import DEFAULT_NETWORK, TranslationContext, set_fields
from steersman.objects import Object, ObjectMeta, Unstructured, tree_of
from steersman.workloads.kinds import (
    GENERATED_NAME,
    PORT_SETTING,
    ContainerNetwork,
    ContainerNetworkSpec,
    ContainerVolume,
    ContainerVolumeSpec,
    NetworkAdditions,
    Service,
)


def application_objects(application: Application, *, project: str) -> list[Object | Unstructured]:
    """The objects of an application, in an order in which they can be created. Raises `ApplicationError`.

    The same application gives equal objects. A service affects its own objects, and those that contain its address.
    """
    return _translated(application, project)[0]


def object_warnings(application: Application, *, project: str) -> tuple[Problem, ...]:
    """Warnings about declarations without an effect on the objects. Raises `ApplicationError`."""
    return tuple(_translated(application, project)[1].warnings)


def _translated(application: Application, project: str) -> tuple[list[Object | Unstructured], Remarks]:
    remarks = Remarks()
    services = application.services.values()
    ports = {each.name: served_ports(each, remarks) for each in services}
    translation = TranslationContext(application=application, project=project, ports=ports, remarks=remarks)
    check_names(application, project, remarks)
    check_ports(application, ports, remarks)
    check_unique("Service", ((each.service, owner) for owner in services for each in ports[owner.name]), remarks)
    for kind, is_process in (("ExecutableReplicaSet", True), ("Container", False)):
        chosen = [each for each in services if each.is_process is is_process]
        check_unique(kind, ((name, each) for each in chosen for name in replica_names(each)), remarks)
    objects: list[Object | Unstructured] = [_labeled(each, project) for each in application.objects]
    objects += [*_networks(translation), *_volumes(translation)]
    objects += [service for each in services for service in _services(translation, each)]
    for each in services:
        objects += [replica_set(translation, each)] if each.is_process else containers(translation, each)
    _check_objects(application, objects, remarks)
    if remarks.errors:
        raise ApplicationError(*remarks.errors)
    return objects, remarks


def _check_objects(application: Application, objects: Sequence[Object | Unstructured], remarks: Remarks) -> None:
    """Report objects of the files that another object would overwrite: one that they declare, or that of a service."""
    own = {(tree["kind"], tree["metadata"]["name"]) for tree in map(tree_of, objects[len(application.objects) :])}
    seen: dict[tuple[str, str], Place | None] = {}
    # An application that a program has made may have no places.
    for tree, place in zip_longest(application.objects, application.object_places):
        named = tree["kind"], tree["metadata"]["name"]
        if named in own:
            remarks.errors.append(Problem(f"a service has {' '.join(named)} already: rename this object", place))
        elif named in seen:
            remarks.errors.append(Problem(f"{' '.join(named)} is already declared at {seen[named]}", place))
        seen[named] = place


def _labeled(tree: dict[str, object], project: str) -> Unstructured:
    obj = Unstructured(deepcopy(tree))
    metadata = obj.metadata
    metadata["labels"] = {**(metadata.get("labels") or {}), PROJECT: project}
    return obj


def _services(translation: TranslationContext, definition: ServiceDefinition) -> list[Service]:
    labels = translation.labels(definition)
    return [
        Service(
            metadata=ObjectMeta(
                name=each.service,
                labels=dict(labels),
                annotations={
                    PORT_SETTING: _port_setting(definition, each),
                    **({} if each.is_shown else {NO_ADDRESS: "true"}),
                },
            ),
            spec=each.spec,
        )
        for each in translation.ports[definition.name]
    ]


def _port_setting(definition: ServiceDefinition, served: ServedPort) -> str:
    """Where the user sets a port, for messages."""
    file = definition.place.file.name
    if file.startswith("Procfile"):
        return "PORT in .env or in the shell"
    key = "ports" if served.port in definition.ports else "expose"
    return f"{key} of service {definition.name} in {file}"


def _networks(translation: TranslationContext) -> list[ContainerNetwork]:
    """The networks that containers join. Their names in the runtime start with the project's name."""
    used = [
        key
        for each in translation.application.services.values()
        if not each.is_process
        for key in translation.networks(each)
    ]
    found: list[ContainerNetwork] = []
    for key in dict.fromkeys(used):
        network = translation.application.networks.get(key)
        if network is None:
            network = Network(name=f"{translation.project}_{DEFAULT_NETWORK}")
        fields = set_fields(
            mode="existing" if network.external else None,
            steersman=NetworkAdditions(internal=True) if network.internal and not network.external else None,
        )
        spec = ContainerNetworkSpec(network_name=network.name, **fields)
        metadata = _meta(translation, object_name(key))
        if network.name == f"{translation.project}_{key}" and not network.external:
            metadata.annotations = {GENERATED_NAME: "true"}
        found.append(ContainerNetwork(metadata=metadata, spec=spec))
    return found


def _volumes(translation: TranslationContext) -> list[ContainerVolume]:
    """The named volumes that containers use. They remain after ``steersman down``."""
    mounts = [
        mount for each in translation.application.services.values() if not each.is_process for mount in each.volumes
    ]
    used = dict.fromkeys(each.source for each in mounts if each.type == "volume" and each.source)
    known = translation.application.volumes
    return [
        ContainerVolume(metadata=_meta(translation, object_name(key)), spec=ContainerVolumeSpec(name=known[key].name))
        for key in used
        if key in known and not known[key].external
    ]


def _meta(translation: TranslationContext, name: str) -> ObjectMeta:
    return ObjectMeta(name=name, labels={PROJECT: translation.project})
