"""Python models from a description: one module or package for each group-version, as text.

Guarantees
- The same description gives the same text, in any input order, formatted like ``ruff format``.
- A generated type never sends what its user did not set. A default that the server fills in is documented on the field,
  but is not a Python default: sending a default with server-side apply would own the field. (With ``as_owner``, the
  models of your own CRD keep its defaults, so that the CRD can be generated from them again.)
- A field's wire name is spelled out wherever camel case alone would not give it.
- Types of ``steersman.objects`` and of an earlier generation (``library``) are imported, never generated twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from steersman import markers
from steersman.codegen.description import (
    NOTHING,
    Choice,
    Either,
    ListOf,
    MapOf,
    Marked,
    Model,
    ModelCatalog,
    Nested,
    Plain,
    Property,
    Reference,
    Type,
    inner_types,
    is_from_go,
    references_in,
)
from steersman.codegen.layout import (
    Alternatives,
    Expression,
    Keyword,
    assignment,
    call,
    class_line,
    docstring,
    flat,
    import_line,
    literal,
    name_list,
    subscript,
)
from steersman.codegen.names import class_name, field_name, field_names, module_name, pascal_case
from steersman.codegen.short_names import short_names
from steersman.codegen.values import (
    InexpressibleDefault,
    class_arguments,
    default_expression,
    marker_expression,
    needs_factory,
)
from steersman.markers import Nullable
from steersman.objects import wire_name

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
#: Types that ``steersman.objects`` already has.
OWN_TYPES: Final = ("Condition", "ListMeta", "ManagedFieldsEntry", "ObjectMeta", "OwnerReference")
#: A path above a class, as a package's module says it.
_PATH_AND_CLASS: Final = re.compile(r"^# (\S.*)\nclass (\w+)\(", re.MULTILINE)
_TYPING: Final = frozenset({"Annotated", "Any", "Literal"})
#: Fields with secret values, by definition.
_SENSITIVE: Final = {
    "io.k8s.api.core.v1.Secret": frozenset({"data", "stringData"}),
    "io.k8s.api.authentication.v1.TokenRequestStatus": frozenset({"token"}),
    "io.k8s.api.authentication.v1.TokenReviewSpec": frozenset({"token"}),
}


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where generated models go, and which types they may import."""

    #: The package of the modules; None: they import each other relatively.
    package: str | None = None
    #: Definitions with a class elsewhere: definition -> (module, class).
    library: dict[str, tuple[str, str]] = {}
    #: The source of the models, for the docstrings of modules with Kubernetes' own types: ``Kubernetes v1.37.1``. (A
    #: CRD is the same on every server and in every file, and so are its models.)
    source: str = ""
    as_owner: bool = False
    #: Write a group-version of CRDs as a package with a module for each kind, and short class names.
    packages: bool = False
    #: The class names of an earlier generation of packages: module -> path -> class. They are kept.
    kept: dict[str, dict[str, str]] = {}


def write_models(description: ModelCatalog, target: Target) -> dict[str, str]:
    """The text of each module, by its name: ``apps_v1``, or ``cert_manager_io_v1/certificate`` in a package."""
    placement = _Placement(description, target)
    written: dict[str, str] = {}
    for name, models in placement.modules.items():
        if target.packages and all(model.kind is not None and not is_from_go(model.definition) for model in models):
            written |= _package(name, models, placement)
        else:
            written[name] = _Module(name, models, placement).text()
    return written


def class_names_in(text: str) -> dict[str, str]:
    """Path -> class of the nested objects in a generated module of a package."""
    return {found[1]: found[2] for found in _PATH_AND_CLASS.finditer(text)}


def _package(name: str, models: list[Model], placement: _Placement) -> dict[str, str]:
    """The modules of a group-version, one for each kind."""
    written: dict[str, str] = {}
    exported: dict[str, list[str]] = {}
    kinds = {class_name(model.suggested_name, ()) for model in models}
    for model in models:
        kind = class_name(model.suggested_name, ())
        module = plain = field_name(model.suggested_name)
        number = 2
        while module in exported:
            module = f"{plain}_{number}"
            number += 1
        inside = [each.definition for each in _with_nested(model) if each is not model]
        names = short_names(kind, inside, placement.target.kept.get(f"{name}/{module}", {}))
        own = {f"{model.suggested_name}.{part}" for part in ("spec", "status")}
        beside = {each for path, each in names.items() if path in own} - kinds
        exported[module] = sorted({kind, *beside})
        classes = {model.definition: kind, **names}
        written[f"{name}/{module}"] = _Module(name, [model], placement, classes=classes).text()
    heading = _Module(name, models, placement).heading()
    imports = [line for module, names in sorted(exported.items()) for line in import_line(f".{module}", names)]
    everything = sorted(each for names in exported.values() for each in names)
    lines = [*heading, "# ruff: noqa", "", *imports, "", *name_list(everything)]
    return {f"{name}/__init__": "\n".join(lines) + "\n", **written}


