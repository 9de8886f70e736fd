"""The life of an informer as a state machine: whether its store is complete, and whether reads wait. Pure.

States
- ``unlisted``: the store has never held a complete list of every scope.
- ``synced``: the store holds one, and follows the watch.
- ``withdrawn``: the store held one, and the server no longer serves the kind.

Transitions
- `listed` of the last scope leads to ``synced``.
- `withdraw` of any scope leads from ``synced`` to ``withdrawn``.
- An informer without scopes is ``synced``. Scopes that it gains and loses later change nothing for the others: reads of
  a gained scope go to the server until it is listed.
- The same holds for a scope of names that the server denies, or in which it does not serve the kind: other names have
  other scopes.

Whether reads wait
- ``unlisted``: they wait, unless the server does not serve the kind.
- ``synced``: they wait only while a caller catches up with the server, or a scope waits for a list of a restored server.
- ``withdrawn``: they do not wait.
- In every state: they do not wait while the server denies listing the kind, but go to the server.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from steersman.errors import StatusError

State: TypeAlias = Literal["unlisted", "synced", "withdrawn"]


class SyncState:
    """The state of an informer with certain scopes, and every step of it."""

    def __init__(self, scopes: Iterable[str], *, referenced: bool = False) -> None:
        self.state: State = "unlisted"
        #: Whether the scopes are of names: what happens to one says nothing about the kind.
        self._referenced = referenced
        #: Scopes of names that the server denies.
        self._refused: set[str] = set()
        #: Whether reads need not wait: the store can answer them, or certainly cannot.
        self.settled = False
        #: Whether a reader has logged that reads go to the server because listing is denied.
        self.reads_live = False
        #: Scopes without a complete list since the start, their withdrawal or the last `refresh`.
        self._awaited = set(scopes)
        self._scopes = frozenset(self._awaited)
        #: Scopes that were gained, and have not been listed since.
        self._joining: set[str] = set()
        #: Scopes in which the server does not serve the kind.
        self._absent: set[str] = set()
        self._denied: dict[str, StatusError] = {}
        #: Scopes that wait for a list of the restored server.
        self._restored: set[str] = set()
        self._catching_up = 0
        if not self._scopes:
            self.state, self.settled = "synced", True

    @property
    def synced(self) -> bool:
        """Whether the store holds a complete list."""
        return self.state == "synced"

    @property
    def refreshed(self) -> bool:
        """Whether every scope was listed since the last `refresh`."""
        return not self._awaited

    @property
    def served(self) -> bool:
        """Whether the server serves the kind, as far as known."""
        return not self._absent

    @property
    def denied(self) -> StatusError | None:
        """The error with which the server denies listing the kind; None if it allows it or has not responded yet."""
        return next(iter(self._denied.values()), None)

    def was_restored(self, scope: str) -> bool:
        """Whether a scope waits for a list of the restored server."""
        return scope in self._restored

    def awaits_list(self, scope: str) -> bool:
        """Whether a caller waits for a new list of a scope, or the server was restored."""
        return scope in self._awaited or scope in self._restored

    @property
    def restoring(self) -> bool:
        """Whether any scope waits for a list of the restored server."""
        return bool(self._restored)

    def is_joining(self, scope: str) -> bool:
        """Whether a scope was gained, and its list is not complete yet."""
        return scope in self._joining

    def is_absent(self, scope: str) -> bool:
        """Whether the server does not serve the kind, according to the last answer in a scope."""
        return scope in self._absent

    def is_refused(self, scope: str) -> bool:
        """Whether the server denies a scope of names."""
        return scope in self._refused

    def answers(self, scope: str) -> bool:
        """Whether the store has what the server has in a scope."""
        return scope in self._scopes and scope not in self._joining and scope not in self._refused

    # steps

    def gain(self, scope: str) -> None:
        """A scope is added to a kind that is divided."""
        self._scopes |= {scope}
        self._joining.add(scope)

    def lose(self, scope: str) -> None:
        """A scope is no longer followed."""
        self._scopes -= {scope}
        for scopes in (self._joining, self._awaited, self._absent, self._restored, self._refused):
            scopes.discard(scope)
        self._denied.pop(scope, None)
        if not self._awaited:
            self.state = "synced"
        self._settle()

    def listed(self, scope: str) -> None:
        """A complete list of a scope is in the store."""
        for scopes in (self._joining, self._awaited, self._absent, self._refused):
            scopes.discard(scope)
        self._denied.pop(scope, None)
        self._restored.discard(scope)
        if not self._awaited:
            self.state, self.reads_live = "synced", False
        self._settle()

    def withdraw(self, scope: str) -> None:
        """The server no longer serves the kind, and the scope is empty."""
        if self._referenced:
            self._joining.add(scope)
            self._restored.discard(scope)
            self._settle()
            return
        if self.state == "synced":
            self.state = "withdrawn"
        self._awaited.add(scope)
        self._restored.discard(scope)
        self._settle()

    def miss(self, scope: str) -> bool:
        """The server does not serve the kind, either not yet or no longer. Returns whether that is news."""
        news = scope not in self._absent
        self._absent.add(scope)
        self._settle()
        return news

    def deny(self, scope: str, error: StatusError) -> None:
        """The server denies listing the scope. A store that is complete and up to date does not need the list."""
        if self._referenced:
            self._refused.add(scope)
            self._awaited.discard(scope)
            self._restored.discard(scope)
            self._settle()
            return
        if not self.synced or self._catching_up or self._restored or scope in self._joining:
            self._denied[scope] = error
            self._settle()

    def restore(self, scope: str) -> bool:
        """The server was restored from a backup. Returns whether that is news."""
        news = scope not in self._restored
        self._restored.add(scope)
        self._settle()
        return news

    def refresh(self) -> None:
        """A caller waits for a new list of every scope; reads do not."""
        self._awaited.update(self._scopes)

    def catch_up(self) -> None:
        """A caller waits until the store is as new as the server, and so do reads."""
        self._catching_up += 1
        self._settle()

    def caught_up(self) -> None:
        """A caller of `catch_up` no longer waits."""
        self._catching_up -= 1
        if self.synced and not self._catching_up:
            self._denied.clear()
            self.reads_live = False
        self._settle()

    def _settle(self) -> None:
        match self.state:
            case "unlisted":
                settled = bool(self._absent)
            case "synced":
                settled = not self._catching_up and not self._restored
            case "withdrawn":
                settled = True
        self.settled = settled or bool(self._denied)
