"""kube-apiserver's messages about a tree that does not fit its type, for trees without a text: strategic merge patches."""

from __future__ import annotations

#: Pairs of given and expected types that Go could convert, which is an error here.
_CONVERTIBLE = {("int64", "string"), ("float64", "int")}


def tree_words(given: str, kind: str, go: str) -> str:
    """The message for a value of one Go kind where a shape of another kind, with the type ``go``, is expected."""
    if kind in {"list", "bytes"}:
        return f"cannot restore slice from {given}"
    if kind == "map":
        return f"cannot restore map from {given}"
    if kind == "struct":
        return f"cannot restore struct from: {given}"
    if (given, kind) in _CONVERTIBLE:
        return f"cannot convert {given} to {go}"
    # Named types are reported by their underlying type.
    return f"unrecognized type: {'string' if kind == 'string' else go}"
