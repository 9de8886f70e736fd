"""What kube-apiserver says of a tree that does not fit its type, where it read no text: strategic merge patches."""

from __future__ import annotations

import re

_MISMATCH = re.compile(r"json: cannot unmarshal (\w+)(?: \S+)? into Go (?:struct field \S+|value) of type (\S+)")
_KINDS = {"object": "map", "array": "slice", "number": "int64"}
_SCALARS = frozenset({"string", "bool", "int32", "int64", "float64"})


def unstructured_words(said: str) -> str:
    """The words for a mismatch that is told in those for a text; any other sentence as it is."""
    match = _MISMATCH.fullmatch(said.rpartition("json parse error: ")[2])
    if match is None:
        # Bytes are read as if their text stood in a document of its own.
        return f"error decoding from json: {said}" if said.startswith("illegal base64 data") else said
    given, expected = _KINDS.get(match[1], match[1]), match[2]
    if expected.startswith("[]"):
        return f"cannot restore slice from {given}"
    if expected.startswith("map["):
        return f"cannot restore map from {given}"
    if (given, expected) == ("int64", "string"):
        # The only scalars that Go turns into each other, which here is a mistake.
        return "cannot convert int64 to string"
    if expected in _SCALARS:
        return f"unrecognized type: {expected}"
    return f"cannot restore struct from: {given}"
