"""Mistakes in an applied object for which kube-apiserver answers 500, in words of its types.

Server-side apply reads an object by the schema before the server validates it, so an unknown field or a wrong quantity is an
internal error there, which names no object of the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from steersman.objects import Object, Quantity, Struct, Unstructured, declared_hints, structs_in


def mistake_in(obj: Object | Unstructured) -> TypeError | ValueError | None:
    """The first value of an object that only a server can reject, as an error without the operation; None without one."""
    return None if isinstance(obj, Unstructured) else next(_mistakes(obj, "", (type(obj),)), None)


def _mistakes(value: object, path: str, expected: tuple[type[Struct], ...]) -> Iterator[TypeError | ValueError]:
    match value:
        case Struct():
            hints = declared_hints(type(value))
            for name, wire in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
                inner = getattr(value, name)
                if inner is not None:
                    structs = tuple(structs_in(hints[name])) if name in hints else ()
                    yield from _mistakes(inner, f"{path}.{wire}" if path else wire, structs)
        case Quantity() if not value.is_valid():
            yield ValueError(f'{path}: {value.text!r} is not a quantity; write one such as "500m", "2" or "1Gi"')
        case list():
            for place, item in enumerate(cast("list[Any]", value)):
                yield from _mistakes(item, f"{path}[{place}]", expected)
        case dict():
            yield from _mistakes_of_dict(cast("dict[str, Any]", value), path, expected)
        case _:
            pass


def _mistakes_of_dict(
    tree: dict[str, Any], path: str, expected: tuple[type[Struct], ...]
) -> Iterator[TypeError | ValueError]:
    """The mistakes of a map, or of a dict in the place of a struct."""
    is_map = any(isinstance(item, Struct) for item in tree.values())
    for struct in () if is_map else expected:
        if unknown := [key for key in tree if key not in struct.__struct_encode_fields__]:
            fields = ", ".join(f"{field}=..." for field in struct.__struct_fields__[1:4])
            yield TypeError(
                f"{path}: it is a dict with {unknown[0]!r}, which {struct.__name__} does not have; write"
                f" {struct.__name__}({fields})"
            )
    for key, item in tree.items():
        yield from _mistakes(item, f"{path}.{key}", expected if is_map else ())
