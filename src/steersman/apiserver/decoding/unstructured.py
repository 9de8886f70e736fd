"""What kube-apiserver says of a tree that does not fit its type, where it read no text: strategic merge patches."""

from __future__ import annotations

#: Pairs of what is given and what is expected that Go would turn into each other, which here is a mistake.
_CONVERTIBLE = {("int64", "string"), ("float64", "int")}


def tree_words(given: str, kind: str, go: str) -> str:
    """The words for a value of one of Go's kinds where a shape of another kind, and of the type ``go``, is expected."""
    if kind in {"list", "bytes"}:
        return f"cannot restore slice from {given}"
    if kind == "map":
        return f"cannot restore map from {given}"
    if kind == "struct":
        return f"cannot restore struct from: {given}"
    if (given, kind) in _CONVERTIBLE:
        return f"cannot convert {given} to {go}"
    # Types of their own are told by what they are made of.
    return f"unrecognized type: {'string' if kind == 'string' else go}"
