"""Networks, volumes, secrets and configs of an application, and builds of images."""

from __future__ import annotations

from pathlib import Path

from steersman.application.model import Build, FileContent, Network, NetworkUse, Volume
from steersman.application.syntax.nodes import ListNode, MapNode, Node, ScalarNode, is_null, mapping
from steersman.application.syntax.report import shown
from steersman.application.syntax.values import Values, absolute, hint, resolved

_NETWORK_KEYS = ("name", "external", "internal")
_NETWORK_IGNORED = ("driver", "driver_opts", "ipam", "enable_ipv4", "enable_ipv6", "attachable", "labels")
_VOLUME_KEYS = ("name", "external")
_VOLUME_IGNORED = ("driver", "driver_opts", "labels")
#: Drivers that the container runtime uses by default.
_DEFAULT_DRIVERS = ("bridge", "default", "local")
_USE_IGNORED = (
    "interface_name",
    "ipv4_address",
    "ipv6_address",
    "link_local_ips",
    "mac_address",
    "driver_opts",
    "priority",
    "gw_priority",
)
_BUILD_KEYS = (
    "context",
    "dockerfile",
    "dockerfile_inline",
    "args",
    "target",
    "labels",
    "tags",
    "platforms",
    "secrets",
)
_BUILD_IGNORED = (
    "entitlements",
    "ssh",
    "cache_from",
    "cache_to",
    "no_cache",
    "additional_contexts",
    "network",
    "provenance",
    "sbom",
    "pull",
    "shm_size",
    "extra_hosts",
    "isolation",
    "privileged",
    "ulimits",
)
_REMOTE = ("https://", "http://", "git://", "ssh://", "git@", "github.com/", "docker-image://")


def read_networks(values: Values, node: Node | None, project: str) -> dict[str, Network]:
    """The networks of an application."""
    table = values.table(node, "networks")
    found: dict[str, Network] = {}
    for key, value in table.items.items() if table else ():
        options = _options(values, value, f"the network {key}", _NETWORK_KEYS, _NETWORK_IGNORED)
        name, external = _name(values, key, options, project)
        internal = values.boolean(options.get("internal"), "internal") if options else False
        found[key] = Network(name=name, external=external, internal=internal)
    return found


def read_volumes(values: Values, node: Node | None, project: str) -> dict[str, Volume]:
    """The volumes of an application."""
    table = values.table(node, "volumes")
    found: dict[str, Volume] = {}
    for key, value in table.items.items() if table else ():
        name, external = _name(
            values, key, _options(values, value, f"the volume {key}", _VOLUME_KEYS, _VOLUME_IGNORED), project
        )
        found[key] = Volume(name=name, external=external)
    return found


def read_contents(values: Values, node: Node | None, kind: str) -> dict[str, FileContent]:
    """The secrets or configs of an application."""
    table = values.table(node, kind)
    one = kind.removesuffix("s")
    own = ("content",) if kind == "configs" else ()
    found: dict[str, FileContent] = {}
    for key, value in table.items.items() if table else ():
        options = _options(
            values,
            value,
            f"the {one} {key}",
            ("file", "environment", "external", *own),
            ("name", "labels", "driver", "driver_opts", "template_driver"),
        )
        sources = [name for name in ("file", "environment", "content") if options and options.get(name) is not None]
        external = _is_external(values, options)
        if options is None or len(sources) + external != 1:
            choices = ", ".join(("file", "environment", *own, "external"))
            values.report.error(options or value, f"the {one} {key} needs exactly one of {choices}")
            continue
        file = values.path(options.get("file"), "file")
        found[key] = FileContent(
            file=Path(file) if file else None,
            content=_content(values, options, one, key),
            environment=values.text(options.get("environment"), "environment"),
            external=external,
        )
    return found


def _content(values: Values, options: MapNode, one: str, key: str) -> str | None:
    node = options.get("environment")
    variable = values.text(node, "environment")
    if variable is None or node is None:
        return values.text(options.get("content"), "content")
    value = node.origin.environment.get(variable)
    if value is None:
        values.report.warn(node, f"the variable {shown(variable)} of the {one} {key} is not set")
    return value


