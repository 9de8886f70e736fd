"""Turns the spec of a Container into a request for the runtime. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from steersman.objects import encode, parse_duration
from steersman.transport import local_address
from steersman.workloads.containers import (
    Attachment,
    ContainerFacts,
    ContainerLaunch,
    ImageBuild,
    Mount,
    PublishedPort,
)
from steersman.workloads.containers.creator import LIFECYCLE_KEY, NAME, UID
from steersman.workloads.environment import effective_environment
from steersman.workloads.kinds import Container, ContainerAdditions, ContainerAttach, ContainerSpec
from steersman.workloads.launches import STOP_TIMEOUT, EnvFiles
from steersman.workloads.serving import producers
from steersman.workloads.templates import Addresses, expand

#: The fields of a spec that a container is created from; a change of any of them needs another container.
_LAUNCHED_WITH = (
    *("image", "build", "volumeMounts", "ports", "restartPolicy", "command", "args", "runArgs", "labels"),
    *("createFiles", "imageLayers", "pemCertificates", "networks"),
)


class Prepared(msgspec.Struct, frozen=True):
    """The variables and arguments of a container, with templates expanded."""

    env: Mapping[str, str]
    args: tuple[str, ...]


def mode_of(spec: ContainerSpec) -> str:
    """The mode of a container: the flag ``persistent`` wins."""
    return "persistent" if spec.persistent else spec.mode


def reuses(spec: ContainerSpec) -> bool:
    """Whether the container may exist already."""
    return mode_of(spec) != "session"


def creates(spec: ContainerSpec) -> bool:
    """Whether a container is created if there is none."""
    return mode_of(spec) in {"session", "persistent"}


def removes(spec: ContainerSpec) -> bool:
    """Whether the container is removed with its object."""
    return mode_of(spec) in {"session", "cleanup"}


def name_of(container: Container) -> str:
    """The name in the runtime."""
    return container.spec.container_name or f"{container.key.name[:200]}-{container.uid[:8]}"


def grace_of(container: Container) -> float:
    """Seconds between the stop signal and SIGKILL."""
    timeout = (container.spec.steersman or ContainerAdditions()).stop_timeout
    return parse_duration(timeout).total_seconds() if timeout else STOP_TIMEOUT


def attach_of(spec: ContainerSpec) -> ContainerAttach | None:
    """The program that starts the container; None if the control plane does."""
    return spec.steersman.attach if spec.steersman is not None else None


def unsupported(spec: ContainerSpec) -> str:
    """What of a spec is not supported, as a sentence; empty if all is."""
    if spec.image_layers:
        return "spec.imageLayers is not supported: build an image with these layers, and use it."
    if spec.pem_certificates is not None:
        return "spec.pemCertificates is not supported: write the certificates with spec.createFiles."
    if spec.terminal is not None:
        return "spec.terminal is not supported: run an interactive container with the runtime's own command."
    if spec.monitor_pid is not None:
        return "spec.monitorPid is not supported for a Container: pass --monitor to the control plane."
    if spec.steersman is not None and spec.steersman.watch is not None:
        return "spec.steersman.watch is not supported for a Container: mount the folder, and watch it inside."
    return ""


def prepare(spec: ContainerSpec, files: EnvFiles, addresses: Addresses) -> Prepared:
    """The variables and arguments. Raises `NotYet` and `TemplateError`."""
    given = [files[path] for path in spec.env_files or ()]
    env = effective_environment({}, given, spec.env or [], lambda text: expand(text, addresses))
    return Prepared(env, tuple(expand(arg, addresses) for arg in spec.args or ()))


def container_lifecycle_key(spec: ContainerSpec, files: EnvFiles) -> str:
    """The explicit key of a spec, or a hash of everything that the container is created from."""
    if spec.lifecycle_key:
        return spec.lifecycle_key
    tree = msgspec.json.decode(encode(spec))
    launched: dict[str, object] = {name: tree[name] for name in _LAUNCHED_WITH if tree.get(name) is not None}
    launched["env"] = sorted((variable.name, variable.value) for variable in spec.env or ())
    launched["envFiles"] = [files[path] for path in spec.env_files or ()]
    return hashlib.sha256(msgspec.json.encode(launched, order="sorted")).hexdigest()[:32]


def image_of(container: Container) -> str:
    """The image to run: that of the spec, or the tag that a build gets."""
    return container.spec.image or f"localhost/steersman/{container.key.name}:dev"


def launch_of(
    container: Container,
    prepared: Prepared,
    *,
    lifecycle_key: str,
    networks: Sequence[Attachment] | None,
    hosts: Mapping[str, str],
    ports: Mapping[int, int],
) -> ContainerLaunch:
    """What to create. ``ports`` has host ports for those that the spec leaves open, by the port of the container."""
    spec = container.spec
    attach = attach_of(spec)
    labels = {label.key: label.value for label in spec.labels or ()}
    labels |= {NAME: container.key.name, UID: container.uid, LIFECYCLE_KEY: lifecycle_key}
    return ContainerLaunch(
        name=name_of(container),
        image=image_of(container),
        command=spec.command,
        args=prepared.args,
        env=prepared.env,
        labels=labels,
        mounts=[
            Mount(type=mount.type, source=mount.source, target=mount.target, read_only=mount.read_only)
            for mount in spec.volume_mounts or ()
        ],
        ports=[
            PublishedPort(
                container_port=port.container_port,
                host_port=port.host_port or ports.get(port.container_port, 0),
                host_ip=port.host_ip or "127.0.0.1",
                protocol="udp" if port.protocol == "UDP" else "tcp",
            )
            for port in spec.ports or ()
        ],
        networks=networks,
        hosts=hosts,
        restart_policy=spec.restart_policy,
        stop_signal=(spec.steersman or ContainerAdditions()).stop_signal or "",
        stop_timeout=grace_of(container),
        bound=mode_of(spec) == "session",
        run_args=spec.run_args or (),
        attach="" if attach is None else "terminal" if attach.terminal else "streams",
    )


def build_of(container: Container) -> ImageBuild:
    """How to build the image of a Container. Values of secrets go through the environment of the command."""
    build = container.spec.build
    assert build is not None
    secrets: list[tuple[str, str]] = []
    env: dict[str, str] = {}
    for secret in build.secrets or ():
        if secret.type == "file":
            secrets.append((secret.id, f"src={secret.source or ''}"))
        else:
            variable = secret.source or secret.id
            secrets.append((secret.id, f"env={variable}"))
            if secret.value:
                env[variable] = secret.value
    return ImageBuild(
        context=build.context,
        tags=(*(build.tags or ()), image_of(container)),
        dockerfile=build.dockerfile or "",
        args={arg.name: arg.value for arg in build.args or ()},
        secrets=secrets,
        env=env,
        stage=build.stage or "",
        labels={label.key: label.value for label in build.labels or ()},
        platform=build.platform or "",
        pull=container.spec.pull_policy == "always",
    )


def served_at(container: Container, facts: ContainerFacts) -> dict[str, tuple[str, int]]:
    """Where the host reaches each service that a container serves: a published port, or its address in a network."""
    published = [(port, at) for (port, protocol), at in sorted(facts.ports.items()) if protocol == "tcp"]
    addresses = [network.address for network in facts.networks.values() if network.address]
    served: dict[str, tuple[str, int]] = {}
    for producer in producers(container):
        at = next((at for port, at in published if producer.port in {None, port}), None)
        if at is not None:
            served[producer.service_name] = (local_address(at[0]), at[1])
        elif producer.port is not None and addresses:
            served[producer.service_name] = (addresses[0], producer.port)
    return served
