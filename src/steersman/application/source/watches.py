"""Watched files: ``watch`` of steersman.yaml, and ``develop.watch`` of Compose."""

from __future__ import annotations

import os
import re
from typing import Literal, cast, get_args

from steersman.application.model import WatchRule
from steersman.application.syntax.nodes import ListNode, MapNode, Node, ScalarNode
from steersman.application.syntax.report import shown
from steersman.application.syntax.values import Values, absolute
from steersman.workloads import escaped, has_match

_Action = Literal["restart", "rebuild", "sync", "sync+restart", "sync+exec"]
_ACTIONS = get_args(_Action)
_OWN_KEYS = ("paths", "ignore", "action", "target", "debounce")
_DEVELOP_KEYS = ("path", "action", "target", "ignore", "include", "exec")
_DEVELOP_DEBOUNCE = 0.5


def read_watches(values: Values, service: MapNode, *, working_folder: str | None) -> tuple[WatchRule, ...]:
    """What a service watches. Paths inside the working folder are relative to it, others are absolute."""
    found: list[WatchRule] = []
    node = service.get("watch")
    if isinstance(node, ScalarNode):
        found.append(WatchRule(paths=(_watched(values, node, node.text, working_folder),)))
    elif isinstance(node, MapNode):
        found += _own(values, node, working_folder)
    else:
        items = values.items(node, "watch")
        texts = [item for item in items if isinstance(item, ScalarNode)]
        if texts:
            found.append(WatchRule(paths=tuple(_watched(values, item, item.text, working_folder) for item in texts)))
        for item in items:
            if not isinstance(item, ScalarNode) and (table := values.table(item, "an item of watch")) is not None:
                found += _own(values, table, working_folder)
    develop = values.table(service.get("develop"), "develop")
    if develop is not None:
        values.check_keys(develop, "develop", ("watch",))
        for item in values.items(develop.get("watch"), "develop.watch"):
            if (table := values.table(item, "an item of develop.watch")) is not None:
                found += _develop(values, table, service, working_folder)
    return tuple(found)


def _own(values: Values, table: MapNode, working_folder: str | None) -> list[WatchRule]:
    values.check_keys(table, "watch", _OWN_KEYS)
    paths = tuple(
        _watched(values, node, text, working_folder) for node, text in _patterns(values, table.get("paths"), "paths")
    )
    if not paths:
        values.report.error(table, "watch needs paths")
        return []
    debounce = values.seconds(table.get("debounce"), "debounce")
    return [
        WatchRule(
            paths=paths,
            ignore=tuple(
                _glob(node, text, working_folder) for node, text in _patterns(values, table.get("ignore"), "ignore")
            ),
            action=_action(values, table) or "restart",
            target=values.text(table.get("target"), "target"),
            debounce=0.3 if debounce is None else debounce,
        )
    ]


def _develop(values: Values, table: MapNode, service: MapNode, working_folder: str | None) -> list[WatchRule]:
    values.check_keys(table, "develop.watch", _DEVELOP_KEYS, ("initial_sync",))
    path, action = values.path(table.get("path"), "path"), _action(values, table)
    path_node = table.get("path")
    target = values.text(table.get("target"), "target")
    if path is None or path_node is None or action is None:
        if path_node is None or table.get("action") is None:
            values.report.error(table, "an item of develop.watch needs a path and an action")
        return []
    if action.startswith("sync") and target is None:
        values.report.error(table, f"the action {action} needs a target")
    if action == "rebuild" and service.get("build") is None and service.get("image") is not None:
        values.report.error(table.get("action") or table, "the action rebuild needs a build")
    command: tuple[str, ...] = ()
    if (hook := values.table(table.get("exec"), "exec")) is not None:
        values.check_keys(hook, "exec", ("command",), ("user", "privileged", "working_dir", "environment"))
        command = values.words(hook.get("command"), "command") or ()
    if not os.path.lexists(path):
        values.report.warn(path_node, f"develop.watch: the path {shown(path)} does not exist")
    if action == "sync+exec" and not command:
        values.report.error(table, "the action sync+exec needs exec with a command")
    included = values.text_or_texts(table.get("include"), "include")
    ignored = values.text_or_texts(table.get("ignore"), "ignore")
    return [
        WatchRule(
            paths=tuple(_below_folder(each, path, working_folder) for each in _below(path, included) or [path]),
            ignore=tuple(_below_folder(each, path, working_folder) for each in _below(path, ignored)),
            action=action,
            root=path,
            target=target,
            command=command,
            debounce=_DEVELOP_DEBOUNCE,
        )
    ]


def _below(path: str, patterns: tuple[str, ...]) -> list[str]:
    """Turn patterns of a .dockerignore file into globs below a path. A pattern without a slash matches at any depth."""
    found: list[str] = []
    for pattern in patterns:
        bare = pattern.strip().removeprefix("./").rstrip("/")
        if bare:
            found.append(f"{path}/{bare}" if "/" in bare else f"{path}/**/{bare}")
    return found


def _action(values: Values, table: MapNode) -> _Action | None:
    return cast("_Action | None", values.choice(table.get("action"), "action", _ACTIONS))


def _patterns(values: Values, node: Node | None, what: str) -> list[tuple[Node, str]]:
    if isinstance(node, ScalarNode):
        return [(node, node.text)]
    items = node.items if isinstance(node, ListNode) else values.items(node, what)
    texts = [(item, values.text(item, f"an item of {what}")) for item in items]
    return [(item, text) for item, text in texts if text]


def _watched(values: Values, node: Node, text: str, working_folder: str | None) -> str:
    """A glob of watched files, with a warning if it is probably misspelled."""
    try:
        # The project's own folder is no pattern, whatever its name contains.
        is_matched = has_match(*_split(str(node.origin.folder), absolute(node, text)))
    except re.error as error:
        values.report.error(node, f"watch: {shown(text)} is not a pattern of files: {error}")
        is_matched = True
    if not is_matched:
        values.report.warn(node, f"watch: no file matches {shown(text)} in {node.origin.folder}")
    return _glob(node, text, working_folder)


def _split(folder: str, path: str) -> tuple[str, str]:
    """A folder, and a path relative to it; the root if the path is not below the folder."""
    prefix = folder.rstrip(os.sep) + os.sep
    return (folder, path.removeprefix(prefix)) if path.startswith(prefix) else (os.sep, path)


def _glob(node: Node, text: str, working_folder: str | None) -> str:
    return _below_folder(absolute(node, text), os.path.normpath(node.origin.folder), working_folder)


def _below_folder(path: str, plain: str, working_folder: str | None) -> str:
    """The glob of an absolute path, relative to the working folder if it is below. What it shares with ``plain`` is no glob."""
    if path == working_folder:
        return "**"
    prefix = working_folder.rstrip(os.sep) + os.sep if working_folder is not None else ""
    start = len(prefix) if path.startswith(prefix) else 0
    literal = max(start, len(os.path.commonpath([path, plain])))
    return escaped(path[start:literal]) + path[literal:]
