"""What strict decoding rejects: unknown and duplicate fields.

Guarantee: they are reported in the order of the text, each once and at most 100.
"""

from __future__ import annotations

from typing import Any, cast

from steersman.apiserver.go_types.written_values import Pairs
from steersman.golang import quoted_in_full

#: The maximum number of reported fields, and their total length except the last one.
FINDINGS_MAX, FINDINGS_LENGTH = 100, 64 * 1024


class Findings:
    """What strict decoding rejects, each once. Only the first findings are kept, if there are very many."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._length = 0

    @property
    def texts(self) -> list[str]:
        """The messages, in the order of the text."""
        return list(self._texts)

    def add(self, what: str, path: list[str], name: str) -> None:
        """Add an unknown or duplicate field."""
        if len(self._texts) >= FINDINGS_MAX or self._length > FINDINGS_LENGTH:
            return
        place = "".join(path)
        text = f"{what} field {quoted_in_full(f'{place}.{name}' if place else name)}"
        if text not in self._texts:
            self._texts[text] = None
            self._length += len(text)


def duplicates(written: Any) -> list[str]:
    """The messages about duplicate fields of a value without a type."""
    findings = Findings()
    _find_duplicates(written, [], findings)
    return findings.texts


def _find_duplicates(written: Any, path: list[str], findings: Findings) -> None:
    if isinstance(written, Pairs):
        seen: set[str] = set()
        for name, inner in written:
            if name in seen:
                findings.add("duplicate", path, name)
            seen.add(name)
            if isinstance(inner, list):
                path.append(f".{name}" if path else name)
                _find_duplicates(inner, path, findings)
                path.pop()
    elif isinstance(written, list):
        for at, item in enumerate(cast("list[Any]", written)):
            if isinstance(item, list):
                path.append(f"[{at}]")
                _find_duplicates(item, path, findings)
                path.pop()
