"""Paths of files inside volumes and containers."""

from __future__ import annotations

from steersman.objects.field_problems import FieldProblem, invalid


def no_backsteps(path: str, target: str) -> list[FieldProblem]:
    """A path must not contain ".."."""
    return [invalid(path, target, "must not contain '..'")] if ".." in target.split("/") else []


def descending(path: str, target: str) -> list[FieldProblem]:
    """A path must be relative and must not contain ".."."""
    problems = [invalid(path, target, "must be a relative path")] if target.startswith("/") else []
    return problems + no_backsteps(path, target)


def not_reserved(path: str, target: str) -> list[FieldProblem]:
    """A path must be relative, without "..", and must not use names that volumes reserve."""
    problems = descending(path, target)
    if target.startswith("..") and not target.startswith("../"):
        problems.append(invalid(path, target, "must not start with '..'"))
    return problems
