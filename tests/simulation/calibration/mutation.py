"""Mutations: a function of Steersman with a few of its lines as they were before a fix.

Guarantees
- A mutation names today's lines. If they have changed, it fails and says so, in place of changing nothing.
- The function itself changes, for everything that has imported it, and is as before after the block.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from textwrap import dedent
from typing import Any, NamedTuple


class Mutation(NamedTuple):
    """A change of one function or method, such as ``steersman.manager.manager:Manager._lead``."""

    where: str
    #: Text of the function that holds the fix, in its indentation; it occurs once.
    fixed: str
    #: What stands there with the defect.
    broken: str


@contextmanager
def reintroduced(*mutations: Mutation) -> Generator[None]:
    """Run a block with a defect."""
    with ExitStack() as stack:
        for mutation in mutations:
            stack.enter_context(_changed(mutation))
        yield


@contextmanager
def _changed(mutation: Mutation) -> Generator[None]:
    found = _named(mutation.where)
    function = inspect.unwrap(found)
    code, before = _broken_code(function, mutation), function.__code__
    _forget_results(found)
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = before
        _forget_results(found)


def _named(where: str) -> Any:
    module, _, path = where.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _broken_code(function: Callable[..., Any], mutation: Mutation) -> Any:
    source = dedent(inspect.getsource(function))
    if source.count(mutation.fixed) != 1:
        raise AssertionError(f"{mutation.where} no longer has these lines; change the mutation:\n{mutation.fixed}")
    changed = source.replace(mutation.fixed, mutation.broken)
    flags = annotations.compiler_flag
    code = compile(changed, f"<{mutation.where}, broken>", "exec", flags=flags, dont_inherit=True)
    names: dict[str, Any] = {}
    exec(code, function.__globals__, names)
    return inspect.unwrap(names[function.__name__]).__code__


def _forget_results(function: Any) -> None:
    """Empty the memory of a function with `functools.cache`."""
    if hasattr(function, "cache_clear"):
        function.cache_clear()
