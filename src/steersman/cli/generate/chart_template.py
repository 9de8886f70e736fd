"""Objects as a template of helm: the YAML of trees in which some values are holes that helm fills.

Guarantees
- What is no hole is written as it is, whatever helm's syntax would make of it.
- ``NAMESPACE`` stands for the namespace of the release, also inside of longer texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import yaml

from steersman.golang import YamlDumper
from steersman.objects import Tree

#: Stands for the namespace of the release. It is a valid name, so that every generator takes it.
NAMESPACE = "hole-0-eloh"
_NAMESPACE_ALONE = re.compile(rf"(?<=[:-] ){NAMESPACE}$", re.MULTILINE)
_HOLE = re.compile(r"hole-(\d+)-eloh")
_LINE = re.compile(r"^( *)(?:- )?hole-(\d+)-eloh(?:: null)?\n", re.MULTILINE)


class ChartTemplate:
    """Makes holes for trees, and writes the trees with what is in the holes."""

    def __init__(self) -> None:
        self._texts = {0: "{{ .Release.Namespace }}"}
        self._lines: dict[int, tuple[str, ...]] = {}

    def value(self, expression: str) -> str:
        """A hole for one value."""
        number = len(self._texts) + len(self._lines)
        self._texts[number] = f"{{{{ {expression} }}}}"
        return f"hole-{number}-eloh"

    def lines(self, *lines: str) -> str:
        """A hole for lines: the item of a list, or the key of a mapping whose value is None."""
        number = len(self._texts) + len(self._lines)
        self._lines[number] = lines
        return f"hole-{number}-eloh"

    def add_optional(self, tree: Tree, key: str, value: str) -> None:
        """Add a key that is left out if its value is empty."""
        tree[self.lines(f"{{{{- with {value} }}}}", f"{key}: {{{{ toJson . }}}}", "{{- end }}")] = None

    def add_items(self, items: list[Any], values: str, item: str) -> None:
        """Add an item for each value of a list."""
        items.append(self.lines(f"{{{{- range {values} }}}}", f"- {item}", "{{- end }}"))

    def add_entries(self, tree: Tree, values: str) -> None:
        """Add the entries of a mapping of texts."""
        head = f"{{{{- range $key, $value := {values} }}}}"
        tree[self.lines(head, "{{ $key | quote }}: {{ $value | quote }}", "{{- end }}")] = None

    def text(self, trees: Iterable[Tree], *, only_if: str = "") -> str:
        """The trees as a template; with ``only_if``, it is empty unless that value is true."""
        dumped: str = yaml.dump_all(trees, Dumper=YamlDumper, sort_keys=False, explicit_start=True, width=1_000_000)
        escaped = dumped.replace("{{", '{{ "{{" }}')
        quoted = _NAMESPACE_ALONE.sub("{{ .Release.Namespace | quote }}", escaped)
        filled = _HOLE.sub(lambda hole: self._texts[int(hole[1])], _LINE.sub(self._indented, quoted))
        return f"{{{{- if {only_if} }}}}\n{filled}{{{{- end }}}}\n" if only_if else filled

    def _indented(self, hole: re.Match[str]) -> str:
        number = int(hole[2])
        if number not in self._lines:
            return hole[0]
        return "".join(f"{'' if line.startswith('{{-') else hole[1]}{line}\n" for line in self._lines[number])
