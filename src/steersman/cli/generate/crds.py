"""``steersman generate crds``: the CustomResourceDefinitions of resource classes, as YAML.

Guarantees
- A definition is whole: with all versions that the named modules declare or convert, and with their conversion.
- Versions that differ are never written without a conversion, which would make clients of one version remove fields of
  the other, unless ``without_conversion`` asks for it.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TypeGuard

from steersman.cli.console import show_data
from steersman.cli.failure import Failure, Misuse
from steersman.cli.files import write_files
from steersman.cli.generate.compatibility import compare_definitions
from steersman.cli.generate.webhooks import endpoint_of
from steersman.cli.targets.modules import load_module, look_here_first, module_and_name
from steersman.manager import Manager
from steersman.objects import GroupKind, Object, Tree
from steersman.schemas import crd_for, crd_yaml, version_differences
from steersman.webhooks import WebhookRegistration

Versions = dict[GroupKind, list[type[Object]]]


def generate_crds(
    modules: Sequence[str],
    *,
    service: str | None = None,
    without_conversion: bool = False,
    compatible_with: str | None = None,
    output: str | None = None,
    check: bool = False,
) -> int:
    """Write the CRDs of all resource classes in these modules; returns an exit code.

    The conversion of a kind with several versions comes from the manager in these modules that has its converter.
    With ``compatible_with``, what breaks stored objects or clients is printed in place of the CRDs, and if something
    does, no file is written.
    """
    if check and output is None:
        raise Misuse("--check compares with a file; name the file with -o")
    found, managers = named_classes(modules)
    try:
        text = crds_yaml(found, managers, service=service, without_conversion=without_conversion)
    except TypeError as error:
        raise Failure(str(error)) from error
    if compatible_with is not None:
        versions = (manager.webhooks.converted_versions().values() for manager in managers.values())
        converted = [cls for classes in versions for cls in chain(*classes)]
        is_compatible = compare_definitions(
            compatible_with,
            text,
            [*found, *converted],
            output=output,
            complete=not any(":" in module for module in modules),
            converted=without_conversion,
        )
        if not is_compatible:
            return 1
    if output is not None:
        return write_files({Path(output): text}, check=check)
    if compatible_with is None:
        show_data(text)
    return 0


def named_classes(modules: Sequence[str]) -> tuple[list[type[Object]], dict[str, Manager]]:
    """The resource classes and the managers in these modules, packages and names."""
    look_here_first()
    classes: dict[type[Object], None] = {}
    managers: dict[str, Manager] = {}
    for module, attribute in [module_and_name(text, "class", nothing="all of them") for text in modules]:
        inside = managers_in(module, attribute)
        managers |= inside
        if not inside or not attribute:
            classes |= dict.fromkeys(resource_classes(module, attribute, managers=inside))
    if not classes:
        raise Failure(
            f"{_shown(modules)} names no resource class, only a manager; also name the module with the classes, or the"
            " whole package"
        )
    return list(classes), managers


def crds_yaml(
    classes: Iterable[type[Object]],
    managers: Mapping[str, Manager],
    *,
    service: str | None = None,
    without_conversion: bool = False,
) -> str:
    """The CRDs of these classes as YAML, with the conversions of these managers, by what names them."""
    kinds: Versions = {}
    for cls in classes:
        kinds.setdefault(cls.gvk().group_kind, []).append(cls)
    conversions: dict[GroupKind, Tree] = {}
    for target, manager in managers.items():
        converted = manager.webhooks.converted_versions()
        for kind in converted.keys() & kinds.keys():
            endpoint = endpoint_of(manager, target=target, service=service)
            conversion = WebhookRegistration(manager.webhooks.hooks, endpoint, name=manager.name).conversion()
            if conversions.setdefault(kind, conversion) != conversion:
                raise Failure(f"two managers convert {kind}, at different addresses; name one of {_shown(managers)}")
            _complete(kind, kinds[kind], converted[kind], target)
    if not without_conversion:
        for kind, versions in kinds.items():
            if kind not in conversions:
                _check_alike(kind, versions)
    return "".join(crd_yaml(*versions, conversion=conversions.get(kind)) for kind, versions in sorted(kinds.items()))


def _complete(kind: GroupKind, versions: list[type[Object]], converted: Iterable[type[Object]], target: str) -> None:
    """Add the versions that a manager converts. Each version must have a converter."""
    for cls in converted:
        if cls not in versions:
            versions.append(cls)
    missing = [cls for cls in versions if cls not in converted]
    if missing:
        raise Failure(
            f"{kind}: {target} has no converter of {_shown(cls.__name__ for cls in missing)}; pass a VersionConverter to"
            " manager.add(...)"
        )


def _check_alike(kind: GroupKind, versions: Iterable[type[Object]]) -> None:
    """Raise if versions differ: the server would then remove fields, because nothing converts them."""
    differences = version_differences(crd_for(*versions))
    if differences:
        raise Failure(
            f"{kind}: its versions differ ({'; '.join(differences)}) and no manager of these modules converts them, so"
            " a client of one version would remove fields of the other. Also name the module of the manager that has"
            " their VersionConverter, or the whole package. If another program sets spec.conversion, pass"
            " --without-conversion"
        )


def managers_in(name: str, attribute: str) -> dict[str, Manager]:
    """The managers of a module and, for a package, of all its submodules, each once; or only the named one."""
    module = load_module(name)
    if attribute:
        value: object = getattr(module, attribute, None)
        return {f"{name}:{attribute}": value} if isinstance(value, Manager) else {}
    known = {
        id(value): (f"{below.__name__}:{place}", value)
        for below in _with_modules_below(module)
        for place, value in vars(below).items()
        if isinstance(value, Manager)
    }
    return dict(known.values())


def resource_classes(name: str, attribute: str, *, managers: Mapping[str, Manager] | None = None) -> list[type[Object]]:
    """The resource classes of a module and, for a package, of all its submodules; or only the named one.

    A module that has one of these ``managers`` needs no class.
    """
    module = load_module(name)
    if attribute:
        value: object = getattr(module, attribute, None)
        if not _declares_kind(value):
            has = _shown(cls.__name__ for cls in _kinds_in(module))
            raise Failure(f"{name} has no resource class {attribute}; it has {has}")
        return [value]
    found_kinds = dict.fromkeys(cls for below in _with_modules_below(module) for cls in _kinds_in(below))
    if not found_kinds and not managers:
        raise Failure(f"{name} has no resource class; name a module with a class derived from Resource[...]")
    return sorted(found_kinds, key=lambda cls: cls.gvk())


def _with_modules_below(module: ModuleType) -> Iterator[ModuleType]:
    """A module and, for a package, its submodules, except ``__main__``, which would run the program."""
    yield module
    for info in pkgutil.iter_modules(getattr(module, "__path__", ()), prefix=f"{module.__name__}."):
        if not info.name.endswith(".__main__"):
            yield from _with_modules_below(load_module(info.name))


def _kinds_in(module: ModuleType) -> list[type[Object]]:
    """Classes defined in a module or, for a package, in a submodule; not those imported from elsewhere."""
    own = (module.__name__, f"{module.__name__}.")
    classes = [
        value
        for value in vars(module).values()
        if _declares_kind(value) and (value.__module__ == own[0] or value.__module__.startswith(own[1]))
    ]
    return sorted(dict.fromkeys(classes), key=lambda cls: cls.gvk())


def _declares_kind(value: object) -> TypeGuard[type[Object]]:
    return isinstance(value, type) and issubclass(value, Object) and "__resource__" in vars(value)


def _shown(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
