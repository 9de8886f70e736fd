"""Field paths, ``.spec.replicas`` or ``.spec['a.b']``, and their resolution in a schema.

Guarantee: `resolve_path` accepts and rejects what kube-apiserver does, with its messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

Schema = Mapping[str, Any]

_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}
_ESCAPE: Final = re.compile(r"\\.")
_TOKEN: Final = re.compile(r"[.\[\]]|'.*?(?<!\\)'|'.*\Z|[^.\[\]]+", re.DOTALL)
_OPENING: Final = frozenset("[")
_NOWHERE: Final = "does not refer to a valid field"
_END: Final = "unexpected end of JSON path"


class Resolved(NamedTuple):
    """A resolved path: its canonical form, its first name, and the schema of its target, if known."""

    path: str
    root: str
    schema: Schema | None


class PathRefused(ValueError):
    """A path is invalid or does not resolve; the message is kube-apiserver's."""


def resolve_path(path: str, schema: Schema, *, brackets: bool = True) -> Resolved:
    """Resolve a path in a structural schema. Raises `PathRefused` if that fails."""
    tokens = (found[0] for found in _TOKEN.finditer(path))
    canonical, root = "", ""
    at: Schema | None = schema
    for token in tokens:
        if token in _OPENING and not brackets:
            raise PathRefused("array notation is not allowed")
        if token not in {"[", "."}:
            raise PathRefused(f"expected [ or . but got: {token}")
        name = _quoted_name(_next(tokens)) if token in _OPENING else _next(tokens)
        at, printed = _below(at, name)
        canonical += printed
        root = root or name
        if token in _OPENING and (closing := _next(tokens)) != "]":
            raise PathRefused(f"expected ] but got {closing}")
    return Resolved(canonical.removeprefix("."), root, at)


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise PathRefused(_END)
    return token


def _quoted_name(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise PathRefused(f"expected single quoted string but got {token}")
    inner = token[1:-1]
    for found in _ESCAPE.finditer(inner):
        if found[0][1] not in _ESCAPES:
            raise PathRefused(f"invalid string literal: invalid escape char {found[0]}")
    return _ESCAPE.sub(lambda found: _ESCAPES[found[0][1]], inner)


def _below(schema: Schema | None, name: str) -> tuple[Schema | None, str]:
    """The schema of a field, and the field's name in a canonical path."""
    properties: Mapping[str, Schema] | None = None if schema is None else schema.get("properties")
    if properties:
        if name not in properties:
            raise PathRefused(_NOWHERE)
        return properties[name], f".{name}"
    additional: Any = None if schema is None else schema.get("additionalProperties")
    if additional is None:
        raise PathRefused(_NOWHERE)
    return cast("Schema", additional) if isinstance(additional, Mapping) else None, f"[{name}]"
