"""The cells of tables of webhook configurations and admission policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from steersman.apiserver.registry.builtin.tables.cells import UNSET, age, name
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, subtree


def _webhooks(obj: Tree) -> list[Any]:
    return [name(obj), len(items(obj, "webhooks")), age(obj)]


def _policy(obj: Tree) -> list[Any]:
    spec = subtree(obj, "spec")
    kind = spec.get("paramKind")
    shown = UNSET if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"
    field = "mutations" if obj.get("kind") == "MutatingAdmissionPolicy" else "validations"
    return [name(obj), len(items(spec, field)), shown, age(obj)]


def _binding(obj: Tree) -> list[Any]:
    spec = subtree(obj, "spec")
    return [name(obj), spec.get("policyName", ""), _parameters(inner(spec, "paramRef")), age(obj)]


def _parameters(reference: Tree) -> str:
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    selector = reference.get("selector")
    return UNSET if selector is None else _selector(selector)


def _selector(selector: Tree) -> str:
    """A label selector as Go prints its message."""
    labels = "".join(f"{key}: {value}," for key, value in sorted(inner(selector, "matchLabels").items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{one.get('key', '')},Operator:{one.get('operator', '')},"
        f"Values:[{' '.join(items(one, 'values'))}],}},"
        for one in items(selector, "matchExpressions")
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


ROWS: Mapping[str, Callable[[Tree], list[Any]]] = {
    "MutatingAdmissionPolicy": _policy,
    "MutatingAdmissionPolicyBinding": _binding,
    "MutatingWebhookConfiguration": _webhooks,
    "ValidatingAdmissionPolicy": _policy,
    "ValidatingAdmissionPolicyBinding": _binding,
    "ValidatingWebhookConfiguration": _webhooks,
}