class _Placement:
    """Assigns each model a module and a name, before any text is written."""

    def __init__(self, description: ModelCatalog, target: Target) -> None:
        self.target = target
        self.library = {f"{_META}.{name}": ("steersman.objects", name) for name in OWN_TYPES} | target.library
        own = {name: model for name, model in description.models.items() if name not in self.library}
        self.models = own
        names = self._module_names(description)
        homes = {name: names.get(model.package) for name, model in own.items()}
        self.modules: dict[str, list[Model]] = {}
        for name, home in homes.items():
            if home is not None:
                self.modules.setdefault(home, []).append(own[name])
        for models in self.modules.values():
            models.extend(self._homeless(models, homes))
            models.sort(key=lambda model: model.definition.rpartition(".")[2])
        self.modules = dict(sorted(self.modules.items()))
        self.homes = homes
        self.classes = {home: _named(models) for home, models in self.modules.items()}

    @staticmethod
    def _module_names(description: ModelCatalog) -> dict[str, str]:
        """Package -> module. Two group-versions never share a module."""
        names: dict[str, str] = {}
        taken: dict[str, Any] = {}
        for package, group_version in sorted(description.packages.items(), key=lambda entry: (entry[1], entry[0])):
            name = plain = module_name(group_version.group, group_version.version)
            number = 2
            while taken.setdefault(name, group_version) != group_version:
                name = f"{plain}_{number}"
                number += 1
            names[package] = name
        return names

    def _homeless(self, models: list[Model], homes: Mapping[str, str | None]) -> list[Model]:
        """Definitions of packages without a kind. Each module that needs them gets its own copy."""
        found: dict[str, Model] = {}
        waiting = list(models)
        while waiting:
            for name in references_in(waiting.pop()):
                if name not in found and name in homes and homes[name] is None:
                    found[name] = self.models[name]
                    waiting.append(self.models[name])
        return list(found.values())


def _with_nested(model: Model) -> Iterator[Model]:
    """A model after all models nested in it, so that a default can construct them."""
    waiting: list[Type] = [prop.type for prop in reversed(model.properties)]
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, Nested):
            yield from _with_nested(kind.model)
        waiting.extend(inner_types(kind))
    yield model


def _named(models: list[Model]) -> dict[str, str]:
    """Definition -> class name for a module. Models with their own name choose first."""
    names: dict[str, str] = {}
    for model in models:
        names[model.definition] = class_name(model.suggested_name, names.values())
    for model in models:
        for nested in _with_nested(model):
            if nested.definition not in names:
                names[nested.definition] = class_name(nested.suggested_name, names.values())
    return names


