"""What a class says about its kind: the options of ``class Site(Resource[...], group=..., version=...)``."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Scope = Literal["Namespaced", "Cluster"]


class PrinterColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of ``kubectl get``: ``PrinterColumn(name="Ready", type="integer", json_path=".status.readyReplicas")``."""

    name: str
    type: Literal["integer", "number", "string", "boolean", "date"]
    json_path: str
    description: str = ""
    format: str = ""
    priority: int = 0


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """The scale subresource: which fields hold the wanted and the present number of replicas."""

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
    scale: Scale | None = None
    #: None: a status subresource exists if the class declares a status.
    status_subresource: bool | None = None
    storage: bool = True
    served: bool = True
    #: A text is the warning that clients see.
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
    """Read the class keywords; None if the class does not declare a kind."""
    if not keywords:
        return None
    unknown = keywords.keys() - set(ResourceOptions.__struct_fields__)
    if unknown:
        known = ", ".join(ResourceOptions.__struct_fields__)
        raise TypeError(f"class {class_name}: unknown option {', '.join(sorted(unknown))}; the options are {known}")
    if not any(getattr(parent, "__may_be_a_kind__", False) for parent in bases):
        raise TypeError(
            f"class {class_name}: {', '.join(sorted(keywords))} describe a kind, and only a class derived from Resource[...] "
            "or Object is one"
        )
    if "version" not in keywords or "group" not in keywords:
        raise TypeError(f'class {class_name}: say both, such as group="web.example.com", version="v1"')
    kind = keywords.pop("kind", class_name)
    singular = keywords.pop("singular", kind.lower())
    plural = keywords.pop("plural", None) or plural_of(kind)
    return ResourceOptions(kind=kind, plural=plural, singular=singular, **keywords)
