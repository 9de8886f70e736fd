"""The options of a kind's class: ``class Site(Resource[...], group=..., version=...)``.

Guarantee: an option that a server would reject or misread is a TypeError when the class is defined. The error names the
class, the option and what to write instead.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal, cast, get_args

import msgspec

Scope = Literal["Namespaced", "Cluster"]
ColumnType = Literal["integer", "number", "string", "boolean", "date"]

#: RFC 1035: the form of versions, plurals and other names in an API path.
_LABEL: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_LABEL_MAX: Final = 63
#: RFC 1123: groups. Only the group of a CRD needs a dot: built-in groups such as apps have none.
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_MAX: Final = 253


class PrinterColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of ``kubectl get``: ``PrinterColumn(name="Ready", type="integer", json_path=".status.readyReplicas")``."""

    name: str
    type: ColumnType
    json_path: str
    description: str = ""
    format: str = ""
    priority: int = 0


class ScaleSubresource(msgspec.Struct, frozen=True, kw_only=True):
    """The scale subresource: the paths of the desired and the actual number of replicas."""

    spec_replicas_path: str = ".spec.replicas"
    status_replicas_path: str = ".status.replicas"
    label_selector_path: str | None = None


class ResourceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a kind and how a server presents it."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    scope: Scope = "Namespaced"
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[PrinterColumn, ...] = ()
    selectable_fields: tuple[str, ...] = ()
    scale: ScaleSubresource | None = None
    #: None: a status subresource exists if the class declares a status.
    status_subresource: bool | None = None
    storage: bool = True
    served: bool = True
    #: A string is the warning that clients see.
    deprecated: bool | str = False

    @property
    def api_version(self) -> str:
        """``group/version``, or the version alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def namespaced(self) -> bool:
        """Whether objects of this kind live in namespaces."""
        return self.scope == "Namespaced"


def plural_of(kind: str) -> str:
    """Guess the resource name of a kind as Kubernetes does: ``Site`` -> ``sites``, ``Policy`` -> ``policies``."""
    singular = kind.lower()
    if singular.endswith("s"):
        return singular + "es"
    if singular.endswith("y"):
        return singular[:-1] + "ies"
    return singular + "s"


def resource_options(class_name: str, bases: tuple[type, ...], keywords: dict[str, Any]) -> ResourceOptions | None:
    """Parse the class keywords; None if the class does not declare a kind."""
    if not keywords:
        return None
    unknown = keywords.keys() - set(ResourceOptions.__struct_fields__)
    if unknown:
        known = ", ".join(ResourceOptions.__struct_fields__)
        raise TypeError(f"class {class_name}: unknown option {', '.join(sorted(unknown))}; the options are {known}")
    if not any(getattr(parent, "__may_be_a_kind__", False) for parent in bases):
        raise TypeError(
            f"class {class_name}: {', '.join(sorted(keywords))} declare a kind; derive the class from Resource[...] or"
            " Object"
        )
    if "version" not in keywords or "group" not in keywords:
        missing = next(name for name in ("version", "group") if name not in keywords)
        raise TypeError(
            f'class {class_name}: {missing}= is missing; pass both, such as group="web.example.com", version="v1"'
        )
    kind: Any = keywords.pop("kind", class_name)
    check = _Checks(class_name)
    check.group(
        keywords["group"], of_a_resource=any(getattr(parent, "__generic_resource__", False) for parent in bases)
    )
    check.label("version", keywords["version"], example="v1")
    check.kind(kind)
    singular = keywords.pop("singular", kind.lower())
    plural = keywords.pop("plural", plural_of(kind))
    check.label("plural", plural, example=plural_of(kind))
    check.label("singular", singular, example=kind.lower())
    check.presentation(keywords)
    return ResourceOptions(kind=kind, plural=plural, singular=singular, **keywords)


class _Checks:
    """Rejects options that would fail later, elsewhere, or silently."""

    def __init__(self, class_name: str) -> None:
        self._class_name = class_name

    def _refuse(self, option: str, value: object, why: str) -> TypeError:
        return TypeError(f"class {self._class_name}: {option}={_spelled(value)} {why}")

    def group(self, group: object, *, of_a_resource: bool) -> None:
        """A group is a domain name; the empty group is Kubernetes' own and closed to other resources."""
        if group == "" and of_a_resource:
            raise self._refuse(
                "group", group, 'is the core group of Kubernetes; write a domain, such as group="web.example.com"'
            )
        if group != "" and not _is_name(group, _SUBDOMAIN, _SUBDOMAIN_MAX):
            raise self._refuse(
                "group",
                group,
                "is not a domain name: use lower case letters, digits, - and dots between them; "
                'write one such as group="web.example.com"',
            )

    def label(self, option: str, value: object, *, example: str) -> None:
        """A name in an API path."""
        if not _is_name(value, _LABEL, _LABEL_MAX):
            raise self._refuse(
                option,
                value,
                f"is not a valid API name: use at most {_LABEL_MAX} lower case letters, digits and -, starting with a "
                f"letter; write one such as {_spelled(example if _LABEL.fullmatch(example) else 'sites')}",
            )

    def kind(self, kind: object) -> None:
        """A kind is a label in CamelCase."""
        if not isinstance(kind, str) or not _is_name(kind.lower(), _LABEL, _LABEL_MAX):
            raise self._refuse(
                "kind",
                kind,
                f"is not a valid kind: use at most {_LABEL_MAX} letters and digits, starting with a letter; "
                'write one such as kind="Site"',
            )

    def presentation(self, keywords: dict[str, Any]) -> None:
        """Check how a server presents the kind."""
        scope = keywords.get("scope", "Namespaced")
        if scope not in get_args(Scope):
            meant = next((argument for argument in get_args(Scope) if argument.lower() == str(scope).lower()), None)
            todo = f'write scope="{meant}"' if meant else "write one of them"
            raise self._refuse("scope", scope, f'is neither "Namespaced" nor "Cluster"; {todo}')
        for option, example in (("short_names", "st"), ("categories", "all"), ("selectable_fields", ".spec.mode")):
            for text in self._items(option, keywords.get(option, ()), example=_spelled(example)):
                if not isinstance(text, str):
                    raise self._refuse(option, keywords[option], f'must contain strings; write {option}=("{example}",)')
                if option != "selectable_fields":
                    self.label(option, text, example=example)
        for column in self._items("columns", keywords.get("columns", ()), example="PrinterColumn(...)"):
            self._column(column)
        scale = keywords.get("scale")
        if scale is not None and not isinstance(scale, ScaleSubresource):
            raise self._refuse("scale", scale, "is not a ScaleSubresource; write scale=ScaleSubresource()")

    def _items(self, option: str, value: object, *, example: str) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return cast("tuple[Any, ...]", value)
        one = _spelled(value) if isinstance(value, (str, PrinterColumn)) else example
        raise self._refuse(option, value, f"is not a tuple; write {option}=({one},)")

    def _column(self, column: object) -> None:
        if not isinstance(column, PrinterColumn):
            raise self._refuse(
                "columns",
                (column,),
                "must contain printer columns, such as "
                'PrinterColumn(name="Ready", type="integer", json_path=".status.readyReplicas")',
            )
        if column.type not in get_args(ColumnType):
            known = ", ".join(map(_spelled, get_args(ColumnType)))
            raise TypeError(
                f"class {self._class_name}: the column {_spelled(column.name)} has the unknown type "
                f"{_spelled(column.type)}; write one of {known}"
            )


def _is_name(value: object, form: re.Pattern[str], longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest and form.fullmatch(value) is not None


def _spelled(value: object) -> str:
    """A value in Python syntax, with strings in double quotes."""
    return f'"{value}"' if isinstance(value, str) and value.isprintable() and '"' not in value else repr(value)
