"""What a program adds to custom kinds beyond their definitions: conversion, validation, subresources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from steersman.apiserver.custom_resources.conversion import Converter
from steersman.apiserver.handlers import SubresourceHandler
from steersman.objects import Object, ResourceOptions
from steersman.objects.field_problems import FieldProblem

#: Returns the problems of an object, given its old and new state as JSON trees; the old one is None for a new object.
Validator: TypeAlias = Callable[[Mapping[str, Any] | None, Mapping[str, Any]], Iterable[FieldProblem]]

_VERBS = frozenset({"create", "delete", "get", "patch", "update"})
_RESERVED = frozenset({"status", "scale"})


class CustomSubresource(msgspec.Struct, frozen=True, kw_only=True):
    """A subresource of a custom kind: ``CustomSubresource(kind=Site, name="log", handler=read_log)``."""

    kind: type[Object]
    name: str
    handler: SubresourceHandler
    verbs: tuple[str, ...] = ("get",)
    #: The content type of answers that are bytes or streams.
    content_type: str = "text/plain"


class Extension(msgspec.Struct, kw_only=True):
    """The additions to one kind, in all its versions."""

    conversion: Converter | None = None
    validator: Validator | None = None
    subresources: list[CustomSubresource] = []


#: Additions by the name of the CRD.
Extensions: TypeAlias = Mapping[str, Extension]
NONE = Extension()


def extensions_of(
    conversions: Mapping[str, Converter],
    validators: Mapping[type[Object], Validator],
    subresources: Iterable[CustomSubresource],
) -> Extensions:
    """The extensions of each kind. Raises for subresources that cannot be served."""
    found: dict[str, Extension] = {name: Extension(conversion=each) for name, each in conversions.items()}
    for kind, validator in validators.items():
        found.setdefault(_crd_name(kind, "validators"), Extension()).validator = validator
    for each in subresources:
        _check(each)
        present = found.setdefault(_crd_name(each.kind, "subresources"), Extension()).subresources
        if any(each.name == other.name for other in present):
            raise ValueError(f"subresources: {each.kind.__qualname__} has {each.name} twice; leave one of them out")
        present.append(each)
    return found


def _check(each: CustomSubresource) -> None:
    if each.name in _RESERVED or not each.name.isalnum():
        raise ValueError(f"subresources: {each.name!r} cannot be the name of a subresource; use letters and digits")
    unknown = [verb for verb in each.verbs if verb not in _VERBS]
    if unknown or not each.verbs:
        raise ValueError(f"subresources: the verbs of {each.name} must be among {', '.join(sorted(_VERBS))}")


def _crd_name(kind: type[Object], option: str) -> str:
    options: ResourceOptions | None = getattr(kind, "__resource__", None)
    if options is None:
        raise TypeError(f"{option}: {kind!r} declares no kind; pass a class derived from Resource[...]")
    return f"{options.plural}.{options.group}"