def _options(values: Values, node: Node, what: str, known: tuple[str, ...], ignored: tuple[str, ...]) -> MapNode | None:
    table = None if is_null(node) else values.table(node, what)
    if table is not None:
        driver = table.get("driver")
        is_default = isinstance(driver, ScalarNode) and driver.text in _DEFAULT_DRIVERS
        values.check_keys(table, what, (*known, "driver") if is_default else known, ignored)
    return table


def _is_external(values: Values, options: MapNode | None) -> bool:
    node = options.get("external") if options else None
    # The old form is `external: {name: ...}`.
    return isinstance(node, MapNode) or values.boolean(node, "external")


def _name(values: Values, key: str, options: MapNode | None, project: str) -> tuple[str, bool]:
    external = _is_external(values, options)
    node = options.get("external") if options else None
    old = values.text(node.get("name"), "name") if isinstance(node, MapNode) else None
    name = values.text(options.get("name"), "name") if options else None
    return name or old or (key if external else f"{project}_{key}"), external


def read_network_uses(values: Values, node: Node | None, declared: MapNode | None) -> tuple[NetworkUse, ...] | None:
    """The networks that a service joins; None: the default one."""
    if node is None:
        return None
    table = node
    if isinstance(node, ListNode):
        table = mapping(node, {item.text: item for item in node.items if isinstance(item, ScalarNode)})
    names = {*(declared.items if declared else ()), "default"}
    found: list[NetworkUse] = []
    checked = values.table(table, "networks")
    for name, value in checked.items.items() if checked else ():
        if name not in names and checked:
            values.report.error(
                checked.key(name), f"the network {shown(name)} is not declared under networks{hint(name, names)}"
            )
        aliases: tuple[str, ...] = ()
        if isinstance(value, MapNode):
            values.check_keys(value, f"the network {name}", ("aliases",), _USE_IGNORED)
            aliases = values.texts(value.get("aliases"), "aliases")
        found.append(NetworkUse(name=name, aliases=aliases))
    return tuple(found)


def read_build(values: Values, node: Node | None) -> Build | None:
    """How to build the image of a service."""
    if node is None:
        return None
    if isinstance(node, ScalarNode):
        node = mapping(node, {"context": node})
    table = values.table(node, "build")
    if table is None:
        return None
    values.check_keys(table, "build", _BUILD_KEYS, _BUILD_IGNORED)
    context_node = table.get("context")
    context = values.text(context_node, "context") or "."
    if not context.startswith(_REMOTE):
        context = absolute(context_node or table, context)
    dockerfile, inline = (values.text(table.get(name), name) for name in ("dockerfile", "dockerfile_inline"))
    if dockerfile is not None and inline is not None:
        values.report.error(
            table.key("dockerfile_inline"), "build has dockerfile and dockerfile_inline: keep only one of them"
        )
    platforms = values.texts(table.get("platforms"), "platforms")
    if len(platforms) > 1:
        values.report.ignore(table.key("platforms"), "platforms")
    return Build(
        context=context,
        dockerfile=dockerfile,
        dockerfile_inline=inline,
        args=resolved(values.pairs(table.get("args"), "args"), table.origin.environment),
        target=values.text(table.get("target"), "target"),
        labels=values.given_pairs(table.get("labels"), "labels"),
        tags=values.texts(table.get("tags"), "tags"),
        platform=platforms[0] if len(platforms) == 1 else None,
        secrets=_build_secrets(values, table.get("secrets")),
    )


def _build_secrets(values: Values, node: Node | None) -> tuple[str, ...]:
    found: list[str] = []
    for item in values.items(node, "secrets"):
        source = item.get("source") if isinstance(item, MapNode) else item
        if (text := values.text(source, "a secret of a build")) is not None:
            found.append(text)
    return tuple(found)
