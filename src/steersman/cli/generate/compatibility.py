"""``steersman generate crds --compatible-with OLD``: which changes of definitions break stored objects or clients.

Guarantees
- ``OLD`` has one meaning: its first word says whether it is a file, a git revision or a cluster.
- Each change is one line: its place in the schema and in Python, what changed, why it matters, and what to do.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast, get_args

import msgspec

from steersman.cli.console import show
from steersman.cli.failure import Failure, Misuse
from steersman.cli.files import objects_in, parsed_documents, read_documents
from steersman.objects import Object, Tree, declared_hints, is_struct, unwrap, wire_names
from steersman.schemas import DefinitionChange, definition_changes
from steersman.telemetry import painted, visible

_FORMS: Final = "file:PATH, git:REVISION, git:REVISION:PATH, cluster or cluster:CONTEXT"
_LIST: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SECONDS: Final = 60.0
_STEP: Final = re.compile(r"[^.\[\]{}]+|\[\]|\{\}")

#: The class of each version of a definition, by its name and the version.
Classes = Mapping[tuple[str, str], type[Object]]


def compare_definitions(
    old: str, text: str, classes: Iterable[type[Object]], *, output: str | None, complete: bool, converted: bool
) -> bool:
    """Print what breaks from ``old`` to the definitions in a YAML text; returns whether nothing does."""
    before = old_definitions(old, output=output)
    after = parsed_documents(text, "the generated definitions")
    source = old.partition(":")[0]
    changes = definition_changes(before, after, complete=complete and source != "cluster", converted=converted)
    known = {(_definition_name(cls), cls.gvk().version): cls for cls in classes}
    for change in changes:
        show(_line(change, known))
    breaks = any(change.breaks for change in changes)
    if not breaks:
        names = {tree["metadata"]["name"] for tree in before} & {tree["metadata"]["name"] for tree in after}
        compared = ", ".join(sorted(names)) or "none of these kinds is there"
        show(f"{painted('compatible', '32')} with {visible(old)}: {visible(compared)}")
    return not breaks


def old_definitions(text: str, *, output: str | None) -> list[Tree]:
    """The definitions that ``--compatible-with`` names."""
    source, colon, rest = text.partition(":")
    if source == "cluster" and (rest or not colon):
        documents = asyncio.run(_installed(rest or None))
    elif source == "file" and rest:
        documents = read_documents(rest)
    elif source == "git" and rest:
        revision, _, path = rest.partition(":")
        if not (path or output):
            raise Misuse(f"--compatible-with {text} names no file: write git:{revision}:PATH, or name the file with -o")
        documents = parsed_documents(_committed(revision, path or output or ""), text)
    else:
        raise Misuse(f"--compatible-with {text} is unclear; write {_FORMS}")
    trees = [tree for value in documents if isinstance(value, dict) for tree in objects_in(cast("Tree", value))]
    definitions = [definition for definition in trees if definition.get("kind") == "CustomResourceDefinition"]
    broken = [definition for definition in definitions if not _is_definition(definition)]
    if broken:
        raise Failure(f"{text} has a CustomResourceDefinition without metadata.name, spec.names or spec.versions")
    if not definitions and source != "cluster":
        raise Failure(f"{text} has no CustomResourceDefinition; name the file that `generate crds -o` wrote")
    return definitions


def _is_definition(tree: Tree) -> bool:
    try:
        msgspec.convert(tree, _Definition)
    except msgspec.ValidationError:
        return False
    return True


class _Names(msgspec.Struct):
    kind: str
    plural: str


class _Version(msgspec.Struct):
    name: str


class _Metadata(msgspec.Struct):
    name: str


class _DefinitionSpec(msgspec.Struct):
    group: str
    scope: str
    names: _Names
    versions: list[_Version]


class _Definition(msgspec.Struct):
    """The parts that every definition has."""

    metadata: _Metadata
    spec: _DefinitionSpec


async def _installed(context: str | None) -> list[Tree]:
    """The definitions on a cluster."""
    from steersman.cli.generate.server import fetch  # noqa: PLC0415 - the other sources need no server

    answer = (await fetch((_LIST,), kubeconfig=None, context=context))[_LIST]
    return [msgspec.json.decode(answer)]


def _committed(revision: str, path: str) -> str:
    """The content of a file in a git revision."""
    if revision.startswith("-"):
        raise Misuse(f"--compatible-with git:{revision} is not a revision")
    try:
        where = os.path.relpath(path)  # git takes it as relative to the current folder, also with ..
        done = subprocess.run(  # noqa: S603 - no shell, and the revision is no option
            ["git", "show", f"{revision}:./{where}"],  # noqa: S607 - the user's git
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise Failure("git is not installed; compare with file:PATH") from error
    except subprocess.TimeoutExpired as error:
        raise Failure(f"git show did not end within {_SECONDS:g} s") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().removeprefix("fatal: ")
        raise Failure(f"cannot read {path} of git revision {revision}: {said}")
    try:
        return done.stdout.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Failure(f"{path} of git revision {revision} is not UTF-8 text") from error


def _line(change: DefinitionChange, classes: Classes) -> str:
    """A change on one line."""
    where = change.definition
    if change.version:
        where += f" {change.version}"
    cls = classes.get((change.definition, change.version))
    if change.path:
        where += f" {change.path}"
        if cls is not None:
            where += f" ({declared_field(cls, change.path)})"
    word = painted("breaking", "31") if change.breaks else painted("note", "33")
    return f"{word}: {visible(f'{where}: {change.what}: {change.reason}; {change.advice}')}"


def declared_field(cls: type[Object], path: str) -> str:
    """The Python field at a path in the schema, such as ``SiteSpec.replicas``; the class if it declares none there."""
    kind: Any = cls
    shown = cls.__name__
    for step in _STEP.findall(path):
        if step in {"[]", "{}"}:
            arguments = get_args(kind)
            kind = unwrap(arguments[-1])[0] if arguments else None
            continue
        if not is_struct(kind):
            break
        names = {wire: name for name, wire in wire_names(kind).items()}
        if step not in names:
            return kind.__name__
        shown = f"{kind.__name__}.{names[step]}"
        kind = unwrap(declared_hints(kind)[names[step]])[0]
    return shown


def _definition_name(cls: type[Object]) -> str:
    options = cls.__resource__
    return f"{options.plural}.{options.group}"
