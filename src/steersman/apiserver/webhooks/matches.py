"""Decides which webhooks and policies match a write, and in which version they get it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from steersman.apiserver.admission import Attributes
from steersman.apiserver.documents import copied, decode_stored
from steersman.apiserver.errors import Named, not_found
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.webhooks.configurations import Rule
from steersman.objects import GroupVersionKind, Selector


class Subject(NamedTuple):
    """A write, with the namespace and name that webhooks get."""

    attributes: Attributes
    namespace: str
    name: str

    @property
    def is_namespace(self) -> bool:
        """Whether it concerns a Namespace itself."""
        definition = self.attributes.definition
        return definition.resource == "namespaces" and not definition.gvk.group

    @property
    def kind(self) -> GroupVersionKind:
        """The kind of its object."""
        view = self.attributes.view
        return self.attributes.definition.gvk if view is None else view.definition.gvk

    def obj(self) -> Tree | None:
        """The new object."""
        return self._shown(self.attributes.obj)

    def old(self) -> Tree | None:
        """The old object."""
        return self._shown(self.attributes.old)

    def _shown(self, tree: Tree | None) -> Tree | None:
        view = self.attributes.view
        return tree if tree is None or view is None or view.show is None else view.show(tree)


class Selecting(Protocol):
    """A set of rules and selectors: those of a webhook, or the constraints of a policy."""

    @property
    def rules(self) -> Sequence[Rule]:
        """The rules; one of them must match."""
        ...

    @property
    def is_equivalent(self) -> bool:
        """Whether rules also match other versions of their resources."""
        ...

    @property
    def namespace_selector(self) -> Selector | None:
        """The labels of the namespace; None for any."""
        ...

    @property
    def object_selector(self) -> Selector | None:
        """The labels of the object; None for any."""
        ...


def subject_of(attributes: Attributes) -> Subject:
    """The subject of a write. A Namespace is in itself, and a deletecollection has no name."""
    is_namespace = attributes.definition.resource == "namespaces" and not attributes.definition.gvk.group
    name = "" if attributes.request.info.verb == "deletecollection" else attributes.name
    return Subject(attributes, attributes.name if is_namespace else attributes.namespace, name)


async def matched(registry: ResourceRegistry, by: Selecting, subject: Subject) -> Definition | None:
    """The resource in whose version ``by`` selects a write; None if it does not select the write."""
    if subject.attributes.definition.review is not None:
        return None  # a webhook for reviews could lock everyone out
    chosen = ruled(registry, by.rules, subject, is_equivalent=by.is_equivalent)
    return chosen if chosen is not None and await selected(by, subject) else None


async def selected(by: Selecting, subject: Subject) -> bool:
    """Whether the namespace selector and the object selector match a write."""
    selector = by.object_selector
    if selector is not None and not any(_has_labels(selector, tree) for tree in (subject.obj(), subject.old())):
        return False
    # The last check: a namespace that is gone rejects only what would match otherwise.
    return await _in_namespace(by.namespace_selector, subject)


def ruled(
    registry: ResourceRegistry, rules: Sequence[Rule], subject: Subject, *, is_equivalent: bool
) -> Definition | None:
    """The resource in whose version a rule matches a write; None if no rule matches."""
    definition = subject.attributes.definition
    if any(matches(rule, definition, subject) for rule in rules):
        return definition
    if not is_equivalent:
        return None
    others = equivalents(registry, definition)
    return next((other for rule in rules for other in others if matches(rule, other, subject)), None)


#: The equivalents of each resource, with the revision of the registry at which they were found.
_EQUIVALENTS: WeakKeyDictionary[ResourceRegistry, tuple[int, dict[GroupVersionKind, list[Definition]]]] = (
    WeakKeyDictionary()
)


def equivalents(registry: ResourceRegistry, definition: Definition) -> list[Definition]:
    """The other served resources that contain the same objects."""
    revision, known = _EQUIVALENTS.get(registry, (-1, {}))
    if revision != registry.revision:
        known = {}
        _EQUIVALENTS[registry] = registry.revision, known
    found = known.get(definition.gvk)
    if found is None:
        found = known[definition.gvk] = [
            each
            for each in registry
            if each.prefix == definition.prefix
            and each.custom == definition.custom
            and (each.gvk.group, each.gvk.version) != (definition.gvk.group, definition.gvk.version)
        ]
    return found


def matches(rule: Rule, definition: Definition, subject: Subject) -> bool:
    """Whether a rule matches a write of a resource."""
    gvk, attributes = definition.gvk, subject.attributes
    is_namespaced = bool(subject.namespace) and not subject.is_namespace
    return (
        (not rule.names or subject.name in rule.names)
        and rule.scope in ("*", "Namespaced" if is_namespaced else "Cluster")
        and _has(rule.operations, attributes.operation)
        and _has(rule.groups, gvk.group)
        and _has(rule.versions, gvk.version)
        and any(
            resource in ("*", definition.resource) and subresource in ("*", attributes.subresource)
            for resource, subresource in rule.resources
        )
    )


def _has(values: Iterable[str], value: str) -> bool:
    return value in values or "*" in values


async def _in_namespace(selector: Selector | None, subject: Subject) -> bool:
    if selector is None or not (subject.namespace or subject.is_namespace):
        return True
    attributes = subject.attributes
    if subject.is_namespace and not attributes.subresource and attributes.obj is not None:
        return _has_labels(selector, attributes.obj)
    return _has_labels(selector, await read_namespace(subject))


async def read_namespace(subject: Subject) -> Tree:
    """The Namespace of a write. Rejects the write if it is gone, as a deletion of what it left behind shows."""
    record = await subject.attributes.context.read("", "namespaces", "", subject.namespace)
    if record is None:
        raise not_found(Named("", "namespaces"), subject.namespace)
    return decode_stored(record)


def _has_labels(selector: Selector, tree: Tree | None) -> bool:
    if tree is None or "metadata" not in tree:
        # The options of a connection are an object without labels, which no selector matches.
        return False
    metadata: Any = tree.get("metadata") or {}
    return selector.matches(metadata.get("labels") or {})


async def converted(tree: Tree | None, source: Definition, target: Definition) -> Tree | None:
    """A copy of an object, converted to the version of an equivalent resource."""
    if tree is None or source is target:
        return tree
    made: Tree = copied(tree)
    if source.conversion is not None and source.conversion.webhook is not None:
        await source.conversion.webhook.change(made, target.gvk.version)
        return made
    if source.conversion is not None and source.conversion.change is not None:
        source.conversion.change(made, target.gvk.version)
        return made
    if source.conversion is not None:
        source.conversion.to_stored(made)
    if target.conversion is not None:
        target.conversion.from_stored(made)
    made["kind"], made["apiVersion"] = target.gvk.kind, target.gvk.api_version
    return made
