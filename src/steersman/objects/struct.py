"""Typed JSON objects that distinguish unset fields from defaults.

Guarantees
- ``x: T | None = None``: ``None`` means unset and is never sent.
- ``x: T = d``: reads as ``d`` when absent and is always sent by create and apply, even when it equals ``d``.
- ``x: T`` (required): the constructor requires it, decoding does not, because a server's objects may be older or newer
  than our types. Absent reads as ``UNSET``, or as an empty list or dict for those types.
- Names are snake_case in Python and camelCase on the wire; a trailing underscore (``from_``) never reaches the wire.
"""

from __future__ import annotations

import copy
import importlib
import re
import types
from collections.abc import Callable, Mapping
from functools import cache, partial
from itertools import repeat
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar, dataclass_transform, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw

from steersman.objects.misuse import check_body, construction_error
from steersman.objects.options import ResourceOptions, resource_options
from steersman.objects.origins import ORIGIN_KEY, next_origin

if TYPE_CHECKING:
    from steersman.objects.options import PrinterColumn, ScaleSubresource, Scope

_EMPTY = re.compile(r"^(?:Annotated\[)?\s*(list|dict)\b")
_CLASS_VARIABLE = ("ClassVar", "typing.ClassVar")
_FIELD: type[Any] = type(msgspec.field())  # pyright: ignore[reportUnknownVariableType] - its type has no public name


def _empty_list() -> list[Any]:
    return []


def _empty_dict() -> dict[str, Any]:
    return {}


#: Not ``list`` and ``dict`` themselves: msgspec would treat these as omittable defaults.
_EMPTY_OF: dict[str, Callable[[], Any]] = {"list": _empty_list, "dict": _empty_dict}


@cache
def wire_name(name: str) -> str:
    """Convert a Python field name to its wire name."""
    head, *rest = name.rstrip("_").split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def field(
    *, default: Any = msgspec.NODEFAULT, default_factory: Any = msgspec.NODEFAULT, name: str | None = None
) -> Any:
    """Declare a field with an irregular wire name.

    ``pod_ip: str | None = field(default=None, name="podIP")``
    """
    declare: Any = msgspec.field
    return declare(default=default, default_factory=default_factory, name=name)


def _always_sent(default: Any) -> Callable[[], Any]:
    """Wrap a default into a factory, which ``omit_defaults`` does not recognize and therefore never omits."""
    if isinstance(default, (list, dict, set, msgspec.Struct)):
        return partial(copy.deepcopy, default)
    return repeat(default).__next__


def _empty_when_absent(annotation: Any) -> Callable[[], Any] | None:
    """The factory of the empty value that an absent required field reads as; None if its type has none."""
    if isinstance(annotation, str):
        found = _EMPTY.match(annotation)
        return _EMPTY_OF[found[1]] if found else None
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    container = get_origin(annotation) or annotation
    return _EMPTY_OF[container.__name__] if container in {list, dict} else None


