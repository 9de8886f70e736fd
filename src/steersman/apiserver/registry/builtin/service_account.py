"""ServiceAccounts: references to secrets hold only names."""

from __future__ import annotations

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.trees import Tree


class ServiceAccountStrategy(BuiltinStrategy):
    """How ServiceAccounts behave."""

    def prepare_create(self, obj: Tree) -> None:
        """Keep only the names of secrets."""
        if obj.get("secrets"):
            obj["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in obj["secrets"]]

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        """Keep only the names of secrets."""
        del old
        self.prepare_create(obj)
