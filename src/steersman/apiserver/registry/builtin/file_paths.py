"""Paths of files inside of volumes and containers."""

from __future__ import annotations

from steersman.apiserver.registry.builtin.wording import invalid
from steersman.schemas import FieldProblem


def no_backsteps(path: str, target: str) -> list[FieldProblem]:
    """A path must not lead upwards."""
    return [invalid(path, target, "must not contain '..'")] if ".." in target.split("/") else []


def descending(path: str, target: str) -> list[FieldProblem]:
    """A path must lead downwards from where it starts."""
    problems = [invalid(path, target, "must be a relative path")] if target.startswith("/") else []
    return problems + no_backsteps(path, target)


def not_reserved(path: str, target: str) -> list[FieldProblem]:
    """A path must lead downwards, to no name that volumes use themselves."""
    problems = descending(path, target)
    if target.startswith("..") and not target.startswith("../"):
        problems.append(invalid(path, target, "must not start with '..'"))
    return problems
