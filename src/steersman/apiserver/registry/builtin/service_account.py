"""ServiceAccounts: references to secrets hold only names."""

from __future__ import annotations

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.trees import Tree, inner

_ENFORCED = "kubernetes.io/enforce-mountable-secrets"


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

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """A warning about a deprecated annotation; separate namespaces replace it."""
        had, has = (_ENFORCED in inner(inner(each or {}, "metadata"), "annotations") for each in (old, obj))
        words = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        return [f"metadata.annotations[{_ENFORCED}]: {words}"] if has and not had else []
