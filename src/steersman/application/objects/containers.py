"""Turns a service with an image or a build into Containers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from steersman.application.model import FileContent, FileGrant, ServiceDefinition
from steersman.application.objects.names import object_name, replica_names
from steersman.application.objects.ports import declared_ports
from steersman.application.objects.probes import duration, probes
from steersman.application.objects.translation_context import DEFAULT_NETWORK, TranslationContext, set_fields
from steersman.application.objects.variables import variables
from steersman.workloads.kinds import (
    GENERATED_NAME,
    Container,
    ContainerAdditions,
    ContainerBuildContext,
    ContainerBuildSecret,
    ContainerLabel,
    ContainerPort,
    ContainerSpec,
    CreateFileSystem,
    EnvVar,
    FileSystemEntry,
    NetworkConnection,
    VolumeMount,
)

_PULL_POLICIES = {
    "always": "always",
    "never": "never",
    "missing": "missing",
    "if_not_present": "missing",
    "build": "missing",
}
#: The default mode of a secret or a config, as in Compose.
_FILE_MODE = 0o444


def containers(translation: TranslationContext, definition: ServiceDefinition) -> list[Container]:
    """The Containers of a service, one for each replica."""
    annotations = translation.producers(definition)
    if not definition.container_name:
        annotations[GENERATED_NAME] = "true"
    return [
        Container(
            metadata=translation.meta(definition, name, annotations), spec=_spec(translation, definition, number, name)
        )
        for number, name in enumerate(replica_names(definition), 1)
    ]


def _spec(translation: TranslationContext, definition: ServiceDefinition, number: int, name: str) -> ContainerSpec:
    _check(translation, definition)
    entrypoint, command = definition.entrypoint, definition.command
    additions = set_fields(
        depends_on=translation.dependencies(definition),
        health_probes=probes(translation, definition),
        stop_timeout=duration(definition.stop_grace_period) if definition.stop_grace_period is not None else None,
        stop_signal=definition.stop_signal,
    )
    fields = set_fields(
        image=definition.image or f"localhost/{translation.project}-{object_name(definition.name)}:latest",
        build=_build(translation, definition),
        # As Compose names them.
        container_name=definition.container_name or f"{translation.project}-{definition.name}-{number}",
        volume_mounts=_mounts(translation, definition),
        ports=_ports(definition),
        env=variables(translation, definition),
        restart_policy=definition.restart.policy if definition.restart.policy != "no" else None,
        command=(entrypoint[0] if entrypoint else "") if entrypoint is not None else None,
        args=[*(entrypoint or ())[1:], *(command or ())],
        run_args=list(_run_arguments(definition)),
        labels=[ContainerLabel(key=key, value=value) for key, value in definition.labels.items()],
        pull_policy=_pull_policy(translation, definition),
        create_files=_files(translation, definition),
        steersman=ContainerAdditions(**additions) if additions else None,
    )
    return ContainerSpec(networks=_networks(translation, definition, name), **fields)


def _check(translation: TranslationContext, definition: ServiceDefinition) -> None:
    if definition.container_name and definition.scale > 1:
        translation.remarks.error(
            definition, f"container_name allows only one container, not {definition.scale}: remove it, or use scale 1"
        )
    if definition.command == () and definition.entrypoint is None:
        translation.remarks.warn(definition, "command: an empty command has no effect; the image's command runs")
    if definition.network_mode and definition.ports:
        translation.remarks.warn(definition, f"ports have no effect with network_mode: {definition.network_mode}")
    networks = [translation.application.networks.get(key) for key in translation.networks(definition)]
    if definition.ports and networks and all(each is not None and each.internal for each in networks):
        translation.remarks.warn(
            definition, "no client can reach the ports, because all networks of the service are internal"
        )
    for each in definition.watch:
        if each.action == "sync+exec":
            translation.remarks.warn(
                definition, "watch: sync+exec copies files but runs no command; use sync+restart instead"
            )


def _run_arguments(definition: ServiceDefinition) -> Iterator[str]:
    """Arguments of the container runtime for keys without a field in the kind."""
    options = {
        "--network": definition.network_mode if definition.network_mode != "none" else None,
        "--workdir": definition.working_folder,
        "--user": definition.user,
        "--hostname": definition.hostname,
        "--platform": definition.platform,
    }
    for option, value in options.items():
        if value:
            yield from (option, value)
    if definition.tty:
        yield "--tty"
    if definition.stdin_open:
        yield "--interactive"
    if definition.restart.maximum is not None:
        # The field takes no maximum; the last --restart wins.
        yield from ("--restart", f"{definition.restart.policy}:{definition.restart.maximum}")
    for port in definition.expose:
        yield from ("--expose", str(port))
    for mount in definition.volumes:
        if mount.type == "tmpfs":
            yield from ("--tmpfs", f"{mount.target}:ro" if mount.read_only else mount.target)
    yield from definition.run_arguments


def _pull_policy(translation: TranslationContext, definition: ServiceDefinition) -> str | None:
    given = definition.pull_policy
    if given is None:
        return None
    if given not in _PULL_POLICIES:
        translation.remarks.warn(
            definition, f"pull_policy: {given} is not supported; Steersman pulls an image only if it is missing"
        )
    policy = _PULL_POLICIES.get(given, "missing")
    return policy if policy != "missing" else None


def _ports(definition: ServiceDefinition) -> list[ContainerPort]:
    """The ports to publish. Clients of a TCP port use the proxy, so the runtime may choose the port on this machine."""
    found: dict[tuple[object, ...], ContainerPort] = {}
    for each in declared_ports(definition):
        if each.target is None:
            continue
        if each.protocol == "tcp":
            found["tcp", each.target] = ContainerPort(container_port=each.target)
        else:
            fields = set_fields(host_port=each.published, host_ip=each.host_address)
            found["udp", each.target, each.published] = ContainerPort(
                container_port=each.target, protocol="UDP", **fields
            )
    return list(found.values())


def _networks(translation: TranslationContext, definition: ServiceDefinition, own: str) -> list[NetworkConnection]:
    """The networks to join. The service's name is an alias of every Container that does not have it itself."""
    names = [each for each in (definition.name, object_name(definition.name)) if each != own]
    uses = {each.name: each.aliases for each in definition.networks} if definition.networks is not None else None
    found: list[NetworkConnection] = []
    for key, aliases in (uses if uses is not None else {DEFAULT_NETWORK: ()}).items():
        if key != DEFAULT_NETWORK and key not in translation.application.networks:
            translation.remarks.error(
                definition, f"networks: network {key} is not declared: add it to the top-level networks"
            )
        every = list(dict.fromkeys((*names, *aliases)))
        found.append(NetworkConnection(name=object_name(key), **set_fields(aliases=every)))
    return found


