"""The mounts of a container: volumes, file systems in memory, secrets and configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from steersman.application.model import FileGrant, Mount
from steersman.application.syntax.nodes import MapNode, Node, ScalarNode, described
from steersman.application.syntax.report import shown
from steersman.application.syntax.values import Values, absolute, hint

_LONG = ("type", "source", "target", "read_only", "bind", "volume", "tmpfs", "image")
_GRANT = ("source", "target", "uid", "gid", "mode")
_BIND = ("propagation", "recursive", "selinux")
_SHORT_PARTS_MAX = 3


def read_mounts(values: Values, node: Node | None, declared: MapNode | None) -> list[Mount]:
    """The volumes of a service; a named one must be declared."""
    found: dict[str, Mount] = {}
    for item in values.items(node, "volumes"):
        mount: Mount | None = None
        if isinstance(item, ScalarNode):
            mount = _short(values, item)
        elif isinstance(item, MapNode):
            mount = _long(values, item)
        else:
            values.report.error(item, f"a volume must be a string or a mapping, not {described(item)}")
        if mount is None:
            continue
        names = declared.items if declared else {}
        if mount.type == "volume" and mount.source and mount.source not in names:
            values.report.error(
                item,
                f"the volume {shown(mount.source)} is not declared under volumes{hint(mount.source, names)}"
                " (the path of a folder starts with ./ or /)",
            )
        _warn_of_earlier(values, item, mount.target, found)
        found[mount.target] = mount
    return [*found.values()]


def _warn_of_earlier(values: Values, item: Node, target: str, found: Mapping[str, object]) -> None:
    """Warn that an earlier item of the list has the same target, which the runtime would reject."""
    if target in found:
        values.report.warn(
            item, f"an earlier item has the target {shown(target)} too: this one replaces it, as in Compose"
        )


def _short(values: Values, node: ScalarNode) -> Mount | None:
    parts = node.text.split(":")
    if len(parts) > _SHORT_PARTS_MAX or not all(parts):
        values.report.error(node, f"a volume must be [SOURCE:]TARGET[:MODE], not {shown(node.text)}")
        return None
    if len(parts) == 1:
        return Mount(type="volume", target=parts[0])
    source, target = parts[0], parts[1]
    read_only = "ro" in (parts[2].split(",") if len(parts) > 2 else ())
    if source.startswith((".", "/", "~")):
        return Mount(type="bind", source=absolute(node, source), target=target, read_only=read_only)
    return Mount(type="volume", source=source, target=target, read_only=read_only)


def _long(values: Values, node: MapNode) -> Mount | None:
    values.check_keys(node, "a volume", _LONG, ("consistency",))
    kind = values.choice(
        node.get("type"), "the type of a volume", ("bind", "volume", "tmpfs", "image", "npipe", "cluster")
    )
    target = values.text(node.get("target"), "the target of a volume")
    if node.get("type") is None or node.get("target") is None:
        values.report.error(node, "a volume needs a type and a target")
    if (options := values.table(node.get("bind"), "bind")) is not None:
        values.check_keys(options, "bind", ("create_host_path",), _BIND)
    if (options := values.table(node.get("volume"), "volume")) is not None:
        values.check_keys(options, "volume", (), ("nocopy", "subpath", "labels"))
    if (options := values.table(node.get("tmpfs"), "tmpfs")) is not None:
        values.check_keys(options, "tmpfs", (), ("size", "mode"))
    if kind in {"image", "npipe", "cluster"}:
        values.report.error(node, f"volumes of type {kind} are not supported")
    if kind not in {"bind", "volume", "tmpfs"} or not target:
        return None
    source = values.text(node.get("source"), "the source of a volume") or ""
    source_node = node.get("source")
    if kind == "bind":
        if source_node is None or not source:
            values.report.error(node, "a bind mount needs a source")
            return None
        source = absolute(source_node, source)
    return Mount(
        type=cast("Literal['bind', 'volume', 'tmpfs']", kind),
        source="" if kind == "tmpfs" else source,
        target=target,
        read_only=values.boolean(node.get("read_only"), "read_only"),
    )


def read_tmpfs(values: Values, node: Node | None) -> list[Mount]:
    """The mounts of ``tmpfs``."""
    paths = values.text_or_texts(node, "tmpfs")
    return [Mount(type="tmpfs", target=path.partition(":")[0]) for path in paths if path]


def read_grants(
    values: Values, node: Node | None, declared: MapNode | None, kind: Literal["secrets", "configs"]
) -> tuple[FileGrant, ...]:
    """The secrets or configs of a service; each must be declared."""
    found: dict[str, FileGrant] = {}
    one = kind.removesuffix("s")
    for item in values.items(node, kind):
        grant = _grant(values, item, one)
        if grant is None:
            continue
        if declared is None or grant.source not in declared.items:
            names = declared.items if declared else {}
            values.report.error(
                item, f"the {one} {shown(grant.source)} is not declared under {kind}{hint(grant.source, names)}"
            )
        _warn_of_earlier(values, item, grant.target, found)
        found[grant.target] = grant
    return tuple(found.values())


def _grant(values: Values, item: Node, one: str) -> FileGrant | None:
    folder = "/run/secrets/" if one == "secret" else "/"
    if isinstance(item, ScalarNode):
        return FileGrant(source=item.text, target=f"{folder}{item.text}")
    table = values.table(item, f"a {one}")
    if table is None:
        return None
    values.check_keys(table, f"a {one}", _GRANT)
    source = values.text(table.get("source"), f"the source of a {one}")
    if not source:
        values.report.error(table, f"a {one} needs a source")
        return None
    target = values.text(table.get("target"), f"the target of a {one}") or source
    return FileGrant(
        source=source,
        target=target if target.startswith("/") else f"{folder}{target}",
        mode=_mode(values, table.get("mode")),
        user=values.text(table.get("uid"), "uid"),
        group=values.text(table.get("gid"), "gid"),
    )


def _mode(values: Values, node: Node | None) -> int | None:
    text = values.text(node, "mode")
    if text is None or node is None:
        return None
    try:
        mode = int(text.removeprefix("0o"), 8)
    except ValueError:
        mode = -1
    if 0 <= mode <= 0o7777:
        return mode
    values.report.error(node, f"mode must be octal, such as 0440, not {shown(text)}")
    return None
