"""Reads documents and writes results; failures are one sentence."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from steersman.cli.console import tell_failure
from steersman.cli.failure import Failure
from steersman.manifests import YamlDocuments
from steersman.objects import Tree

#: How many mistakes of a file are shown.
_SHOWN_MAX = 10


def say(text: str) -> None:
    """Print progress to stderr."""
    tell_failure(text)


def read_documents(name: str) -> list[Any]:
    """All YAML or JSON documents of a file, or of standard input for ``-``."""
    shown = "standard input" if name == "-" else name
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise Failure(f"cannot read {shown}: {error.strerror}; name a file with CRDs or an OpenAPI document") from error
    except UnicodeDecodeError as error:
        raise Failure(f"cannot read {shown}: not UTF-8 text; name a file with CRDs or an OpenAPI document") from error
    return parsed_documents(text, shown)


def parsed_documents(text: str, shown: str) -> list[Any]:
    """All YAML or JSON documents of a text; ``shown`` names its source in a failure."""
    try:
        return [msgspec.json.decode(text)]  # an OpenAPI document has megabytes, which take seconds as YAML
    except (msgspec.DecodeError, RecursionError):
        pass
    parsed = YamlDocuments(text)
    if parsed.problems:
        mistakes = "; ".join(f"line {problem.line}: {problem.reason}" for problem in parsed.problems[:_SHOWN_MAX])
        raise Failure(f"{shown} is neither YAML nor JSON: {mistakes}; correct it and try again")
    return [value for value, _ in parsed.documents]


def objects_in(tree: Tree) -> list[Tree]:
    """The objects of a document: the items of a list, or itself."""
    items = tree.get("items")
    if not str(tree.get("kind", "")).endswith("List") or not isinstance(items, list):
        return [tree]
    kind = str(tree["kind"]).removesuffix("List")
    # The items of a typed list may omit kind and apiVersion.
    stated = {"apiVersion": tree.get("apiVersion"), "kind": kind} if kind else {}
    return [stated | cast("Tree", item) for item in cast("list[Any]", items) if isinstance(item, dict)]


def write_files(files: Mapping[Path, str], *, check: bool) -> int:
    """Write files, or only compare them with ``check``; returns an exit code."""
    changed = {path: text for path, text in files.items() if _content(path) != text}
    if check:
        for path in changed:
            say(f"{path} {'differs' if path.exists() else 'is missing'}")
        if changed:
            say("run the command again without --check")
        return 1 if changed else 0
    for path, text in changed.items():
        _replace(path, text)
        say(f"wrote {path}")
    if unchanged := len(files) - len(changed):
        say(f"{unchanged} {'file was' if unchanged == 1 else 'files were'} up to date")
    return 0


def _content(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _replace(path: Path, text: str) -> None:
    """Replace a file atomically, so that no one ever imports half a module."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, encoding="utf-8", delete=False) as file:
            file.write(text)
        mode = path.stat().st_mode if path.exists() else 0o666 & ~_umask()
        Path(file.name).chmod(mode)
        Path(file.name).replace(path)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}; choose another place with -o") from error


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