def _is_class_variable(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.startswith(_CLASS_VARIABLE)
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def _own_annotations(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Read the annotations from the body of a class under construction."""
    if "__annotations__" in namespace:
        return dict(namespace["__annotations__"])
    annotate = namespace.get("__annotate_func__") or namespace.get("__annotate__")
    if annotate is None:
        return {}
    annotationlib: Any = importlib.import_module("annotationlib")  # Python 3.14 and later
    return dict(annotationlib.call_annotate_function(annotate, format=annotationlib.Format.FORWARDREF))


class _Fields:
    """Rewrites a class body so that msgspec treats defaults and required fields our way."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace
        self.annotations = _own_annotations(namespace)
        self.required: set[str] = set()
        self.defaults: dict[str, Any] = {}

    def rewrite(self) -> None:
        """Rewrite every field of the body."""
        for name, annotation in self.own_annotations().items():
            # Most fields are optional and need no rewrite. (The built-in kinds have thousands of fields: this loop is
            # most of the cost of a class beyond msgspec's own work.)
            if self.namespace.get(name, UNSET) is not None and name != "_origin":
                self._rewrite_one(name, annotation)

    def own_annotations(self) -> dict[str, Any]:
        """The annotations of fields, without class variables."""
        ignored = [name for name, annotation in self.annotations.items() if _is_class_variable(annotation)]
        if not ignored:
            return self.annotations
        return {name: annotation for name, annotation in self.annotations.items() if name not in ignored}

    def _rewrite_one(self, name: str, annotation: Any) -> None:
        declared: Any = self.namespace.get(name, msgspec.NODEFAULT)
        wire: str | None = None
        if isinstance(declared, _FIELD):
            wire = declared.name
            declared = declared.default if declared.default_factory is msgspec.NODEFAULT else declared.default_factory()
        if declared is msgspec.NODEFAULT:
            self.required.add(name)
            empty = _empty_when_absent(annotation)
            rewritten = (
                msgspec.field(default_factory=empty, name=wire) if empty else msgspec.field(default=UNSET, name=wire)
            )
        elif declared is None or declared is UNSET or isinstance(declared, Raw):
            rewritten = msgspec.field(default=declared, name=wire)
        else:
            self.defaults[name] = declared
            rewritten = msgspec.field(default_factory=_always_sent(declared), name=wire)
        self.namespace[name] = rewritten


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class StructMeta(msgspec.StructMeta):
    """The one metaclass: class options (``group=``, ``version=``, ...), keyword-only fields, explicit defaults."""

    if TYPE_CHECKING:

        def __new__(  # noqa: PYI034 - the class options that type checkers see
            cls,
            name: str,
            bases: tuple[type, ...],
            namespace: dict[str, Any],
            /,
            *,
            group: str = ...,
            version: str = ...,
            kind: str = ...,
            plural: str = ...,
            singular: str = ...,
            scope: Scope = ...,
            short_names: tuple[str, ...] = ...,
            categories: tuple[str, ...] = ...,
            columns: tuple[PrinterColumn, ...] = ...,
            selectable_fields: tuple[str, ...] = ...,
            scale: ScaleSubresource | None = ...,
            status_subresource: bool = ...,
            storage: bool = ...,
            served: bool = ...,
            deprecated: bool | str = ...,
            rules: tuple[Any, ...] = ...,
            frozen: bool = ...,
        ) -> StructMeta: ...

    else:

        def __new__(mcls, name, bases, namespace, /, **keywords):  # noqa: ANN001, ANN003, ANN204 - typed above
            """Rewrite the class body, then let msgspec build the class."""
            frozen = keywords.pop("frozen", False)
            rules = keywords.pop("rules", ())
            fields = _Fields(namespace)
            check_body(name, namespace, fields.annotations, rules)
            described = resource_options(name, bases, keywords)
            if described is not None:
                _declare_identity(fields, described)
                _declare_parameters(fields)
            fields.rewrite()
            namespace["__annotations__"] = fields.annotations
            cls = super().__new__(
                mcls, name, bases, namespace, kw_only=True, omit_defaults=True, rename=wire_name, frozen=frozen
            )
            # A redeclared field no longer has the default or requirement of its base.
            cls.__required__ = frozenset().union(
                fields.required, *(getattr(b, "__required__", frozenset()) - fields.annotations.keys() for b in bases)
            )
            inherited = _inherit(bases, "__declared_defaults__")
            cls.__declared_defaults__ = {
                field_name: default for field_name, default in inherited.items() if field_name not in fields.annotations
            } | fields.defaults
            cls.__own_annotations__ = dict(fields.own_annotations())
            cls.__rules__ = tuple(rules)
            if described is not None:
                cls.__resource__ = described
                cls.__check__()
            return cls

        def __call__(cls, *args, **kwargs):  # noqa: ANN002, ANN003, ANN204, N805
            """Construct; raises if a required field is missing."""
            if args or not cls.__required__ <= kwargs.keys():
                raise construction_error(cls, args, kwargs)
            try:
                return super().__call__(**kwargs)
            except TypeError:
                if kwargs.keys() <= set(cls.__struct_fields__):
                    raise
            raise construction_error(cls, args, kwargs)


def _inherit(bases: tuple[type, ...], attribute: str) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for parent in reversed(bases):
        merged |= getattr(parent, attribute, {})
    return merged


def _declare_identity(fields: _Fields, options: ResourceOptions) -> None:
    """Give objects of this class their apiVersion and kind."""
    for name, value in (("api_version", options.api_version), ("kind", options.kind)):
        fields.annotations[name] = str
        fields.namespace[name] = value


def _declare_parameters(fields: _Fields) -> None:
    """Resolve ``spec`` and ``status`` of ``Resource[S, T]``, so that no later code handles generics."""
    for parent in fields.namespace.get("__orig_bases__", ()):
        origin = get_origin(parent)
        if origin is not None and getattr(origin, "__generic_resource__", False):
            spec, status = get_args(parent)
            fields.annotations.setdefault("spec", spec)
            if isinstance(status, (type, types.UnionType)) and status is not type(None):
                status = status | None
            fields.annotations.setdefault("status", status)
            fields.namespace.setdefault("status", None)


class _Hidden:
    """The placeholder for a sensitive value."""

    def __repr__(self) -> str:
        return "<hidden>"


_HIDDEN = _Hidden()
StructT = TypeVar("StructT", bound="Struct")


# Declared here as well as on the metaclass: mypy uses the nearest base that declares it, which would be msgspec's own
# Struct, whose fields are positional.
@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class Struct(msgspec.Struct, metaclass=StructMeta):
    """Base of every typed JSON object: a part of a spec, a status, a whole resource."""

    if not TYPE_CHECKING:
        _origin: Any = msgspec.field(default_factory=next_origin, name=ORIGIN_KEY)

    __required__: ClassVar[frozenset[str]]
    __declared_defaults__: ClassVar[dict[str, Any]]
    __own_annotations__: ClassVar[dict[str, Any]]
    __rules__: ClassVar[tuple[Any, ...]]
    #: Fields whose values never appear in ``repr``.
    __sensitive__: ClassVar[frozenset[str]] = frozenset()

    #: Fields that ``repr`` omits because they would bury the others.
    __unshown__: ClassVar[frozenset[str]] = frozenset({"_origin"})

    @classmethod
    def only(cls, **fields: Any) -> Self:
        """An intent with only these fields: nothing is required, and no default is filled in.

        For server-side apply by several managers, each owning a part of an object:
        ``Site.only(metadata=ObjectMeta(name="home"), spec=SiteSpec.only(replicas=3))``.
        """
        left_out = {name: UNSET for name in cls.__struct_fields__ if name not in {"_origin", "api_version", "kind"}}
        if not fields.keys() <= left_out.keys():
            raise construction_error(cls, (), fields)
        return cls(**(left_out | fields))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        shown: list[tuple[str, Any]] = []
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name not in self.__unshown__ and value is not None and value is not UNSET:
                shown.append((name, _HIDDEN if name in self.__sensitive__ else value))
        return shown

    @classmethod
    def __check__(cls) -> None:
        """Check the declarations of the class; called when a class with a kind is defined."""


# msgspec resolves the annotations of all ancestors of a decoded class; it does not need those of class variables.
Struct.__annotations__ = {"_origin": Any}


def replace(struct: StructT, **changes: Any) -> StructT:
    """Copy with some fields changed; the copy keeps its origin."""
    return msgspec.structs.replace(struct, **changes)
