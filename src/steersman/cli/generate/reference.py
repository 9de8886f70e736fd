"""``steersman generate reference``: a Markdown page for each kind of resource classes.

Guarantees
- A page depends only on the classes and managers, so a generated file changes only when they do.
- Descriptions are text: nothing in them becomes a table, a heading or HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import yaml

from steersman.cli.console import show_data
from steersman.cli.failure import Failure, Misuse
from steersman.cli.files import parsed_documents, write_files
from steersman.cli.generate.crds import crds_yaml, named_classes
from steersman.golang import YamlDumper
from steersman.manager import Manager
from steersman.objects import Tree
from steersman.patterns import MachineReconciler
from steersman.schemas import validate_tree

Schema = Mapping[str, Any]

_LIMITS: Final = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "multipleOf": "a multiple of {}",
    "minLength": "length at least {}",
    "maxLength": "length at most {}",
    "pattern": "matches {}",
    "format": "format {}",
    "minItems": "length at least {}",
    "maxItems": "length at most {}",
    "minProperties": "size at least {}",
    "maxProperties": "size at most {}",
}
_EXCLUSIVE: Final = {"minimum": "more than {}", "maximum": "less than {}"}
_TYPE_META: Final = frozenset({"apiVersion", "kind", "metadata"})
#: Formats that only say how large a number is.
_SIZES: Final = frozenset({"int64", "double"})
_SAMPLES: Final = {"date-time": "2030-01-01T00:00:00Z", "date": "2030-01-01", "duration": "1h", "byte": "dGV4dA=="}
_ANCHOR: Final = re.compile(r"[^\w\- ]")
#: Characters that begin something else than text in Markdown.
_SPECIAL: Final = str.maketrans({"|": r"\|", "<": "&lt;", "\n": " "})
#: What begins a heading, a quotation, a list, a ruler or code at the start of a line.
_OPENING: Final = re.compile(r"^(?:#|>|[-+*](?= )|---|~~~|```)")


def generate_reference(modules: Sequence[str], *, output: str | None = None, check: bool = False) -> int:
    """Write a page for each kind of these modules; returns an exit code."""
    if check and output is None:
        raise Misuse("--check compares with a folder; name the folder with -o")
    classes, managers = named_classes(modules)
    try:
        text = crds_yaml(classes, managers, without_conversion=True)
    except TypeError as error:
        raise Failure(str(error)) from error
    conditions = _conditions(managers.values())
    pages: dict[str, str] = {}
    for tree in parsed_documents(text, "the definitions"):
        kind = f"{tree['spec']['names']['kind']}.{tree['spec']['group']}"
        pages[f"{tree['metadata']['name']}.md"] = "\n".join(_page(tree, conditions.get(kind, {}))) + "\n"
    if output is None:
        show_data("\n".join(pages.values()))
        return 0
    return write_files({Path(output) / name: page for name, page in pages.items()}, check=check)


def _conditions(managers: Iterable[Manager]) -> dict[str, dict[str, str]]:
    """The conditions that managers report, with their meaning, by kind and group."""
    meanings: dict[str, dict[str, str]] = {}
    for blueprint in [each for manager in managers for each in manager.blueprints]:
        reconciler = blueprint.reconciler
        if not isinstance(reconciler, MachineReconciler):
            continue
        graph = reconciler.machine.graph
        of_kind = meanings.setdefault(str(reconciler.machine.kind.gvk().group_kind), {})
        if len(graph.states) > 1:
            of_kind.setdefault(graph.ready, "All of the following.")
        for state in graph.states:
            of_kind.setdefault(state.condition, state.words or f"The state `{state.name}`.")
    return meanings


def _page(tree: Tree, conditions: Mapping[str, str]) -> Iterator[str]:
    """The lines of the page of a kind."""
    spec = tree["spec"]
    names = spec["names"]
    versions = sorted(spec["versions"], key=lambda each: not each["storage"])
    yield f"# {names['kind']}"
    if description := _schema(versions[0]).get("description"):
        yield from ("", _text(description))
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield f"| Group | `{spec['group']}` |"
    yield f"| Resource | `{names['plural']}`{''.join(f', `{each}`' for each in names.get('shortNames', ()))} |"
    yield f"| Scope | {'a namespace' if spec['scope'] == 'Namespaced' else 'the cluster'} |"
    for version in versions:
        state = [
            "stored" if version["storage"] else "",
            "" if version["served"] else "not served",
            f"deprecated {_text(version.get('deprecationWarning', ''))}".strip() if version.get("deprecated") else "",
        ]
        yield f"| Version | [`{version['name']}`](#{_anchor(version['name'])}) {', '.join(filter(None, state))} |"
    if conditions:
        yield from ("", "## Conditions", "", "| Condition | True when this is done |", "|---|---|")
        yield from (f"| `{name}` | {_text(words)} |" for name, words in conditions.items())
    for version in versions:
        yield from _version(spec, version)


def _version(spec: Tree, version: Tree) -> Iterator[str]:
    """The section of a version: an example, then a table for each object in it."""
    schema = _schema(version)
    yield from ("", f"## {version['name']}", "")
    example = yaml.dump(_example(spec, version), sort_keys=False, allow_unicode=True, Dumper=YamlDumper)
    yield from ("```yaml", example.rstrip("\n"), "```")
    for name, field in _properties(schema).items():
        if name not in _TYPE_META:
            yield from _section(field, version["name"], name)
    if rules := [*_rules(schema)]:
        yield from ("", "Rules of the whole object:", "", *rules)


def _section(schema: Schema, version: str, path: str) -> Iterator[str]:
    """The table of the fields of an object, then those of the objects inside it."""
    schema, path = _innermost(schema, path)
    fields = _properties(schema)
    if not fields:
        return
    yield from ("", f"### {version} {path}", "")
    if description := schema.get("description"):
        yield from (_text(description), "")
    yield "| Field | Type | Default | Constraints | Description |"
    yield "|---|---|---|---|---|"
    required = schema.get("required") or ()
    for name, field in fields.items():
        default = _json(field["default"]) if "default" in field else ""
        limits = ["required"] if name in required else []
        limits += _limits(field)
        words = _text(field.get("description", ""))
        yield f"| `{name}` | {_type(field, version, f'{path}.{name}')} | {default} | {', '.join(limits)} | {words} |"
    if rules := [*_rules(schema)]:
        yield from ("", "Rules:", "", *rules)
    for name, field in fields.items():
        yield from _section(field, version, f"{path}.{name}")


def _innermost(schema: Schema, path: str) -> tuple[Schema, str]:
    """The items of lists and the values of maps, down to what is neither."""
    while True:
        if isinstance(schema.get("items"), dict):
            schema, path = schema["items"], f"{path}[]"
        elif isinstance(schema.get("additionalProperties"), dict):
            schema, path = schema["additionalProperties"], f"{path}{{}}"
        else:
            return schema, path


def _type(schema: Schema, version: str, path: str) -> str:
    """The type of a value in words."""
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity" if schema.get("pattern") else "integer or string"
    if isinstance(schema.get("items"), dict):
        return f"list of {_type(schema['items'], version, f'{path}[]')}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"map of {_type(schema['additionalProperties'], version, f'{path}{{}}')}"
    if _properties(schema):
        return f"[object](#{_anchor(f'{version} {path}')})"
    kind = schema.get("type") or "any"
    return "any object" if kind == "object" else kind


def _limits(schema: Schema) -> list[str]:
    """The constraints of a value in words."""
    limits: list[str] = []
    if schema.get("enum"):
        limits.append(f"one of {', '.join(map(_json, schema['enum']))}")
    for keyword, words in _LIMITS.items():
        value = schema.get(keyword)
        is_quantity = keyword == "pattern" and schema.get("x-kubernetes-int-or-string")
        if value is None or is_quantity or value in _SIZES:
            continue
        is_exclusive = schema.get(f"exclusive{keyword.capitalize()}")
        said = _EXCLUSIVE.get(keyword, words) if is_exclusive else words
        limits.append(said.format(_code(value) if isinstance(value, str) else value))
    if schema.get("nullable"):
        limits.append("may be null")
    match schema.get("x-kubernetes-list-type"):
        case "map":
            limits.append(f"unique by {', '.join(f'`{each}`' for each in schema['x-kubernetes-list-map-keys'])}")
        case "set":
            limits.append("unique items")
        case _:
            pass
    # The rules of an object are below its table.
    limits += [] if _properties(schema) else [words.removeprefix("- ") for words in _rules(schema)]
    inner = schema.get("items") or schema.get("additionalProperties")
    if isinstance(inner, dict):
        of_each = _limits(cast("Schema", inner))
        limits += [f"each {words}" for words in of_each]
    return limits


def _rules(schema: Schema) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations") or ():
        yield f"- {_text(rule['message'])}" if rule.get("message") else f"- {_code(rule['rule'])}"


def _example(spec: Tree, version: Tree) -> Tree:
    """A manifest with the required fields, and those that have an example."""
    metadata = {"name": "example"}
    if spec["scope"] == "Namespaced":
        metadata["namespace"] = "default"
    manifest: Tree = {
        "apiVersion": f"{spec['group']}/{version['name']}",
        "kind": spec["names"]["kind"],
        "metadata": metadata,
    }
    fields = _properties(_schema(version))
    return manifest | {name: _sample(field) for name, field in fields.items() if name not in {*_TYPE_META, "status"}}


def _sample(schema: Schema) -> Any:  # noqa: PLR0911 - one for each type
    """A value that fits a schema, as far as the schema determines it."""
    for value in (schema.get("example"), schema.get("default"), *(schema.get("enum") or ())[:1]):
        if value is not None:
            return value
    match schema.get("type"):
        case "object":
            required = schema.get("required") or ()
            fields = _properties(schema)
            return {name: _sample(each) for name, each in fields.items() if name in required or "example" in each}
        case "array":
            return [_sample(schema["items"]) for _ in range(schema.get("minItems") or 0)]
        case "boolean":
            return True
        case "integer" | "number":
            return _number(schema)
        case "string":
            return _sample_text(schema)
        case _:
            return 1 if schema.get("x-kubernetes-int-or-string") else {}


def _sample_text(schema: Schema) -> str:
    text = _SAMPLES.get(schema.get("format", ""), "text").ljust(schema.get("minLength") or 0, "x")
    text = text[: schema.get("maxLength")]
    return f"<matches {schema.get('pattern') or schema.get('format')}>" if validate_tree(schema, text) else text


def _number(schema: Schema) -> float:
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf") or 1
    if low is None:
        return 1 if high is None or high > 1 else high - bool(schema.get("exclusiveMaximum"))
    low += bool(schema.get("exclusiveMinimum"))
    return -(-low // step) * step


def _schema(version: Tree) -> Schema:
    return version["schema"]["openAPIV3Schema"]


def _properties(schema: Schema) -> dict[str, Schema]:
    return schema.get("properties") or {}


def _anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return _ANCHOR.sub("", heading.lower()).replace(" ", "-")


def _text(text: str) -> str:
    return _OPENING.sub(r"\\\g<0>", text.strip().translate(_SPECIAL))


def _json(value: Any) -> str:
    return _code(msgspec.json.encode(value).decode())


def _code(text: str) -> str:
    """A text as code in a cell: only a bar ends a cell there, and a backtick the code."""
    ticks = "``" if "`" in text else "`"
    return f"{ticks}{' '.join(text.split())}{ticks}".replace("|", r"\|")
