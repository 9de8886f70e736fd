"""The stored policies and their bindings, compiled once per change.

Guarantee: a request uses the policies that are stored at that moment, in the order of their names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Literal, TypeVar

from steersman.apiserver.documents import decode_stored
from steersman.apiserver.policies.match_resources import MatchResources
from steersman.apiserver.policies.policy import Policy
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.storage import Storage
from steersman.apiserver.webhooks.configurations import GROUP

_P = TypeVar("_P", bound=Policy)


class Binding:
    """A binding of a policy."""

    def __init__(self, tree: Tree) -> None:
        self.name: str = tree["metadata"]["name"]
        spec: Tree = tree.get("spec") or {}
        self.policy: str = spec.get("policyName") or ""
        self.params: Tree | None = spec.get("paramRef")
        self.actions: list[str] = spec.get("validationActions") or []
        resources: Tree | None = spec.get("matchResources")
        self.resources = None if resources is None else MatchResources(resources)


class BoundPolicy(Generic[_P]):
    """A policy with its bindings."""

    def __init__(self, policy: _P, bindings: list[Binding]) -> None:
        self.policy = policy
        self.bindings = bindings


class StoredPolicies(Generic[_P]):
    """Reads the mutating or the validating policies of a store."""

    def __init__(self, storage: Storage, sort: Literal["mutating", "validating"], make: Callable[[Tree], _P]) -> None:
        self._storage = storage
        self._prefix = f"{GROUP}/{sort}admissionpolic"
        self._make = make
        self._versions: list[int] = []
        self._policies: list[BoundPolicy[_P]] = []

    async def current(self) -> list[BoundPolicy[_P]]:
        """The stored policies that have bindings."""
        page = await self._storage.list(self._prefix)
        if not page.records:
            return []
        versions = [record.modified for record in page.records]
        if versions != self._versions:
            prefix = f"{self._prefix}ies/"
            bindings = [Binding(decode_stored(each)) for each in page.records if not each.key.startswith(prefix)]
            found: list[BoundPolicy[_P]] = []
            for record in page.records:
                name = record.key.removeprefix(prefix)
                own = [binding for binding in bindings if binding.policy == name]
                if name != record.key and own:
                    found.append(BoundPolicy(self._make(decode_stored(record)), own))
            self._policies, self._versions = found, versions
        return self._policies
