"""The names of a machine's finalizers, and which of them this program may remove. Pure.

Guarantees
- The default name contains the name of the manager, so two operators on one kind have two finalizers, and both clean up.
- Earlier releases left the manager's name out, so several programs may share a finalizer of that name. Steersman cleans up for it,
  and removes it unless another program added it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

from steersman.objects import GroupVersionKind, ManagedFieldsEntry, is_manager_of

#: The limit of the part after the slash.
_NAME_MAX = 63
_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


class Finalizers(NamedTuple):
    """The finalizers of a machine in one manager."""

    current: str
    #: Finalizers that the program names as those of an earlier version.
    retired: tuple[str, ...] = ()
    #: The defaults under former names, of the manager or of the controller.
    former: tuple[str, ...] = ()
    #: The defaults of earlier releases, which other programs may share; none if the program chose a name.
    shared: tuple[str, ...] = ()

    @property
    def own(self) -> tuple[str, ...]:
        """The finalizers that belong to this program alone."""
        return (self.current, *self.retired, *self.former)

    @property
    def all(self) -> tuple[str, ...]:
        """Every finalizer for which this program cleans up."""
        return (*self.own, *self.shared)


def default_finalizers(kind: GroupVersionKind, managers: Iterable[str], controllers: Iterable[str]) -> tuple[str, ...]:
    """The default names for all names that the manager and the controller have had, today's first."""
    names = tuple(controllers)
    return tuple(dict.fromkeys(default_finalizer(kind, manager, name) for manager in managers for name in names))


@cache
def default_finalizer(kind: GroupVersionKind, manager: str, controller: str) -> str:
    """The default name: in the kind's own group, or in ours for built-in kinds."""
    return f"{_domain(kind)}/{_fitting(f'{manager}.{controller}')}" if manager else shared_finalizer(kind, controller)


def shared_finalizer(kind: GroupVersionKind, controller: str) -> str:
    """The default name in earlier releases, and in a manager without a name."""
    return f"{_domain(kind)}/{controller}"


def _domain(kind: GroupVersionKind) -> str:
    return kind.group if "." in kind.group else "steersman.dev"


def _fitting(name: str) -> str:
    """A name that the server accepts; one that has to be changed ends with a hash."""
    fitting = "".join(character if character in _ALLOWED else "-" for character in name).strip("-_.")
    if fitting == name and len(name) <= _NAME_MAX:
        return name
    digest = blake2b(name.encode(), digest_size=4).hexdigest()
    return f"{fitting[: _NAME_MAX - len(digest) - 1]}-{digest}"


def added_by(managed_fields: bytes, finalizer: str) -> bool:
    """Whether one of these entries of ``managedFields`` holds a finalizer."""
    return rb'"v:\"%b\""' % finalizer.encode() in managed_fields


def other_program(entries: Iterable[ManagedFieldsEntry], finalizer: str, managers: tuple[str, ...]) -> str:
    """The other program that added a finalizer; empty if this program did, or a tool that wrote the whole object.

    An operator adds its finalizer by a request of its own, so its entry holds finalizers alone.
    """
    manager = ""
    for entry in entries:
        if not added_by(bytes(entry.fields_v1), finalizer):
            continue
        if any(is_manager_of(name, entry.manager or "") for name in managers):
            return ""
        if _holds_finalizers_alone(entry.fields()):
            manager = entry.manager or ""
    return manager


def _holds_finalizers_alone(fields: dict[str, Any]) -> bool:
    return fields.keys() == {"f:metadata"} and fields["f:metadata"].keys() == {"f:finalizers"}
