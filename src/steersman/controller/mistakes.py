"""Common mistakes in reconcilers: from the exception that they end in to what to write instead. Pure."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from contextlib import suppress

from steersman.objects import Object, Resource, Struct, nearest

_NOT_AWAITABLE = re.compile(r"object (\w+) can't be used in 'await' expression")
_NO_ATTRIBUTE = re.compile(r"'(\w+)' object has no attribute '(\w+)'")


def explanation_of(error: BaseException) -> str:
    """What to write instead of the mistake that raised this exception; empty for an unknown one."""
    with suppress(Exception):  # user code: even str() of its exception may raise
        if isinstance(error, TypeError) and (found := _NOT_AWAITABLE.fullmatch(str(error))):
            return f"The call returns a {found[1]} at once. Remove await before the call."
        if isinstance(error, AttributeError) and (found := _NO_ATTRIBUTE.match(str(error))):
            return _attribute_explanation(error, *found.groups())
    return ""


def _attribute_explanation(error: AttributeError, kind: str, attribute: str) -> str:
    if kind == "coroutine":
        return "The value comes from a call without await. Write await before the call."
    if kind == "NoneType":
        return _missing_status(error)
    return _misspelled(error, kind, attribute)


def _missing_status(error: AttributeError) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    line = (frames[-1].line or "") if frames else ""
    if ".status." not in line:
        return ""
    owner = line.partition(".status.")[0].rpartition(" ")[2].rpartition("(")[2]
    return (
        f"The status of a new object is None. Write {owner}.ensure_status() instead of {owner}.status,"
        " or set the status of a built-in kind before this line"
    )


def _misspelled(error: AttributeError, name: str, attribute: str) -> str:
    """The nearest field of a type. Python keeps the object of a failed read, but not that of a failed assignment."""
    read: object = getattr(error, "obj", None)
    kinds = [type(read)] if isinstance(read, Struct) else [kind for kind in _structs() if kind.__name__ == name]
    if attribute == "ensure_status" and isinstance(read, Object) and not isinstance(read, Resource):
        return f"{name} derives from Object. Derive it from Resource[{name}Spec, {name}Status] to give it a status"
    for kind in kinds:
        if near := nearest(
            attribute, [*kind.__struct_fields__, *(each for each in dir(kind) if not each.startswith("_"))]
        ):
            return f"Did you mean {near}?"
    fields = [field for field in kinds[0].__struct_fields__ if not field.startswith("_")] if kinds else []
    return f"Its fields are {', '.join(fields)}" if fields else ""


def _structs(kind: type[Struct] = Struct) -> Iterator[type[Struct]]:
    for each in kind.__subclasses__():
        yield each
        yield from _structs(each)
