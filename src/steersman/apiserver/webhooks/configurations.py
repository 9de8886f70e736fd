"""The webhooks of the stored configurations.

Guarantees
- A request uses the configurations that are stored at that moment, in kube-apiserver's order: by the name of the
  configuration, then in the order of its list.
- Without configurations, a lookup costs one search in the store's index. A configuration is decoded once per change.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from steersman.apiserver.documents import decode_stored
from steersman.apiserver.registry.admission_expressions import Conditions
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.storage import Record, Storage
from steersman.apiserver.webhooks.targets import WebhookTarget, read_target
from steersman.errors import SelectorError
from steersman.objects import Selector

GROUP: Final = "admissionregistration.k8s.io"
_MUTATING: Final = f"{GROUP}/mutatingwebhookconfigurations/"
_VALIDATING: Final = f"{GROUP}/validatingwebhookconfigurations/"
#: Kinds for which no webhook is called.
EXEMPT: Final = frozenset(
    f"{each}{kind}"
    for each in ("Mutating", "Validating")
    for kind in ("WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding")
)


class Rule(NamedTuple):
    """One rule of a webhook: the requests that it selects."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    #: Pairs of resource and subresource.
    resources: tuple[tuple[str, str], ...]
    scope: str
    #: The names of objects; empty for all.
    names: frozenset[str] = frozenset()


class Webhook:
    """A webhook of a configuration."""

    def __init__(self, configuration: str, number: int, tree: Tree) -> None:
        self.configuration = configuration
        self.name: str = tree.get("name") or ""
        #: Its identity among all webhooks of its sort.
        self.key = (configuration, self.name, number)
        self.target: WebhookTarget = read_target(tree.get("clientConfig") or {})
        self.rules = tuple(map(read_rule, tree.get("rules") or ()))
        self.ignores_failures = tree.get("failurePolicy") == "Ignore"
        self.is_equivalent = tree.get("matchPolicy") != "Exact"
        self.namespace_selector = read_selector(tree.get("namespaceSelector"))
        self.object_selector = read_selector(tree.get("objectSelector"))
        self.has_side_effects = tree.get("sideEffects") not in {"None", "NoneOnDryRun"}
        self.timeout: int = tree.get("timeoutSeconds") or 10
        self.reinvoked = tree.get("reinvocationPolicy") == "IfNeeded"
        self.review_versions: list[str] = tree.get("admissionReviewVersions") or []
        conditions: list[Tree] = tree.get("matchConditions") or []
        self.condition_texts: list[str] = [condition["expression"] for condition in conditions]
        self.conditions = Conditions(self.condition_texts) if conditions else None


class Webhooks(NamedTuple):
    """All webhooks of a server."""

    mutating: tuple[Webhook, ...] = ()
    validating: tuple[Webhook, ...] = ()


_NONE: Final = Webhooks()


class Configurations:
    """Reads the configurations in a store."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._versions: list[int] = []
        self._webhooks = _NONE

    async def current(self) -> Webhooks:
        """The webhooks that are stored now."""
        page = await self._storage.list(f"{GROUP}/")
        if not page.records:
            return _NONE
        versions = [record.modified for record in page.records]
        if versions != self._versions:
            self._webhooks = Webhooks(_read(page.records, _MUTATING), _read(page.records, _VALIDATING))
            self._versions = versions
        return self._webhooks


def _read(records: list[Record], prefix: str) -> tuple[Webhook, ...]:
    found: list[Webhook] = []
    for record in records:
        if not record.key.startswith(prefix):
            continue
        tree = decode_stored(record)
        name: str = tree["metadata"]["name"]
        seen: dict[str, int] = {}
        for webhook in tree.get("webhooks") or ():
            number = seen[webhook["name"]] = seen.get(webhook["name"], -1) + 1
            found.append(Webhook(name, number, webhook))
    return tuple(found)


def read_rule(tree: Tree) -> Rule:
    """A rule of a configuration."""
    pairs = (each.partition("/") for each in tree.get("resources") or ())
    return Rule(
        operations=frozenset(tree.get("operations") or ()),
        groups=frozenset(tree.get("apiGroups") or ()),
        versions=frozenset(tree.get("apiVersions") or ()),
        resources=tuple((resource, subresource) for resource, _, subresource in pairs),
        scope=tree.get("scope") or "*",
        names=frozenset(tree.get("resourceNames") or ()),
    )


def read_selector(tree: Any) -> Selector | None:
    """The label selector of a tree; None if it selects everything."""
    if not tree:
        return None
    try:
        selector = Selector.from_label_selector(tree)
    except SelectorError:
        return Selector.nothing()
    return selector if selector.requirements else None