def _mounts(translation: TranslationContext, definition: ServiceDefinition) -> list[VolumeMount]:
    found: list[VolumeMount] = []
    for mount in definition.volumes:
        if mount.type == "tmpfs":
            continue
        source = mount.source
        if mount.type == "bind":
            source = str(translation.application.folder / source)
        elif source:
            volume = translation.application.volumes.get(source)
            if volume is None:
                translation.remarks.error(
                    definition, f"volumes: volume {source} is not declared: add it to the top-level volumes"
                )
                continue
            source = volume.name
        fields = set_fields(source=source or None, read_only=mount.read_only or None)
        found.append(VolumeMount(type=mount.type, target=mount.target, **fields))
    return found


def _build(translation: TranslationContext, definition: ServiceDefinition) -> ContainerBuildContext | None:
    build = definition.build
    if build is None:
        return None
    if build.dockerfile_inline is not None:
        translation.remarks.error(
            definition, "build: dockerfile_inline is not supported: put it into a file, and set dockerfile"
        )
    is_remote = "://" in build.context or build.context.startswith("git@")
    context = build.context if is_remote else str(translation.application.folder / build.context)
    # The runtimes resolve it relative to their own working directory.
    dockerfile = build.dockerfile if build.dockerfile is None or is_remote else str(Path(context) / build.dockerfile)
    return ContainerBuildContext(
        context=context,
        **set_fields(
            dockerfile=dockerfile,
            tags=list(build.tags),
            args=[EnvVar(name=name, value=value) for name, value in build.args.items()],
            secrets=[secret for key in build.secrets for secret in _build_secret(translation, definition, key)],
            stage=build.target,
            labels=[ContainerLabel(key=key, value=value) for key, value in build.labels.items()],
            platform=build.platform or definition.platform,
        ),
    )


def _build_secret(
    translation: TranslationContext, definition: ServiceDefinition, key: str
) -> list[ContainerBuildSecret]:
    content = translation.application.secrets.get(key)
    if content is None or content.external:
        translation.remarks.error(definition, _no_content("build.secrets", "secret", key, content))
        return []
    if content.file is not None:
        return [ContainerBuildSecret(id=key, source=str(translation.application.folder / content.file))]
    fields = set_fields(source=content.environment, value=content.content)
    return [ContainerBuildSecret(id=key, type="env", **fields)]


def _files(translation: TranslationContext, definition: ServiceDefinition) -> list[CreateFileSystem]:
    """The files of secrets and configs, which are written before the container starts."""
    granted = [("secrets", each, translation.application.secrets.get(each.source)) for each in definition.secrets]
    granted += [("configs", each, translation.application.configs.get(each.source)) for each in definition.configs]
    entries = [
        entry for key, grant, content in granted for entry in _file(translation, definition, key, grant, content)
    ]
    return [CreateFileSystem(destination="/", entries=entries)] if entries else []


def _file(
    translation: TranslationContext,
    definition: ServiceDefinition,
    key: str,
    grant: FileGrant,
    content: FileContent | None,
) -> list[FileSystemEntry]:
    if content is None or content.external:
        translation.remarks.error(definition, _no_content(key, key.removesuffix("s"), grant.source, content))
        return []
    for owner in (grant.user, grant.group):
        if owner is not None and not owner.isdigit():
            translation.remarks.error(definition, f"{key}: uid and gid of {grant.source} must be numbers (got {owner})")
            return []
    fields = set_fields(
        owner=int(grant.user) if grant.user is not None else None,
        group=int(grant.group) if grant.group is not None else None,
        source=str(translation.application.folder / content.file) if content.file is not None else None,
        contents=content.content,
    )
    if content.file is None and content.content is None:
        translation.remarks.error(
            definition,
            f"{key}: {grant.source} needs the variable {content.environment}: set it in the environment or in .env",
        )
    mode = _FILE_MODE if grant.mode is None else grant.mode
    return [FileSystemEntry(name=grant.target.lstrip("/"), mode=mode, **fields)]


def _no_content(key: str, what: str, name: str, content: FileContent | None) -> str:
    if content is None:
        return f"{key}: {what} {name} is not declared: add it to the top-level {what}s"
    return f"{key}: external {what}s are not supported: give {name} a file, an environment or a content"
