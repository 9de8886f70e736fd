"""Converts nodes to typed values. A value of the wrong type is reported, and reading continues with a default."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from steersman.application.syntax.nodes import ListNode, MapNode, Node, ScalarNode, described, mapping, scalar
from steersman.application.syntax.report import Report, shown
from steersman.application.syntax.words import shell_variable, split_words
from steersman.golang import duration_nanoseconds
from steersman.objects import nearest

_TRUE = frozenset({"true", "True", "TRUE", "yes", "Yes", "YES", "y", "Y", "on", "On", "ON"})
_FALSE = frozenset({"false", "False", "FALSE", "no", "No", "NO", "n", "N", "off", "Off", "OFF"})
_DIGITS_MAX = 18
_SIZE = re.compile(r"(?P<number>\d{1,15}(?:\.\d{1,6})?)\s*(?P<unit>[kmgtp]?)i?b?", re.IGNORECASE)
_SHELL = ("/bin/sh", "-c")


class Values:
    """Reads typed values."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def table(self, node: Node | None, what: str) -> MapNode | None:
        """A mapping; None if it is missing."""
        if node is None or isinstance(node, MapNode):
            return node
        self.report.error(node, f"{what} must be a mapping, not {described(node)}")
        return None

    def items(self, node: Node | None, what: str) -> tuple[Node, ...]:
        """The items of a list."""
        if node is None:
            return ()
        if isinstance(node, ListNode):
            return node.items
        self.report.error(node, f"{what} must be a list, not {described(node)}")
        return ()

    def text(self, node: Node | None, what: str) -> str | None:
        """A text; None if it is missing."""
        if node is None:
            return None
        if isinstance(node, ScalarNode):
            return node.text
        self.report.error(node, f"{what} must be a string, not {described(node)}")
        return None

    def choice(self, node: Node | None, what: str, allowed: Iterable[str]) -> str | None:
        """One of the allowed texts; None if it is missing or not one of them."""
        text = self.text(node, what)
        if text is None or node is None:
            return None
        if text in (options := list(allowed)):
            return text
        self.report.error(node, f"{what} must be one of {', '.join(options)}, not {shown(text)}{hint(text, options)}")
        return None

    def boolean(self, node: Node | None, what: str, *, default: bool = False) -> bool:
        """A boolean."""
        text = self.text(node, what)
        if text is None or node is None:
            return default
        if text not in _TRUE and text not in _FALSE:
            self.report.error(node, f"{what} must be true or false, not {shown(text)}")
        return text in _TRUE

    def integer(self, node: Node | None, what: str, *, least: int = 0, most: int = 10**9) -> int | None:
        """A whole number; None if it is missing or not one."""
        text = self.text(node, what)
        if text is None or node is None:
            return None
        if re.fullmatch(rf"[-+]?[0-9]{{1,{_DIGITS_MAX}}}", text) and least <= int(text) <= most:
            return int(text)
        self.report.error(node, f"{what} must be a number from {least} to {most}, not {shown(text)}")
        return None

    def seconds(self, node: Node | None, what: str) -> float | None:
        """A duration such as ``1m30s`` in seconds; a number alone means seconds."""
        text = self.text(node, what)
        if text is None or node is None:
            return None
        try:
            nanoseconds = duration_nanoseconds(text if re.search(r"[a-zµμ]", text) else f"{text}s")
        except ValueError:
            nanoseconds = -1
        if nanoseconds >= 0:
            return nanoseconds / 10**9
        self.report.error(node, f"{what} must be a duration such as 10s or 1m30s, not {shown(text)}")
        return None

    def size(self, node: Node | None, what: str) -> str | None:
        """A number of bytes such as ``512m`` or ``2gb``, in a form that container runtimes accept."""
        text = self.text(node, what)
        if text is None or node is None:
            return None
        if text == "-1":
            return text
        if found := _SIZE.fullmatch(text):
            # Container runtimes accept no fractions.
            number = float(found["number"]) * 1024 ** " kmgtp".index(found["unit"].lower() or " ")
            return f"{int(number)}b"
        self.report.error(node, f"{what} must be a size such as 512m or 2gb, not {shown(text)}")
        return None

    def texts(self, node: Node | None, what: str) -> tuple[str, ...]:
        """A list of texts."""
        found = [self.text(item, f"an item of {what}") for item in self.items(node, what)]
        return tuple(text for text in found if text is not None)

    def text_or_texts(self, node: Node | None, what: str) -> tuple[str, ...]:
        """A text, or a list of texts."""
        if isinstance(node, ScalarNode):
            return (node.text,)
        return self.texts(node, what)

    def pairs(self, node: Node | None, what: str) -> dict[str, str | None]:
        """Names with values, from a mapping or from a list of NAME=value. None: a name alone."""
        found: dict[str, str | None] = {}
        named = self.named(node, what)
        for name, value in named.items.items() if named else ():
            if isinstance(value, ScalarNode):
                found[name] = None if value.is_null else plain_text(value)
            else:
                self.report.error(value, f"{what}: {name} must be a string, not {described(value)}")
        return found

    def named(self, node: Node | None, what: str) -> MapNode | None:
        """A mapping, from a mapping or from a list of NAME=value."""
        if isinstance(node, ListNode):
            return named_items(node, self.report, what)
        return self.table(node, what)

    def given_pairs(self, node: Node | None, what: str) -> dict[str, str]:
        """Names with values; a name alone has an empty value."""
        return {name: value or "" for name, value in self.pairs(node, what).items()}

    def words(
        self, node: Node | None, what: str, *, shell: bool = False, for_process: bool = False
    ) -> tuple[str, ...] | None:
        """The words of a command: a list unchanged, or a string split as Compose does; None if it is missing.

        ``for_process``: outside Compose files, a string that only a shell can run is an error, because part of it has no effect.
        """
        if node is None:
            return None
        if isinstance(node, ListNode):
            if shell:
                self.report.error(node, f"shell: true needs {what} as one string, not a list")
            return self.texts(node, what)
        text = self.text(node, what)
        if text is None:
            return None
        if shell:
            return (*_SHELL, text)
        try:
            words, dropped = split_words(text)
        except ValueError as error:
            self.report.error(node, f"{what}: {error}")
            return ()
        if for_process and not node.origin.is_compose:
            if part := dropped or shell_variable(text):
                self.report.error(
                    node, f"{what}: only a shell understands {shown(part)}: add shell: true to the service, or quote it"
                )
        elif dropped:
            advice = "write a list with a shell" if node.origin.is_compose else "set shell: true"
            self.report.warn(
                node, f"{what}: {shown(dropped)} is dropped, as in Compose; {advice} if a shell should run it"
            )
        return tuple(words)

    def shell_words(self, node: ScalarNode) -> tuple[str, ...]:
        """A command that a shell runs."""
        return (*_SHELL, node.text)

    def path(self, node: Node | None, what: str) -> str | None:
        """An absolute path on this machine; a relative one is resolved against the folder of its file."""
        text = self.text(node, what)
        if text is None or node is None:
            return None
        if not text or "\0" in text:
            self.report.error(node, f"{what} must be a path, not {shown(text)}")
            return None
        return absolute(node, text)

    def check_keys(self, table: MapNode, what: str, known: Iterable[str], ignored: Iterable[str] = ()) -> set[str]:
        """Report unknown keys as errors, and keys without an effect. Returns the suggestions for unknown keys."""
        names, without_effect = {*known}, {*ignored}
        suggested: set[str] = set()
        for name, value in table.items.items():
            if name in names or name.startswith("x-"):
                continue
            if name in without_effect:
                if not (isinstance(value, ScalarNode) and value.is_null):
                    self.report.ignore(table.key(name), name)
                continue
            near = _near(name, names | without_effect)
            suggested.add(near)
            self.report.error(table.key(name), f"{what} has no key {shown(name)}{_suggestion(near)}")
        return suggested


