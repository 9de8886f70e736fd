"""Merges files, and services with those that they extend, by Compose's rules.

Mappings merge, scalars replace, lists append. Commands and limits replace. Lists of NAME=value merge by name; volumes, secrets,
configs and devices by target; ports by address, published port, target and protocol. ``!reset`` drops a value,
``!override`` replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from steersman.application.syntax.nodes import ListNode, MapNode, Node, ScalarNode, is_null, mapping, scalar
from steersman.application.syntax.report import Report
from steersman.application.syntax.values import named_items

_Path = tuple[str, ...]
#: Keys of a service whose later value replaces the earlier one.
_REPLACED = {("command",), ("entrypoint",), ("healthcheck", "test"), ("provider",), ("watch",)}
#: Keys whose lists of NAME=value merge by name.
_NAMED = {
    ("annotations",),
    ("build", "args"),
    ("build", "additional_contexts"),
    ("build", "labels"),
    ("deploy", "labels"),
    ("environment",),
    ("labels",),
    ("sysctls",),
}
#: Keys whose lists of names become mappings, and what a name alone means there.
_LISTED: dict[_Path, dict[str, str]] = {
    ("depends_on",): {"condition": "service_started", "required": "true"},
    ("networks",): {},
    ("models",): {},
}
#: Keys whose value may be a single string.
_SINGLE = {("env_file",), ("label_file",), ("dns",), ("dns_search",), ("tmpfs",)}
#: Keys whose items merge by target, and the folder of a relative target.
_MOUNTED: dict[_Path, str] = {("volumes",): "", ("devices",): "", ("secrets",): "/run/secrets/", ("configs",): "/"}
#: Keys whose duplicate items are dropped.
_UNIQUE = {
    ("cap_add",),
    ("cap_drop",),
    ("dns",),
    ("dns_opt",),
    ("dns_search",),
    ("expose",),
    ("links",),
    ("profiles",),
    ("tmpfs",),
    ("env_file",),
    ("extra_hosts",),
    ("build", "tags"),
}

#: What a file takes from one that it includes.
IMPORTED = ("services", "networks", "volumes", "secrets", "configs")

#: The merge functions of keys.
_Inner = Callable[[Node, Node, _Path], Node]


class Merge:
    """Merges nodes."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def documents(self, below: MapNode, above: MapNode) -> MapNode:
        """Merge two files; the second wins."""
        return self._tables(below, above, (), self._section)

    def services(self, below: MapNode, above: MapNode) -> MapNode:
        """Merge two definitions of a service; the second wins."""
        return self._tables(below, above, (), self._service_value)

    def imported(self, own: MapNode, other: MapNode) -> MapNode:
        """Merge a file with an included one; the including file wins."""
        items: dict[str, Node] = dict(own.items)
        keys = dict(other.keys)
        for name, value in other.items.items():
            mine = items.get(name)
            if name not in IMPORTED:
                continue
            if isinstance(mine, MapNode) and isinstance(value, MapNode):
                # Included services come before those of the including file.
                items[name] = self._section(value, mine, (name,))
            elif mine is None or is_null(mine):
                items[name] = value
        return own.with_items(items, {**keys, **own.keys})

    def _section(self, below: Node, above: Node, path: _Path) -> Node:
        if len(path) == 2 and path[0] == "services" and isinstance(below, MapNode) and isinstance(above, MapNode):
            return self.services(below, above)
        return self._plain(below, above, path, self._section)

    def _service_value(self, below: Node, above: Node, path: _Path) -> Node:
        # A name alone takes its value from the environment: it replaces a value.
        if path in _REPLACED or path[:-1] in _NAMED or path[:-1] == ("ulimits",):
            return above
        if path in _NAMED:
            below, above = self._named(below, path), self._named(above, path)
        elif path in _LISTED:
            below, above = _listed(below, _LISTED[path]), _listed(above, _LISTED[path])
        elif path in _SINGLE:
            below, above = _several(below), _several(above)
        elif path == ("extra_hosts",):
            below, above = _pairs(below), _pairs(above)
        elif path == ("build",):
            below, above = _built(below), _built(above)
        merged = self._plain(below, above, path, self._service_value)
        return unique(merged, path) if isinstance(merged, ListNode) else merged

    def _named(self, node: Node, path: _Path) -> Node:
        return named_items(node, self._report, ".".join(path)) if isinstance(node, ListNode) else node

    def _plain(self, below: Node, above: Node, path: _Path, inner: _Inner) -> Node:
        if is_null(above):
            return below
        if isinstance(below, MapNode) and isinstance(above, MapNode):
            return self._tables(below, above, path, inner)
        if isinstance(below, ListNode) and isinstance(above, ListNode):
            items = (*below.items, *above.items)
            return ListNode(above.origin, above.line, above.column, below.tag, items=items)
        if isinstance(below, ScalarNode) or isinstance(above, ScalarNode) == isinstance(below, ScalarNode):
            return above
        self._report.error(
            above, f"{'.'.join(path)} cannot replace the value of line {below.line} of {below.origin.file}"
        )
        return below

    def _tables(self, below: MapNode, above: MapNode, path: _Path, inner: _Inner) -> MapNode:
        items = dict(below.items)
        for name, value in above.items.items():
            # An earlier file has dropped the value: nothing is left to merge with.
            is_merged = name in items and items[name].tag != "!reset" and value.tag not in {"!reset", "!override"}
            if is_merged:
                items[name] = inner(items[name], value, (*path, name))
            else:
                items[name] = value
        return below.with_items(items, {**above.keys, **below.keys})


