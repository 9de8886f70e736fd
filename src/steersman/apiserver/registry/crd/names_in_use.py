"""The names of one group's definitions, with constant-time lookup.

Guarantee: the cost of adding or removing a definition and of looking up a name does not depend on the number of
definitions.
"""

from __future__ import annotations

from steersman.apiserver.registry.definition import Tree

#: The accepted names of a definition, without empty ones.
Names = Tree


class NamesInUse:
    """The owner of each name; `put` and `remove` return whether names became free that others may want."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, str], dict[str, None]] = {}
        self._names: dict[str, set[tuple[str, str]]] = {}
        #: Definitions without accepted names: others have the names they want.
        self.refused: dict[str, None] = {}

    def put(self, definition: str, accepted: Names, *, is_refused: bool) -> bool:
        """Record the accepted names of a definition."""
        names = _unique_names(accepted)
        before = self._names.get(definition, set())
        for name in before - names:
            self._forget(name, definition)
        for name in names - before:
            self._users.setdefault(name, {})[definition] = None
        self._names[definition] = names
        self.refused.pop(definition, None)
        if is_refused:
            self.refused[definition] = None
        return bool(before - names)

    def remove(self, definition: str) -> bool:
        """Forget a definition."""
        self.refused.pop(definition, None)
        names = self._names.pop(definition, set[tuple[str, str]]())
        for name in names:
            self._forget(name, definition)
        return bool(names)

    def is_taken(self, sort: str, name: str, definition: str) -> bool:
        """Whether another definition has the name of a "resource" or of a "kind"."""
        users = self._users.get((sort, name), {})
        return len(users) > (definition in users)

    def _forget(self, name: tuple[str, str], definition: str) -> None:
        users = self._users[name]
        del users[definition]
        if not users:
            del self._users[name]


def resource_names(names: Names) -> set[str]:
    """The names that no other definition of the group may have for its resource."""
    return {names.get("plural", ""), names.get("singular", ""), *names.get("shortNames", ())}


def kind_names(names: Names) -> set[str]:
    """The names that no other definition of the group may have for its kind."""
    return {names.get("kind", ""), names.get("listKind", "")}


def _unique_names(names: Names) -> set[tuple[str, str]]:
    return {("resource", name) for name in resource_names(names)} | {("kind", name) for name in kind_names(names)}
