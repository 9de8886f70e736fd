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
        names = _told_apart(accepted)
        before = self._names.get(definition, set())
        for each in before - names:
            self._forget(each, definition)
        for each in names - before:
            self._users.setdefault(each, {})[definition] = None
        self._names[definition] = names
        self.refused.pop(definition, None)
        if is_refused:
            self.refused[definition] = None
        return bool(before - names)

    def remove(self, definition: str) -> bool:
        """Forget a definition."""
        self.refused.pop(definition, None)
        names = self._names.pop(definition, set[tuple[str, str]]())
        for each in names:
            self._forget(each, definition)
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


def _told_apart(names: Names) -> set[tuple[str, str]]:
    resources = {names.get("plural", ""), names.get("singular", ""), *names.get("shortNames", ())}
    kinds = {names.get("kind", ""), names.get("listKind", "")}
    return {("resource", each) for each in resources} | {("kind", each) for each in kinds}
