"""Turns a service without an image into an ExecutableReplicaSet."""

from __future__ import annotations

from steersman.application.model import ServiceDefinition, WatchRule
from steersman.application.objects.names import object_name
from steersman.application.objects.probes import duration, probes
from steersman.application.objects.translation_context import TranslationContext, set_fields
from steersman.application.objects.variables import variables
from steersman.workloads.kinds import (
    ExecutableReplicaSet,
    ExecutableReplicaSetSpec,
    ExecutableSpec,
    ExecutableTemplate,
    FileWatch,
    ProcessAdditions,
    ReplicaSetAdditions,
    RestartPolicy,
    TerminalSpec,
)

_POLICIES = {"no": "Never", "always": "Always", "unless-stopped": "Always", "on-failure": "OnFailure"}
#: The keys that need a container, and what a process does instead.
_CONTAINER_KEYS = {
    "volumes": "a process uses the file system of this machine",
    "networks": "a process uses the network of this machine",
    "secrets": "a process reads files directly; pass the path in a variable",
    "configs": "a process reads files directly; pass the path in a variable",
    "network_mode": "a process uses the network of this machine",
    "container_name": "",
    "hostname": "",
    "pull_policy": "",
    "platform": "",
    "run_arguments": "",
}


def replica_set(translation: TranslationContext, definition: ServiceDefinition) -> ExecutableReplicaSet:
    """The ExecutableReplicaSet of a process."""
    name = object_name(definition.name)
    _check(translation, definition)
    words = [*(definition.entrypoint or ()), *(definition.command or ())] or [name]
    additions = set_fields(
        depends_on=translation.dependencies(definition),
        health_probes=probes(translation, definition),
        stop_timeout=duration(definition.stop_grace_period) if definition.stop_grace_period is not None else None,
        stop_signal=definition.stop_signal,
        user=definition.user or None,
    )
    spec = ExecutableSpec(
        executable_path=words[0],
        **set_fields(
            args=words[1:],
            working_directory=definition.working_folder or str(translation.application.folder),
            env=variables(translation, definition),
            terminal=TerminalSpec() if definition.tty else None,
            steersman=ProcessAdditions(**additions) if additions else None,
        ),
    )
    template = ExecutableTemplate(
        **set_fields(labels=translation.labels(definition), annotations=translation.producers(definition), spec=spec)
    )
    set_additions = set_fields(restart=_restart(definition), watch=_watch(translation, definition))
    return ExecutableReplicaSet(
        metadata=translation.meta(definition, name, definition.labels),
        spec=ExecutableReplicaSetSpec(
            replicas=definition.scale,
            template=template,
            **set_fields(steersman=ReplicaSetAdditions(**set_additions) if set_additions else None),
        ),
    )


def _check(translation: TranslationContext, definition: ServiceDefinition) -> None:
    if not definition.command and not definition.entrypoint:
        translation.remarks.error(definition, "a service without image and build is a process and needs a command")
    for key, instead in _CONTAINER_KEYS.items():
        if getattr(definition, key):
            reason = f" ({instead})" if instead else ""
            translation.remarks.error(definition, f"{key} needs a container{reason}: add an image or remove the key")
    if definition.stdin_open and not definition.tty:
        translation.remarks.warn(definition, "stdin_open has no effect without tty: the process reads no input")


def _restart(definition: ServiceDefinition) -> RestartPolicy | None:
    restart = definition.restart
    if restart.policy == "no":
        return None
    fields = set_fields(policy=_POLICIES[restart.policy], maximum_restarts=restart.maximum)
    return RestartPolicy(**fields)


def _watch(translation: TranslationContext, definition: ServiceDefinition) -> FileWatch | None:
    if not definition.watch:
        return None
    for each in definition.watch:
        if each.action != "restart":
            translation.remarks.error(
                definition, f"watch: the action {each.action} needs a container: use restart for a process"
            )
    return file_watch(definition.watch, cascade=restarts_dependents(translation, definition))


def file_watch(watches: tuple[WatchRule, ...], *, cascade: bool) -> FileWatch:
    """Merge several declarations into one: a workload restarts as a whole."""
    return FileWatch(
        paths=[path for each in watches for path in each.paths],
        **set_fields(
            ignore=list(dict.fromkeys(glob for each in watches for glob in each.ignore)),
            debounce=duration(max(each.debounce for each in watches)),
            cascade=True if cascade else None,
        ),
    )


def restarts_dependents(translation: TranslationContext, definition: ServiceDefinition) -> bool:
    """Whether the services that depend on this one restart with it."""
    asked = {
        other.name: each.restart
        for other in translation.application.services.values()
        for each in other.depends_on
        if each.service == definition.name
    }
    if any(asked.values()) and not all(asked.values()):
        silent = ", ".join(name for name, restart in asked.items() if not restart)
        translation.remarks.warn(
            definition,
            f"watch: some of its dependents have restart: true, so all of them restart with it, including {silent}",
        )
    return any(asked.values())
