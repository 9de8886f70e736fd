"""Template hashes as kube-controller-manager writes them: FNV-1a in an alphabet that spells no words.

Guarantees
- The same template and collision count give the same hash, in every process.
- A ControllerRevision gets the same name as from kube-controller-manager.
- A ``pod-template-hash`` has the form of kube-controller-manager's but another value: the original is computed from
  Go's memory layout.
"""

from __future__ import annotations

from typing import Any, cast

from steersman.golang import printed_json
from steersman.objects import Struct, to_json

_ALPHANUMERIC = "bcdfghjklmnpqrstvwxz2456789"
_OFFSET, _PRIME, _MASK = 0x811C9DC5, 0x01000193, 0xFFFFFFFF


def fnv32a(*parts: bytes) -> int:
    """The 32-bit FNV-1a hash."""
    value = _OFFSET
    for part in parts:
        for byte in part:
            value = ((value ^ byte) * _PRIME) & _MASK
    return value


def fnv32(*parts: bytes) -> int:
    """The 32-bit FNV-1 hash."""
    value = _OFFSET
    for part in parts:
        for byte in part:
            value = ((value * _PRIME) & _MASK) ^ byte
    return value


def safe_encode(text: str) -> str:
    """A text in the alphabet of generated names, like Go's ``rand.SafeEncodeString``."""
    return "".join(_ALPHANUMERIC[ord(each) % len(_ALPHANUMERIC)] for each in text)


def canonical(struct: Struct) -> dict[str, Any]:
    """A struct as a JSON tree without nulls, for comparing and hashing."""
    return _without_nulls(to_json(struct))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        tree = cast("dict[str, Any]", value)
        return {name: _without_nulls(each) for name, each in tree.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in cast("list[Any]", value)]
    return value


def template_hash(template: Struct, collisions: int | None) -> str:
    """The ``pod-template-hash`` of a template; ``collisions`` distinguishes templates with equal hashes."""
    salt = b"" if collisions is None else collisions.to_bytes(8, "little")
    return safe_encode(str(fnv32a(printed_json(canonical(template)).encode(), salt)))
