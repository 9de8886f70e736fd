"""``steersman convert``: prints the objects that an application becomes.

Guarantees
- The output is what ``steersman up`` applies, without fields that have their defaults. The same files give the same output.
- Secrets are masked, unless ``--show-secrets`` is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast

import msgspec
import yaml

from steersman.application import ApplicationError, application_objects
from steersman.cli.console import show_data
from steersman.cli.failure import Failure
from steersman.cli.files import say
from steersman.cli.up.places import PlaceOptions
from steersman.golang import YamlBlockDumper
from steersman.objects import Object, Struct, Tree, Unstructured, wire_names
from steersman.projects import ServiceSelection
from steersman.telemetry import rendered
from steersman.workloads import MASK, masked


class ConvertOptions(PlaceOptions, frozen=True, kw_only=True):
    """The options of the command line."""

    names: Sequence[str] = ()
    profiles: Sequence[str] = ()
    format: Literal["yaml", "json"] = "yaml"
    show_secrets: bool = False


def run_convert(options: ConvertOptions) -> int:
    """Print the objects; returns an exit code."""
    selection = ServiceSelection(names=tuple(options.names), profiles=tuple(options.profiles))
    try:
        application = options.source().load(selection)
        objects = application_objects(application, project=application.name)
    except ApplicationError as error:
        raise Failure(f"the application has errors:\n{error}") from error
    for each in application.warnings:
        say(f"warning: {each}")
    trees = [printed_tree(each, show_secrets=options.show_secrets) for each in objects]
    show_data(_json(trees) if options.format == "json" else _yaml(trees))
    return 0


def printed_tree(obj: Object | Unstructured, *, show_secrets: bool = False) -> Tree:
    """An object as a JSON tree, without fields that have their defaults."""
    tree: Tree = obj.tree if isinstance(obj, Unstructured) else _without_defaults(obj)
    return tree if show_secrets else _masked(tree, is_secret=tree.get("kind") == "Secret")


def _without_defaults(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_defaults(each) for each in value]  # type: ignore[misc]
    if not isinstance(value, Struct):
        return value
    names = wire_names(type(value))
    kept: Tree = {}
    for field in msgspec.structs.fields(value):
        content = getattr(value, field.name)
        if field.name not in names or content is None or content is msgspec.UNSET:
            continue
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        if content != default or isinstance(value, Object):
            kept[names[field.name]] = _without_defaults(content)
    return kept


def _masked(value: Any, *, is_secret: bool = False) -> Any:
    """The tree with the mask in place of secrets: variables by their name and value, and the contents of files."""
    if isinstance(value, list):
        return [_masked(each) for each in value]  # type: ignore[misc]
    if not isinstance(value, dict):
        return value
    tree = cast("Tree", value)
    result: Tree = {}
    for key, each in tree.items():
        if is_secret and key in {"data", "stringData"} and isinstance(each, dict):
            result[key] = dict.fromkeys(each, MASK)  # type: ignore[arg-type]
        elif key in {"contents", "rawContents"} or (key == "value" and "id" in tree):
            result[key] = MASK
        elif key == "value" and isinstance(each, str):
            result[key] = masked(str(tree.get("name", tree.get("key", ""))), each)
        else:
            result[key] = _masked(each)
    return result


def _json(trees: list[Tree]) -> str:
    """A Kubernetes List."""
    document = {"apiVersion": "v1", "kind": "List", "items": trees}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _yaml(trees: list[Tree]) -> str:
    text = _dumped(trees, allow_unicode=True)
    # PyYAML leaves characters that reorder text; in ASCII the values are the same.
    return text if rendered(text, colors=False) == text else _dumped(trees, allow_unicode=False)


def _dumped(trees: list[Tree], *, allow_unicode: bool) -> str:
    dumped: str = yaml.dump_all(
        trees, Dumper=YamlBlockDumper, sort_keys=False, explicit_start=True, width=120, allow_unicode=allow_unicode
    )
    return dumped
