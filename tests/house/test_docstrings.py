"""Docstrings: every public method has one, and the examples in them compile, use names and parameters that exist."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import steersman
from samples.surfaces import exports, surfaces
from steersman import kinds

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "steersman"
BLOCK = re.compile(r"^ *```python\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL)
#: What a reader of an example has: a kind or two, functions that make children, and running objects.
READERS = {
    *("Site", "SiteSpec", "SiteStatus", "Storage", "Postgres", "Buckets", "Recording"),
    *("site", "deployment", "deployment_for", "service_for", "sites_using", "reconcile", "SiteReconciler"),
    *("manager", "client", "engine", "server", "control_plane", "key", "Annotated"),
}
#: Names that most programs use: each has an example in its docstring.
SHOWN = (
    *("steersman.Client", "steersman.Context", "steersman.ControlPlane", "steersman.Manager", "steersman.Reconciler"),
    *("steersman.Resource", "steersman.controller.controller_for", "steersman.patterns.External"),
    *("steersman.patterns.StateMachine", "steersman.patterns.generates", "steersman.patterns.reconciles"),
    *("steersman.patterns.reports", "steersman.apiserver.ApiServer", "steersman.testing.Engine"),
    *("steersman.testing.Plane", "steersman.testing.PodRunner", "steersman.testing.WorkloadRunner"),
)
#: Protocols of fields that another class documents.
FIELDS_OF_OTHERS = {"steersman.controller.sources.views.View", "steersman.objects.conditions.AnyCondition"}


def examples() -> Iterator[tuple[str, str]]:
    """The place and the text of every example."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.is_relative_to(PACKAGE / "kinds") or "```python" not in (source := path.read_text(encoding="utf-8")):
            continue
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        for node in ast.walk(ast.parse(source)):
            text = ast.get_docstring(node) if isinstance(node, documented) else None
            for block in BLOCK.finditer(text or ""):
                name = getattr(node, "name", "module")
                yield f"{path.relative_to(PACKAGE)}: {name}", textwrap.dedent(block["text"])


EXAMPLES = list(examples())


@cache
def exported() -> dict[str, Any]:
    """Every public name of every room."""
    found = {
        name: getattr(kinds, name) for name in ("ConfigMap", "Deployment", "Pod", "Secret", "Service", "StatefulSet")
    }
    for surface in reversed(list(surfaces())):
        found.update({name: getattr(surface, name) for name in exports(surface)})
    return found


def mistakes(text: str) -> list[str]:
    """Unknown names, and calls with parameters that the called function does not have."""
    tree = compile(text, "example", "exec", flags=ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in named if isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            bound.update(each.asname or each.name for each in node.names)
    known = bound | READERS | set(dir(builtins)) | exported().keys()
    found = [f"unknown name {node.id}" for node in named if node.id not in known]
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        called = _resolved(call.func, bound | READERS)
        if called is not None and (problem := _misfit(called, call)):
            found.append(f"{ast.unparse(call)}: {problem}")
    return found


def _resolved(node: ast.expr, own: set[str]) -> Any:
    """What a name or an attribute of ours is; None for anything else."""
    if isinstance(node, ast.Name):
        return None if node.id in own else exported().get(node.id)
    if isinstance(node, ast.Attribute) and (owner := _resolved(node.value, own)) is not None:
        return getattr(owner, node.attr)
    return None


def _misfit(called: Any, call: ast.Call) -> str:
    if any(keyword.arg is None for keyword in call.keywords):
        return ""
    try:
        inspect.signature(called).bind(*call.args, **{str(keyword.arg): keyword.value for keyword in call.keywords})
    except TypeError as error:
        return str(error)
    except ValueError:
        pass  # a built-in without a signature
    return ""


@pytest.mark.parametrize("text", [text for _, text in EXAMPLES], ids=[place for place, _ in EXAMPLES])
def test_an_example_compiles_and_uses_what_exists(text: str) -> None:
    """A reader copies it; a renamed class or option must not stay behind in it."""
    assert mistakes(text) == []


@pytest.mark.parametrize("name", SHOWN)
def test_a_name_that_most_programs_use_has_an_example(name: str) -> None:
    """Editors show it where the name is typed."""
    module, _, attribute = name.rpartition(".")
    documented = getattr(importlib.import_module(module), attribute)
    assert "```python" in (inspect.getdoc(documented) or "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Manger(name='sites')", "unknown name Manger"),
        ("Manager(nmae='sites')", "got an unexpected keyword argument 'nmae'"),
        ("async with Engine.start(api_server=2) as engine: ...", "got an unexpected keyword argument 'api_server'"),
    ],
)
def test_a_planted_mistake_is_found(text: str, problem: str) -> None:
    """Options in ``**options`` are left to the type checkers."""
    assert any(problem in each for each in mistakes(text))


def public_classes() -> Iterator[type]:
    """The public classes of all modules that were written by hand."""
    for found in pkgutil.walk_packages(steersman.__path__, "steersman."):
        if not found.name.startswith("steersman.kinds.") and not found.name.endswith("__main__"):
            module = importlib.import_module(found.name)
            own = (each for each in vars(module).values() if getattr(each, "__module__", "") == found.name)
            yield from (each for each in own if inspect.isclass(each) and not each.__name__.startswith("_"))


def undocumented(cls: type) -> list[str]:
    """The public methods and properties of a class that have no docstring and inherit none."""
    methods = (property, classmethod, staticmethod, FunctionType)
    names = [name for name, each in vars(cls).items() if not name.startswith("_") and isinstance(each, methods)]
    return [name for name in names if not any(getattr(vars(base).get(name), "__doc__", "") for base in cls.__mro__)]


def test_a_public_method_has_a_docstring() -> None:
    """A method that overrides another needs its own only if it says more."""
    found = {f"{cls.__module__}.{cls.__qualname__}": undocumented(cls) for cls in public_classes()}
    assert {name: methods for name, methods in found.items() if methods and name not in FIELDS_OF_OTHERS} == {}


def test_a_missing_docstring_is_found() -> None:
    """The rule finds a violation; an inherited docstring counts."""

    class Ship:
        def sail(self) -> None:
            """Leave."""

    class Ferry(Ship):
        def sail(self) -> None: ...
        def load(self) -> None: ...
        @property
        def full(self) -> bool: ...

    assert undocumented(Ferry) == ["load", "full"]