def hint(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: a suggestion, or nothing."""
    return _suggestion(_near(name, known))


def _near(name: str, known: Iterable[str]) -> str:
    return nearest(name, sorted(known)) if len(name) <= 100 else ""


def _suggestion(near: str) -> str:
    return f"; did you mean {near}?" if near else ""


def plain_text(node: ScalarNode) -> str:
    """The text of a value in an environment; booleans become true or false."""
    return node.text.lower() if node.is_plain and node.text.lower() in {"true", "false"} else node.text


def absolute(node: Node, path: str) -> str:
    """A path of a file, absolute."""
    origin = node.origin
    if path == "~" or path.startswith("~/"):
        path = (origin.environment.get("HOME") or "~") + path[1:]
    return os.path.normpath(origin.folder / path)


def named_items(node: ListNode, report: Report, what: str) -> MapNode:
    """A mapping from a list of NAME=value; the last of several equal names counts."""
    items: dict[str, Node] = {}
    for item in node.items:
        if not isinstance(item, ScalarNode):
            report.error(item, f"an item of {what} must be NAME=value, not {described(item)}")
            continue
        name, sign, value = item.text.partition("=")
        items[name] = scalar(item, value) if sign else scalar(item, "", is_plain=True)
    return mapping(node, items)


def resolved(pairs: Mapping[str, str | None], environment: Mapping[str, str]) -> dict[str, str]:
    """Resolve names without a value from the environment; drop those that it does not have."""
    found: dict[str, str] = {}
    for name, value in pairs.items():
        if (text := environment.get(name) if value is None else value) is not None:
            found[name] = text
    return found
