"""The writes that a policy or a binding matches."""

from __future__ import annotations

from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.webhooks.configurations import read_rule, read_selector
from steersman.apiserver.webhooks.matches import Subject, ruled, selected


class MatchResources:
    """The rules, excluded rules and selectors of a policy or a binding."""

    def __init__(self, tree: Tree) -> None:
        self.rules = tuple(map(read_rule, tree.get("resourceRules") or ()))
        self.is_equivalent = tree.get("matchPolicy") != "Exact"
        self.namespace_selector = read_selector(tree.get("namespaceSelector"))
        self.object_selector = read_selector(tree.get("objectSelector"))
        self._excluded = tuple(map(read_rule, tree.get("excludeResourceRules") or ()))

    async def matched(self, registry: ResourceRegistry, subject: Subject) -> Definition | None:
        """The resource in whose version a write matches; None if it does not. Without rules, every resource matches."""
        if subject.attributes.definition.review is not None:
            return None  # a policy for reviews could lock everyone out
        if ruled(registry, self._excluded, subject, is_equivalent=self.is_equivalent) is not None:
            return None
        chosen: Definition | None = subject.attributes.definition
        if self.rules:
            chosen = ruled(registry, self.rules, subject, is_equivalent=self.is_equivalent)
        return chosen if chosen is not None and await selected(self, subject) else None
