"""Manifests -> objects: typed where a class is known, `Unstructured` elsewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any, cast

import msgspec

from steersman.errors import DecodeError, ManifestError, ManifestProblem
from steersman.kinds import class_of
from steersman.manifests.shape_check import check_shape
from steersman.manifests.yaml_documents import YamlDocuments
from steersman.objects import (
    GroupVersionKind,
    Object,
    ObjectMeta,
    Resource,
    Unstructured,
    decode_manifest,
)
from steersman.objects.secret_values import Redaction
from steersman.schemas import problems

#: The steps of a path such as ``spec.ports[0].name``.
_STEP = re.compile(r"\[([^\]]*)\]|([^.\[]+)")


def load_manifests(
    text: str | bytes,
    *,
    kinds: Iterable[type[Object]] = (),
    file: str | os.PathLike[str] = "",
    strict: bool = True,
) -> list[Object | Unstructured]:
    """The objects of a YAML or JSON text: typed for built-in kinds and for your ``kinds``, `Unstructured` for others.

    Raises `ManifestError` with every mistake: its line, the field's path and the reason. ``file`` names the text there.
    A field that the class lacks is a mistake, as it is for kubectl; so is what `validate` finds in an object of your
    kinds. With ``strict=False``, both pass: the object keeps such fields and sends them.

    An object is written as the text says, without defaults of its class, plus what the program changes.
    """
    loader = _Loader(text, kinds, os.fspath(file), strict=strict)
    loader.load()
    if loader.problems:
        raise ManifestError(sorted(loader.problems, key=lambda problem: problem.line))
    return loader.objects


class _Loader:
    def __init__(self, text: str | bytes, kinds: Iterable[type[Object]], file: str, *, strict: bool) -> None:
        self._yaml = YamlDocuments(text)
        self._file = file
        self._strict = strict
        self._classes: dict[GroupVersionKind, type[Object]] = {}
        for kind in kinds:
            other = self._classes.setdefault(kind.gvk(), kind)
            if other is not kind:
                raise ValueError(f"kinds: {other.__qualname__} and {kind.__qualname__} are both {kind.gvk()}; pass one")
        self.problems = [ManifestProblem(file, *problem) for problem in self._yaml.problems]
        self.objects: list[Object | Unstructured] = []

    def load(self) -> None:
        """Read all documents."""
        for value, line in self._yaml.documents:
            self._take(value, line)

    def _report(self, line: int, reason: str) -> None:
        self.problems.append(ManifestProblem(self._file, line, reason))

    def _take(self, value: Any, line: int, inherited: tuple[Any, str] = (None, "")) -> None:
        """Take a document, or an item of a List; items of a ``ConfigMapList`` may omit their kind."""
        if not isinstance(value, dict):
            self._report(line, "not an object: a manifest is a mapping with apiVersion and kind")
            return
        tree = cast("dict[str, Any]", value)
        if inherited[1] and "kind" not in tree:
            tree = {"apiVersion": inherited[0], "kind": inherited[1]} | tree
        kind, items = tree.get("kind"), tree.get("items")
        if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
            for index, item in enumerate(cast("list[Any]", items)):
                at = self._yaml.line_of(items, index, line)
                self._take(item, at, (tree.get("apiVersion"), kind.removesuffix("List")))
            return
        found = self._kind(tree, line)
        if found is not None:
            self._add(found, tree, line, holder=cast("dict[str, Any]", value))

    def _kind(self, tree: dict[str, Any], line: int) -> GroupVersionKind | None:
        for name in ("apiVersion", "kind"):
            given = tree.get(name)
            if not isinstance(given, str) or not given:
                at = self._yaml.line_of(tree, name, line)
                self._report(at, f"{name} must be a text" if name in tree else f"the object has no {name}")
                return None
        try:
            return GroupVersionKind.of(tree["apiVersion"], tree["kind"])
        except ValueError as error:
            self._report(self._yaml.line_of(tree, "apiVersion", line), str(error))
            return None

    def _add(self, kind: GroupVersionKind, tree: dict[str, Any], line: int, holder: dict[str, Any]) -> None:
        name = _name(kind.kind, tree)
        before = len(self.problems)

        def report(inside: Any, key: str | int, path: str, reason: str) -> None:
            at = self._yaml.line_of(holder if inside is tree else inside, key, line)
            self._report(at, f"{name}: {path}: {reason}")

        cls = self._class(kind)
        if cls is not None:
            check_shape(cls, tree, report, strict=self._strict)
        elif isinstance(metadata := tree.get("metadata", {}), dict):
            check_shape(ObjectMeta, cast("Any", metadata), report, path="metadata", strict=self._strict)
        else:
            report(tree, "metadata", "metadata", "expected a mapping")
        if len(self.problems) > before:
            return
        if cls is not None and tree.get("metadata") is None:
            tree = tree | {"metadata": {}}  # a review needs none, and its class has one
        raw = msgspec.json.encode(tree)
        if cls is None:
            self.objects.append(Unstructured(msgspec.json.decode(raw)))
            return
        try:
            obj: Object = decode_manifest(cls, raw)
        except DecodeError as error:
            self._report(line, f"{name}: {error}")
            return
        if self._strict and issubclass(cls, Resource):
            hidden = Redaction(tree)
            for problem in problems(obj):
                self._report(self._line_at(tree, problem.path, line), hidden(f"{name}: {problem}"))
        self.objects.append(obj)

    def _class(self, kind: GroupVersionKind) -> type[Object] | None:
        if kind in self._classes:
            return self._classes[kind]
        try:
            return class_of(kind)
        except LookupError:
            return None

    def _line_at(self, tree: Any, path: str, line: int) -> int:
        """The line of a path, or of the last part of it that the text has."""
        value: Any = tree
        for index, name in _STEP.findall(path):
            key: Any = int(index) if index.isdigit() else name or index
            line = self._yaml.line_of(value, key, line)
            try:
                value = value[key]
            except (LookupError, TypeError):
                break
        return line


def _name(kind: str, tree: dict[str, Any]) -> str:
    """How messages name an object."""
    metadata: Any = tree.get("metadata")
    if not isinstance(metadata, dict):
        return kind
    named = cast("dict[str, Any]", metadata)
    parts = [str(named[part]) for part in ("namespace", "name") if named.get(part)]
    return f"{kind} {'/'.join(parts)}".rstrip()