class _Module:
    """Writes one module."""

    def __init__(
        self, name: str, models: list[Model], placement: _Placement, *, classes: dict[str, str] | None = None
    ) -> None:
        self.name = name
        self.models = models
        self.placement = placement
        self.classes = placement.classes[name] if classes is None else classes
        #: Whether a comment says the path of each nested object, which its short name does not.
        self.says_paths = classes is not None
        self.imports: dict[str, dict[str, str]] = {}

    def text(self) -> str:
        body: list[str] = []
        for model in self.models:
            for each in _with_nested(model):
                path = [f"# {each.definition}"] if self.says_paths and each is not model else []
                body += ["", "", *path, *self._class(each)]
        exported = sorted(self.classes.values())
        if self.name == "meta_v1":
            exported = sorted([*exported, *(self.use(name) for name in OWN_TYPES)])
        lines = [*self.heading(), "# ruff: noqa", "", "from __future__ import annotations", "", *self._import_lines()]
        return "\n".join([*lines, "", *name_list(exported), *body]) + "\n"

    def use(self, name: str, module: str = "") -> str:
        """Import a name, by default one of a field's type or markers. Returns its spelling in this module."""
        own = "steersman.markers" if hasattr(markers, name) else "steersman.objects"
        module = module or own
        spelled = name
        if name in self.classes.values():
            spelled = f"_{name}" if module == own else pascal_case(module.rpartition(".")[2]) + name
        self.imports.setdefault(module, {})[name] = spelled
        return spelled

    def heading(self) -> list[str]:
        """The docstring of the module."""
        kinds = sorted(model.kind.kind for model in self.models if model.kind is not None)
        versions = sorted({model.kind.api_version for model in self.models if model.kind is not None})
        title = f"Kinds of {', '.join(versions)}: {', '.join(kinds)}." if kinds else "Types that kinds have in common."
        dated = self.placement.target.source and any(is_from_go(model.definition) for model in self.models)
        source = f" from {self.placement.target.source}" if dated else ""
        policy = (
            "Written by ``steersman generate models --own``. From here on these types are the source: edit them, and let "
            "``steersman generate crds`` write the CRD."
            if self.placement.target.as_owner
            else f"Generated by ``steersman generate models``{source}: do not edit, generate again. A field that the "
            "server fills in is ``None`` here, and unset, until the server has done so."
        )
        return docstring(f"{title}\n\n{policy}", indent=0)

    def _import_lines(self) -> list[str]:
        standard = {name for name in self.imports if name in {"typing", "datetime"}}
        others = sorted(self.imports.keys() - standard)
        lines: list[str] = []
        for module in sorted(standard):
            lines += import_line(module, sorted(self.imports[module], key=str.lower))
        if standard and others:
            lines.append("")
        for module in others:
            names = self.imports[module]
            spelled = [name if names[name] == name else f"{name} as {names[name]}" for name in sorted(names)]
            lines += import_line(module, spelled)
        return lines

    def _class(self, model: Model) -> list[str]:
        name = self.classes[model.definition]
        lines = class_line(name, class_arguments(model, name, self.use, as_owner=self.placement.target.as_owner))
        text = _paragraphs([self._class_text(model), *model.notes])
        lines += docstring(text)
        of_kind = model.kind is not None
        properties = model.properties
        names = field_names((prop.wire for prop in properties), of_kind=of_kind)
        hidden = {prop.wire for prop in properties if prop.sensitive} | _SENSITIVE.get(model.definition, frozenset())
        if hidden:
            shown = ", ".join(sorted(literal(names[wire]) for wire in hidden))
            lines += [*([""] if text else []), f"    __sensitive__ = frozenset({{{shown}}})"]
        for number, prop in enumerate(properties):
            opening = [""] if number or text or hidden else []
            lines += [*opening, *self._field(names[prop.wire], prop)]
        return lines if properties or text or hidden else [*lines, "    pass"]

    def _class_text(self, model: Model) -> str:
        if model.description or self.placement.target.as_owner:
            return model.description  # an owner's docstrings become the CRD's descriptions: invent none
        if model.kind is not None:
            return f"{model.kind.kind} of {model.kind.api_version}."
        kind, _, path = model.definition.partition(".")
        return f"``{path}`` of {kind}."

    def _field(self, name: str, prop: Property) -> list[str]:
        annotation = self._type(prop.type)
        texts = [prop.description, *prop.notes]
        value: Expression | None = None
        factory: Expression | None = None
        is_open = prop.required
        if prop.default is not NOTHING:
            value = self._default(prop)
            if value is None:
                texts.append(f"Default: ``{msgspec.json.encode(prop.default).decode()}``, filled in by the server.")
            elif needs_factory(prop.default):
                factory = f"lambda: {flat(value)}"
        if value is None and not is_open:
            value = "None"
        if (value == "None" or _holds_null(prop.type)) and annotation != "Any":
            members = annotation.members if isinstance(annotation, Alternatives) else (annotation,)
            annotation = Alternatives((*members, "None"))
        wire = prop.wire if wire_name(name) != prop.wire else None
        return [*assignment(name, annotation, self._value(value, factory, wire)), *docstring(_paragraphs(texts))]

    def _value(self, value: Expression | None, factory: Expression | None, wire: str | None) -> Expression | None:
        if wire is None and factory is None:
            return value
        items: list[Expression] = []
        if factory is not None:
            items.append(Keyword("default_factory", factory))
        elif value is not None:
            items.append(Keyword("default", value))
        if wire is not None:
            items.append(Keyword("name", literal(wire)))
        return call(self.use("field"), *items)

    def _default(self, prop: Property) -> Expression | None:
        if not self.placement.target.as_owner or prop.default is None:
            return None
        try:
            return default_expression(prop.type, prop.default, self.use, lambda model: self.classes[model.definition])
        except InexpressibleDefault:
            return None

    def _type(self, kind: Type) -> Expression:
        spelled: Expression
        match kind:
            case Plain(name):
                spelled = self._plain(name)
            case Choice(values):
                spelled = subscript(self.use("Literal", "typing"), *map(literal, values))
            case Reference(definition):
                spelled = self._class_of(definition)
            case Nested(model):
                spelled = self.classes[model.definition]
            case ListOf(item):
                spelled = subscript("list", self._type(item))
            case MapOf(value):
                spelled = subscript("dict", "str", self._type(value))
            case Either(members):
                spelled = Alternatives(tuple(self._type(member) for member in members))
            case Marked(inner, markers):
                markers_spelled = [marker_expression(marker, self.use) for marker in markers]
                spelled = subscript(self.use("Annotated", "typing"), self._type(inner), *markers_spelled)
        return spelled

    def _plain(self, name: str) -> str:
        if name in _TYPING:
            return self.use(name, "typing")
        if name == "datetime":
            return self.use(name, "datetime")
        return self.use(name) if name[0].isupper() else name

    def _class_of(self, definition: str) -> str:
        if definition in self.placement.library:
            module, name = self.placement.library[definition]
            return self.use(name, module)
        home = self.placement.homes.get(definition)
        if home is None or home == self.name:
            return self.classes[definition]
        package = self.placement.target.package
        module = f".{home}" if package is None else f"{package}.{home}"
        return self.use(self.placement.classes[home][definition], module)


def _holds_null(kind: Type) -> bool:
    return isinstance(kind, Marked) and Nullable() in kind.markers


def _paragraphs(texts: list[str]) -> str:
    return "\n\n".join(text.strip() for text in texts if text.strip())
