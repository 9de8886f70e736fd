"""Reads the definitions of services.

Guarantees
- A service with ``image`` or ``build`` is a container, every other one a process of this machine.
- All mistakes of all services are reported with their places; none is raised.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec.structs import replace

from steersman.application.model import SCALE_MAX, DependsOn, ServiceDefinition
from steersman.application.source.dependencies import read_depends_on
from steersman.application.source.environment import read_environment
from steersman.application.source.health import read_healthcheck
from steersman.application.source.mounts import read_grants, read_mounts, read_tmpfs
from steersman.application.source.ports import read_expose, read_ports
from steersman.application.source.resources import read_build, read_network_uses
from steersman.application.source.restarts import read_restart
from steersman.application.source.runtime_arguments import (
    ARGUMENT_KEYS,
    namespace_services,
    network_mode,
    runtime_arguments,
)
from steersman.application.source.watches import read_watches
from steersman.application.syntax.dotenv import parse_dotenv
from steersman.application.syntax.nodes import ListNode, MapNode, Node, is_null, mapping
from steersman.application.syntax.report import shown
from steersman.application.syntax.texts import read_text
from steersman.application.syntax.values import Values, absolute
from steersman.schemas.names import qualified_name

_NAME = re.compile(r"[a-zA-Z0-9._-]+")
#: Keys for processes and containers.
COMMON_KEYS = (
    "command",
    "depends_on",
    "deploy",
    "develop",
    "entrypoint",
    "env_file",
    "environment",
    "expose",
    "healthcheck",
    "image",
    "build",
    "labels",
    "label_file",
    "links",
    "ports",
    "profiles",
    "restart",
    "scale",
    "stdin_open",
    "stop_grace_period",
    "stop_signal",
    "tty",
    "user",
    "working_dir",
)
#: Keys that only steersman.yaml has.
OWN_KEYS = ("shell", "watch")
#: Keys for containers only.
CONTAINER_KEYS = (
    *ARGUMENT_KEYS,
    "configs",
    "container_name",
    "hostname",
    "network_mode",
    "networks",
    "platform",
    "pull_policy",
    "secrets",
    "tmpfs",
    "volumes",
)
#: Keys of Compose without an effect.
IGNORED_KEYS = (
    "attach",
    "blkio_config",
    "cpu_count",
    "cpu_percent",
    "credential_spec",
    "domainname",
    "external_links",
    "gpus",
    "isolation",
    "logging",
    "models",
    "post_start",
    "pre_stop",
    "pull_refresh_after",
    "use_api_socket",
    "volumes_from",
)
_DEPLOY_IGNORED = ("mode", "endpoint_mode", "labels", "rollback_config", "update_config", "placement")
_PULL_POLICIES = ("always", "never", "missing", "if_not_present", "build", "daily", "weekly", "refresh")
#: Keys of which a service needs one.
_RUN_KEYS = frozenset({"command", "entrypoint", "image", "build"})


class Declarations:
    """What the top level of the files declares."""

    def __init__(self, document: MapNode) -> None:
        self.volumes, self.networks, self.secrets, self.configs = (
            found if isinstance(found := document.get(name), MapNode) else None
            for name in ("volumes", "networks", "secrets", "configs")
        )


class ServiceReader:
    """Reads services."""

    def __init__(self, values: Values, declarations: Declarations, incomplete: Collection[str] = ()) -> None:
        self._values = values
        self._declarations = declarations
        #: Services of which keys are missing, because their ``extends`` has an error.
        self.incomplete = incomplete
        #: The place of each dependency, by the service and the one that it depends on. `read` fills it.
        self.dependency_nodes: dict[tuple[str, str], Node] = {}

    def read(self, name: str, key: Node, node: Node) -> ServiceDefinition | None:
        """The definition of a service; None if it cannot be read. Adds its dependencies to `dependency_nodes`."""
        values = self._values
        if not _NAME.fullmatch(name):
            values.report.error(key, f"a service name must consist of letters, digits, . _ and - (got {shown(name)})")
        service = values.table(mapping(node, {}) if is_null(node) else node, f"the service {name}")
        if service is None:
            return None
        is_incomplete = name in self.incomplete
        # The missing keys may make it a container: then its other keys have their effect.
        is_process = not is_incomplete and service.get("image") is None and service.get("build") is None
        suggested = self._check_keys(name, service, is_process=is_process)
        deploy = values.table(service.get("deploy"), "deploy")
        if deploy is not None:
            ignored = (*_DEPLOY_IGNORED, *(("resources",) if is_process else ()))
            values.check_keys(deploy, "deploy", ("replicas", "resources", "restart_policy"), ignored)
        if is_incomplete:
            return self._common(name, key, service, deploy)
        if not is_process:
            return self._container(name, key, service, deploy)
        found = self._process(name, key, service, deploy)
        # A misspelled key has its own error.
        is_unknown = values.report.is_lost(service.items.get("command") or service.items.get("entrypoint"))
        if not (found.command or is_unknown or service.get("provider") is not None or suggested & _RUN_KEYS):
            values.report.error(
                key, f"the service {name} needs a command: without image or build it is a process of this machine"
            )
        if found.command and not found.command[0]:
            lists = (each for each in map(service.get, ("entrypoint", "command")) if isinstance(each, ListNode))
            values.report.error(
                next(lists, key), f"the first word of the command of {name} is empty: it must be a program"
            )
        return found

    def _check_keys(self, name: str, service: MapNode, *, is_process: bool) -> set[str]:
        """Report unknown keys; returns the suggestions for them."""
        if (provider := service.keys.get("provider")) is not None and service.get("provider") is not None:
            self._values.report.error(provider, "provider is not supported: give the service a command or an image")
        compose = (*COMMON_KEYS, "provider", "extends")
        known = compose if is_process else (*compose, *CONTAINER_KEYS)
        ignored = (*CONTAINER_KEYS, *IGNORED_KEYS) if is_process else IGNORED_KEYS
        # A Compose file gets no suggestion that it could not follow.
        own = () if service.origin.is_compose else OWN_KEYS
        # By the file of the key, not of the service: a steersman.yaml may add keys to a service of a Compose file.
        for own_key in OWN_KEYS:
            node = service.keys.get(own_key)
            if node is not None and node.origin.is_compose:
                self._values.report.error(
                    node, f"{own_key} is a key of steersman.yaml, not of the Compose specification"
                )
        # The loop above has checked the own keys.
        checked = {key: value for key, value in service.items.items() if key not in OWN_KEYS}
        return self._values.check_keys(service.with_items(checked, {}), f"the service {name}", (*known, *own), ignored)

    def _process(self, name: str, key: Node, service: MapNode, deploy: MapNode | None) -> ServiceDefinition:
        values = self._values
        shell = values.boolean(service.get("shell"), "shell")
        command = values.words(service.get("command"), "command", shell=shell, for_process=True)
        entrypoint = values.words(service.get("entrypoint"), "entrypoint", for_process=True)
        folder_node = service.get("working_dir")
        folder = values.path(folder_node, "working_dir") or absolute(service, ".")
        common = self._common(name, key, service, deploy)
        self._check_annotations(service, common.labels)
        return replace(
            common,
            command=(*(entrypoint or ()), *(command or ())),
            healthcheck=read_healthcheck(values, service.get("healthcheck"))[0],
            working_folder=folder,
            watch=read_watches(values, service, working_folder=folder),
        )

    def _container(self, name: str, key: Node, service: MapNode, deploy: MapNode | None) -> ServiceDefinition:
        values, declared = self._values, self._declarations
        shell = values.boolean(service.get("shell"), "shell")
        healthcheck, is_disabled = read_healthcheck(values, service.get("healthcheck"))
        mode = network_mode(values, service)
        if mode is not None and service.get("networks") is not None:
            values.report.error(
                service.key("network_mode"), "a service cannot have both network_mode and networks: remove one of them"
            )
        uses = read_network_uses(values, service.get("networks"), declared.networks)
        common = self._common(name, key, service, deploy)
        container_name = values.text(service.get("container_name"), "container_name")
        if container_name is not None and common.scale > 1:
            values.report.error(
                service.key("container_name"), "container_name allows only one container: remove it or the scale"
            )
        tmpfs = read_tmpfs(values, service.get("tmpfs"))
        return replace(
            common,
            image=values.text(service.get("image"), "image"),
            build=read_build(values, service.get("build")),
            command=values.words(service.get("command"), "command", shell=shell),
            entrypoint=values.words(service.get("entrypoint"), "entrypoint"),
            healthcheck=healthcheck,
            volumes=(*read_mounts(values, service.get("volumes"), declared.volumes), *tmpfs),
            networks=() if mode is not None else uses,
            network_mode=mode,
            secrets=read_grants(values, service.get("secrets"), declared.secrets, "secrets"),
            configs=read_grants(values, service.get("configs"), declared.configs, "configs"),
            working_folder=values.text(service.get("working_dir"), "working_dir"),
            container_name=container_name,
            hostname=values.text(service.get("hostname"), "hostname"),
            pull_policy=self._pull_policy(service),
            platform=values.text(service.get("platform"), "platform"),
            watch=read_watches(values, service, working_folder=None),
            run_arguments=(
                *runtime_arguments(values, service, deploy),
                *(("--no-healthcheck",) if is_disabled else ()),
            ),
        )

    def _common(self, name: str, key: Node, service: MapNode, deploy: MapNode | None) -> ServiceDefinition:
        """The keys that mean the same for a process and a container."""
        values = self._values
        return ServiceDefinition(
            name=name,
            place=key.place,
            environment=read_environment(values, service),
            ports=read_ports(values, service.get("ports")),
            expose=read_expose(values, service.get("expose")),
            depends_on=self._dependencies(name, service),
            restart=read_restart(values, service.get("restart"), deploy),
            user=values.text(service.get("user"), "user"),
            profiles=values.texts(service.get("profiles"), "profiles"),
            stop_signal=values.text(service.get("stop_signal"), "stop_signal"),
            stop_grace_period=values.seconds(service.get("stop_grace_period"), "stop_grace_period"),
            scale=self._scale(service, deploy),
            labels=self._labels(service),
            tty=values.boolean(service.get("tty"), "tty"),
            stdin_open=values.boolean(service.get("stdin_open"), "stdin_open"),
        )

    def _dependencies(self, name: str, service: MapNode) -> tuple[DependsOn, ...]:
        found: dict[str, DependsOn] = {}
        for node, other in namespace_services(service):
            found[other] = DependsOn(service=other)
            self.dependency_nodes[name, other] = node
        for node, depends in read_depends_on(self._values, service.get("depends_on")):
            found[depends.service] = depends
            self.dependency_nodes[name, depends.service] = node
        return tuple(found.values())

    def _scale(self, service: MapNode, deploy: MapNode | None) -> int:
        scale = self._values.integer(service.get("scale"), "scale", most=SCALE_MAX)
        node = deploy.get("replicas") if deploy else None
        replicas = self._values.integer(node, "replicas", most=SCALE_MAX)
        if scale is not None and replicas is not None and scale != replicas and node is not None:
            self._values.report.error(node, f"replicas is {replicas}, but scale is {scale}: remove one of them")
        return next((number for number in (scale, replicas) if number is not None), 1)

    def _labels(self, service: MapNode) -> dict[str, str]:
        values = self._values
        found: dict[str, str] = {}
        node = service.get("label_file")
        for path in values.text_or_texts(node, "label_file"):
            if node is None:
                continue
            file = Path(absolute(node, path))
            text = read_text(file, values.report, named_at=node)
            if text is not None:
                # As in Compose, a variable in a file stands for a label: of an earlier line or file.
                found.update(parse_dotenv(text, file, found, values.report))
        found.update(values.given_pairs(service.get("labels"), "labels"))
        return found

    def _check_annotations(self, service: MapNode, labels: Mapping[str, str]) -> None:
        """Report labels that cannot be annotations of the object of a process; those of a container are free."""
        named = self._values.named(service.get("labels"), "labels")
        for name in labels:
            if problems := qualified_name(name.lower()):
                where = named.key(name) if named is not None and name in named.items else service.key("label_file")
                self._values.report.error(
                    where,
                    f"the label {shown(name)} cannot be an annotation of the object of a process: {problems[0].partition(' (')[0]}",
                )

    def _pull_policy(self, service: MapNode) -> str | None:
        node = service.get("pull_policy")
        text = self._values.text(node, "pull_policy")
        if text is None or re.fullmatch(r"every_\w+", text):
            return text
        return self._values.choice(node, "pull_policy", _PULL_POLICIES)
