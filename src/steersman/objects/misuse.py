"""Errors for struct classes that are declared or used by mistake."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_PLAIN = (bool, int, float, str, list, dict, tuple, set, type(None))


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name most similar to ``name``; empty if none is similar."""
    return next(iter(similar_names(name, known)), "")


def similar_names(name: str, known: Iterable[str], *, most: int = 1, cutoff: float = 0.6) -> list[str]:
    """The known names that are similar to ``name``, best first; of two that differ by case, the first."""
    import difflib  # noqa: PLC0415 - imported only for an error

    # `minReplicas` is nearest to `min_replicas`: using the wire name is the usual mistake
    spelled: dict[str, str] = {}
    for each in known:
        spelled.setdefault(each.replace("_", "").lower(), each)
    near = difflib.get_close_matches(name.replace("_", "").lower(), spelled, n=most, cutoff=cutoff)
    return [spelled[each] for each in near]


def construction_error(cls: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> TypeError:
    """Explain why ``cls(*arguments, **keywords)`` fails."""
    name = cls.__name__
    fields = [field for field in cls.__struct_fields__ if field != "_origin"]
    if arguments:
        return TypeError(
            f"{name}(...) takes its fields by name: write {name}({', '.join(f'{f}=...' for f in fields[:2])})"
        )
    if unknown := [keyword for keyword in keywords if keyword not in fields]:
        meant = nearest(unknown[0], fields)
        hint = f"did you mean {meant}?" if meant else f"its fields are {', '.join(fields)}"
        return TypeError(f"{name}(...) has no field {unknown[0]}; {hint}")
    missing = ", ".join(sorted(cls.__required__ - keywords.keys()))
    write = '; write metadata=ObjectMeta(name="...")' if missing == "metadata" else ""
    return TypeError(f"{name}(...) needs {missing}: the type has no default for it{write}")


def check_body(name: str, namespace: Mapping[str, Any], annotations: Mapping[str, Any], rules: Any) -> None:
    """Reject a class body in which a value would silently not become a field, or a rule not be checked."""
    for field, value in namespace.items():
        if type(value) in _PLAIN and field not in annotations and not field.startswith("_"):
            raise TypeError(f"class {name}: {field} has no type; write {field}: {type(value).__name__} = {value!r}")
    if not isinstance(rules, (tuple, list)):
        raise TypeError(f"class {name}: rules must be a tuple; write rules=({rules!r},)")
