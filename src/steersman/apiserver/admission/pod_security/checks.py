"""The common parts of the checks: the checked fields of a Pod, and the text of violations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items


class Violation(NamedTuple):
    """A violation: what is forbidden, and which parts of the Pod do it."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


class CheckedPod:
    """The checked fields of a Pod or a Pod template."""

    __slots__ = ("annotations", "containers", "securities", "security", "spec")

    def __init__(self, pod: Tree) -> None:
        self.annotations = inner(inner(pod, "metadata"), "annotations")
        self.spec = inner(pod, "spec")
        self.security = inner(self.spec, "securityContext")
        #: All containers, in the order in which messages list them.
        self.containers: list[Tree] = [
            container
            for field in ("initContainers", "containers", "ephemeralContainers")
            for container in items(self.spec, field)
        ]
        #: The security contexts of the Pod and of its containers.
        self.securities = [self.security, *(inner(each, "securityContext") for each in self.containers)]

    @property
    def is_for_windows(self) -> bool:
        """Whether the Pod declares Windows as its operating system."""
        return inner(self.spec, "os").get("name") == "windows"

    @property
    def has_own_users(self) -> bool:
        """Whether the Pod runs in a user namespace of its own, where root is not the node's root."""
        return self.spec.get("hostUsers") is False

    def named(self, is_bad: Callable[[Tree], Any]) -> list[str]:
        """The names of containers whose security context is bad."""
        pairs = zip(self.containers, self.securities[1:], strict=True)
        return [container.get("name", "") for container, security in pairs if is_bad(security)]


CheckFunction: TypeAlias = Callable[[CheckedPod], Violation | None]


class Check(NamedTuple):
    """A check. Each of its ``versions`` applies from the given minor version of Kubernetes on."""

    versions: tuple[tuple[int, CheckFunction], ...]
    #: For a check of the restricted level: the baseline check that it replaces.
    replaces: str = ""

    def function(self, minor: int) -> CheckFunction | None:
        """The check that applies in a minor version; None before its first version."""
        return next((function for since, function in reversed(self.versions) if since <= minor), None)


def check(since: int, function: CheckFunction, *later: tuple[int, CheckFunction], replaces: str = "") -> Check:
    """A check with its first version and later ones."""
    return Check(((since, function), *later), replaces)


def quoted_list(words: Iterable[str]) -> str:
    """A quoted list, as in messages: ``"a", "b"``."""
    return ", ".join(f'"{word}"' for word in words)


def counted(word: str, words: Sequence[str]) -> str:
    """A noun and its list: ``container "a"``, ``containers "a", "b"``."""
    return f"{plural(word, words)} {quoted_list(words)}"


def plural(word: str, things: Iterable[Any]) -> str:
    """The noun, in the singular or the plural."""
    return word if len(list(things)) == 1 else f"{word}s"


def setters(by_pod: Any, containers: Sequence[str]) -> str:
    """The parts of a Pod that set a forbidden value, as text; empty without such parts."""
    return " and ".join([*(["pod"] if by_pod else []), *([counted("container", containers)] if containers else [])])
