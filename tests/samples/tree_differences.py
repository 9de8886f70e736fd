"""How two trees of JSON differ, place by place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def differences(engine: Any, other: Any, path: str = "") -> Iterator[str]:
    """Where two trees differ, and how."""
    if isinstance(engine, dict) and isinstance(other, dict):
        for name in sorted({*engine, *other}):
            where = f"{path}.{name}"
            if name not in other:
                yield f"{where}: only on the engine: {_short(engine[name])}"
            elif name not in engine:
                yield f"{where}: only on the embedded server: {_short(other[name])}"
            else:
                yield from differences(engine[name], other[name], where)
    elif isinstance(engine, list) and isinstance(other, list) and len(engine) == len(other):
        for index, (one, another) in enumerate(zip(engine, other, strict=True)):
            yield from differences(one, another, f"{path}[{index}]")
    elif engine != other or isinstance(engine, bool) is not isinstance(other, bool):
        yield f"{path}:\n      engine:   {_short(engine)}\n      embedded: {_short(other)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 1500 else f"{text[:1500]}... ({len(text)} characters)"
