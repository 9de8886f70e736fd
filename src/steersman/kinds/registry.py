"""Looks up the classes of built-in kinds; imports a module when one of its classes is requested."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from steersman.kinds import index
from steersman.objects import GroupVersion, GroupVersionKind, Object, Struct

_MODULES = {GroupVersion(group, version): module for module, (group, version) in index.MODULES.items()}


def all_group_versions() -> list[GroupVersion]:
    """All group-versions of this package."""
    return sorted(_MODULES)


def all_kinds() -> list[GroupVersionKind]:
    """All kinds of this package."""
    return sorted(
        GroupVersionKind(group_version.group, group_version.version, kind)
        for group_version, module in _MODULES.items()
        for kind in index.KINDS[module]
    )


def module_of(group_version: GroupVersion) -> str:
    """The name of a group-version's module in this package; LookupError if there is none."""
    try:
        return _MODULES[group_version]
    except KeyError:
        raise LookupError(
            f"{group_version} is not a stable built-in group-version of Kubernetes {index.KUBERNETES}"
        ) from None


def class_of(kind: GroupVersionKind) -> type[Object]:
    """The class of a built-in kind; LookupError for any other."""
    module = module_of(kind.group_version)
    if kind.kind not in index.KINDS[module]:
        raise LookupError(f"{kind.api_version} of Kubernetes {index.KUBERNETES} has no kind {kind.kind}")
    found: Any = getattr(import_module(f"steersman.kinds.{module}"), kind.kind)
    return found


def class_of_definition(name: str) -> type[Struct] | None:
    """The class generated from a definition such as ``io.k8s.api.core.v1.Container``; None if there is none."""
    package, _, last = name.rpartition(".")
    module = index.PACKAGES.get(package)
    found: Any = getattr(import_module(f"steersman.kinds.{module}"), last, None) if module else None
    return found if isinstance(found, type) and issubclass(found, Struct) else None
