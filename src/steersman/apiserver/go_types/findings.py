"""Messages about unknown and duplicate fields: ``unknown field "spec.replica"``.

Strict decoding rejects an object with such fields, a lenient one warns of them.

Guarantee: they are reported in the order of the text, each once and at most 100.
"""

from __future__ import annotations

from typing import Any, cast

from steersman.apiserver.go_types.written_values import Pairs
from steersman.golang import quoted_in_full

#: The maximum number of reported fields, and their total length except the last one.
FINDINGS_MAX, FINDINGS_LENGTH = 100, 64 * 1024


class Findings:
    """Collects the messages about one object. Repeated ones are dropped, and so are those beyond a limit."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._length = 0

    @property
    def texts(self) -> list[str]:
        """The messages, in the order of the text."""
        return list(self._texts)

    def add(self, problem: str, path: list[str], name: str) -> None:
        """Add an "unknown" or "duplicate" field, in the object at a path: ``["spec", ".containers", "[0]"]``."""
        if len(self._texts) >= FINDINGS_MAX or self._length > FINDINGS_LENGTH:
            return
        parent = "".join(path)
        text = f"{problem} field {quoted_in_full(f'{parent}.{name}' if parent else name)}"
        if text not in self._texts:
            self._texts[text] = None
            self._length += len(text)


def duplicates(written: Any) -> list[str]:
    """The messages about duplicate fields in a value without a type, in which every object is a `Pairs`."""
    findings = Findings()
    _find_duplicates(written, [], findings)
    return findings.texts


def _find_duplicates(written: Any, path: list[str], findings: Findings) -> None:
    # `Pairs` are lists too, so one test finds the values that can hold fields.
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
        for index, item in enumerate(cast("list[Any]", written)):
            if isinstance(item, list):
                path.append(f"[{index}]")
                _find_duplicates(item, path, findings)
                path.pop()
