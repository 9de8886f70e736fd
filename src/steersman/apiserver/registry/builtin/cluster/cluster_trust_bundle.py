"""ClusterTrustBundles: trust anchors in PEM, named after their signer."""

from __future__ import annotations

from steersman.apiserver.registry.builtin.cluster.pem import trust_problems
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.signers import bundle_name, signer_name
from steersman.apiserver.registry.builtin.types.trees import Tree, metadata, subtree
from steersman.apiserver.registry.strategy import CHANGED, WHOLE
from steersman.objects.field_problems import FieldProblem, each, invalid, too_long, unchanged

_BUNDLE_MAX = 1024 * 1024
_BUNDLE, _SIGNER = "spec.trustBundle", "spec.signerName"


class ClusterTrustBundleStrategy(BuiltinStrategy):
    """How ClusterTrustBundles behave."""

    def validate_name(self, name: str, *, prefix: bool = False) -> list[str]:
        """Accept any name: `_bundle` checks it against the signer."""
        del name, prefix
        return []

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        return _bundle(obj, subtree(obj, "spec").get("trustBundle", ""))

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that the signer stays; trust anchors are checked if they change."""
        new, before = subtree(obj, "spec"), subtree(old, "spec")
        text = new.get("trustBundle", "")
        problems = _bundle(obj, None if text == before.get("trustBundle", "") else text)
        return [*problems, CHANGED, *unchanged(_SIGNER, new.get("signerName", ""), before.get("signerName", ""))]


def _bundle(obj: Tree, text: str | None) -> list[FieldProblem]:
    signer: str = subtree(obj, "spec").get("signerName", "")
    problems = [*_name_problems(obj, signer), WHOLE]
    if signer:
        problems += signer_name(_SIGNER, signer)
    if text is None:
        return problems
    data = text.encode()
    if len(data) > _BUNDLE_MAX:
        return [*problems, too_long(_BUNDLE, _BUNDLE_MAX)]
    return problems + [invalid(_BUNDLE, "<value omitted>", said) for said in trust_problems(data)]


def _name_problems(obj: Tree, signer: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for field, prefix in (("generateName", True), ("name", False)):
        name: str = metadata(obj).get(field, "")
        if name:
            problems += each(f"metadata.{field}", name, bundle_name(name, signer, prefix=prefix))
    return problems
