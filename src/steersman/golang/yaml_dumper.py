"""Writes YAML that Go's YAML packages, and so Kubernetes, read back unchanged."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import yaml

from steersman.golang.yaml_scalars import yaml_scalar

#: What YAML folds into a space or a line end, unless it is escaped.
_OTHER_BREAKS = re.compile("[\r\x85\u2028\u2029]")


class YamlDumper(yaml.SafeDumper):
    """A dumper for PyYAML: a string stays a string to Go, which has rules of its own, and there are no anchors."""

    #: Whether strings of several lines are written as blocks.
    blocks: ClassVar[bool] = False

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the signature is PyYAML's
        """The same value twice is written twice."""
        return True

    def represent_text(self, text: str) -> Any:
        """Quote what Go would not read as a string: ``y``, ``1e3``, ``0o7``; PyYAML quotes by its own rules too."""
        if _OTHER_BREAKS.search(text):
            style = '"'
        else:
            style = "|" if self.blocks and "\n" in text else None if _stays_text(text) else "'"
        untyped: Any = self
        return untyped.represent_scalar("tag:yaml.org,2002:str", text, style=style)


class YamlBlockDumper(YamlDumper):
    """The same, for people: strings of several lines are blocks."""

    blocks = True


YamlDumper.add_representer(str, YamlDumper.represent_text)
YamlBlockDumper.add_representer(str, YamlBlockDumper.represent_text)


def _stays_text(text: str) -> bool:
    try:
        return isinstance(yaml_scalar(text), str)
    except ValueError:
        return False