def without_resets(node: Node) -> Node:
    """A node without the values that ``!reset`` drops."""
    if isinstance(node, MapNode):
        kept = {name: without_resets(value) for name, value in node.items.items() if value.tag != "!reset"}
        return node.with_items(kept, {})
    if isinstance(node, ListNode):
        items = tuple(without_resets(item) for item in node.items if item.tag != "!reset")
        return ListNode(node.origin, node.line, node.column, node.tag, items=items)
    return node


def unique(node: ListNode, path: _Path) -> ListNode:
    """A list in which a later item replaces an earlier one with the same key."""
    found: dict[object, Node] = {}
    for item in node.items:
        found[_identity(item, path)] = item
    return ListNode(node.origin, node.line, node.column, node.tag, items=tuple(found.values()))


def _identity(item: Node, path: _Path) -> object:
    if path == ("ports",):
        return _port_identity(item)
    if path in _MOUNTED:
        return _target(item, path)
    if path in _UNIQUE and isinstance(item, ScalarNode):
        return item.text
    return id(item)


def _port_identity(item: Node) -> object:
    if isinstance(item, ScalarNode):
        rest, _, protocol = item.text.partition("/")
        parts = rest.rsplit(":", 2)
        address, published = (parts[0] if len(parts) > 2 else ""), (parts[-2] if len(parts) > 1 else "")
        return address, published, parts[-1], protocol or "tcp"
    if isinstance(item, MapNode):
        texts = {name: value.text for name, value in item.items.items() if isinstance(value, ScalarNode)}
        protocol = texts.get("protocol", "tcp")
        return texts.get("host_ip", ""), texts.get("published", ""), texts.get("target", ""), protocol
    return id(item)


def _target(item: Node, path: _Path) -> object:
    if isinstance(item, MapNode):
        target = item.get("target") or item.get("source")
        text = target.text if isinstance(target, ScalarNode) else ""
    elif isinstance(item, ScalarNode):
        parts = item.text.split(":")
        text = parts[1] if len(parts) > 1 and path in {("volumes",), ("devices",)} else parts[0]
    else:
        return id(item)
    return text if text.startswith("/") else f"{_MOUNTED[path]}{text}"


def _listed(node: Node, meaning: Mapping[str, str]) -> Node:
    if not isinstance(node, ListNode):
        return node
    names = [item for item in node.items if isinstance(item, ScalarNode)]
    return mapping(node, {item.text: _spelled_out(item, meaning) for item in names})


def _spelled_out(name: ScalarNode, meaning: Mapping[str, str]) -> Node:
    if not meaning:
        return scalar(name, "", is_plain=True)
    return mapping(name, {key: scalar(name, text, is_plain=True) for key, text in meaning.items()})


def _several(node: Node) -> Node:
    if isinstance(node, ListNode) or is_null(node):
        return node
    return ListNode(node.origin, node.line, node.column, node.tag, items=(node,))


def _pairs(node: Node) -> Node:
    """The list of a mapping: one name may have several values."""
    if not isinstance(node, MapNode):
        return node
    pairs = [
        scalar(value, f"{name}={value.text}")
        for name, each in node.items.items()
        for value in (each.items if isinstance(each, ListNode) else (each,))
        if isinstance(value, ScalarNode)
    ]
    return ListNode(node.origin, node.line, node.column, node.tag, items=tuple(pairs))


def _built(node: Node) -> Node:
    return mapping(node, {"context": node}) if isinstance(node, ScalarNode) and not node.is_null else node
