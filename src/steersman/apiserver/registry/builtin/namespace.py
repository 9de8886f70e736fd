"""Namespaces: the label that names them, the finalizer that empties them, their phase and their deletion.

A Namespace stays, terminating, until its own finalizers are gone; the subresource ``finalize`` removes them.
"""

from __future__ import annotations

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata, subtree, take
from steersman.apiserver.registry.strategy import CHANGED, WHOLE
from steersman.objects.field_problems import FieldProblem, each, invalid
from steersman.schemas.names import qualified_name

NAME_LABEL = "kubernetes.io/metadata.name"
FINALIZER = "kubernetes"
_STANDARD_FINALIZERS = frozenset({FINALIZER, "orphan", "foregroundDeletion"})


class NamespaceStrategy(BuiltinStrategy):
    """How Namespaces behave."""

    names = "label"
    marks_first = True

    def fill(self, obj: Tree) -> None:
        """Label the namespace with its name."""
        self._label(obj)
        obj["status"] = inner(obj, "status")
        obj["status"].setdefault("phase", "Active")

    def prepare_create(self, obj: Tree) -> None:
        """Make it active, and keep it until its content is gone."""
        obj["status"] = {"phase": "Active"}
        finalizers = list(items(obj["spec"], "finalizers"))
        if FINALIZER not in finalizers:
            finalizers.append(FINALIZER)
        obj["spec"]["finalizers"] = finalizers

    def complete(self, obj: Tree) -> None:
        """Label a namespace whose name was generated meanwhile."""
        self._label(obj)

    def is_unfinished(self, obj: Tree) -> bool:
        """Whether the name was generated after the label was filled in."""
        return "generateName" in metadata(obj)

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        """Restore finalizers and status, which have their own subresources."""
        self._label(obj)
        obj["spec"] = inner(old, "spec")
        obj["status"] = inner(old, "status")

    def prepare_subresource(self, name: str, obj: Tree, old: Tree) -> None:
        """Restore everything except the finalizers."""
        del name
        finalizers = items(subtree(obj, "spec"), "finalizers")
        spec = {name: value for name, value in subtree(old, "spec").items() if name != "finalizers"}
        obj["spec"] = spec | {"finalizers": finalizers} if finalizers else spec
        take(obj, old, "status")

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        """Finalizers must be names."""
        names = items(subtree(obj, "spec"), "finalizers")
        return [problem for name in names for problem in _finalizer("spec.finalizers", name)]

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """As kube-apiserver does for `finalize`, name the index of a finalizer; other updates change none."""
        del old
        names = enumerate(items(subtree(obj, "spec"), "finalizers"))
        return [
            WHOLE,
            *(problem for index, name in names for problem in _finalizer(f"spec.finalizers[{index}]", name)),
            CHANGED,
        ]

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """The phase must match the deletion."""
        del old
        deleting = metadata(obj).get("deletionTimestamp") is not None
        phase = subtree(obj, "status").get("phase", "")
        if deleting and phase != "Terminating":
            return [invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")]
        if not deleting and phase != "Active":
            return [invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")]
        return []

    def mark_deletion(self, obj: Tree) -> None:
        """Set its phase to Terminating, without a grace period."""
        obj["metadata"].pop("deletionGracePeriodSeconds", None)
        obj["status"] = (obj.get("status") or {}) | {"phase": "Terminating"}

    def blocks_deletion(self, obj: Tree) -> bool:
        """Whether its spec still has finalizers."""
        return bool(subtree(obj, "spec").get("finalizers"))

    @staticmethod
    def _label(obj: Tree) -> None:
        meta = metadata(obj)
        if meta.get("name"):
            meta["labels"] = inner(meta, "labels") | {NAME_LABEL: meta["name"]}


def _finalizer(path: str, name: str) -> list[FieldProblem]:
    problems = each(path, name, qualified_name(name))
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        problems.append(invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified"))
    return problems
