"""Completes the default roles and bindings of RBAC after a restart.

Guarantees
- After a start, every role has at least the rules, and every binding at least the subjects, that kube-apiserver gives it.
- The server keeps additional rules and subjects. It does not change an object with the annotation
  ``rbac.authorization.kubernetes.io/autoupdate: "false"``.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any, Final

import msgspec

from steersman.apiserver.bootstrap.creation import StoredObject, put_new
from steersman.apiserver.bootstrap.templates import Stamp
from steersman.apiserver.chain.rbac import Rule
from steersman.apiserver.chain.rbac_coverage import missing
from steersman.apiserver.documents import copied, decode_stored, encode_stored
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.apiserver.storage import Storage

_GROUP: Final = "rbac.authorization.k8s.io/"
_AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"


async def complete_policy(storage: Storage, stored: Iterable[StoredObject]) -> None:
    """Add missing rules and subjects to stored roles and bindings; ignore other objects."""
    for each in stored:
        if each.record.key.startswith(_GROUP):
            await _reconcile(storage, each)


async def _reconcile(storage: Storage, found: StoredObject) -> None:
    record, stamp = found.record, Stamp()
    made = stamp.fill(found.template)
    expected: Tree = msgspec.json.decode(made)
    role: Tree = decode_stored(record)
    if role["metadata"].get("annotations", {}).get(_AUTOUPDATE) == "false":
        return
    if "roleRef" in expected and role.get("roleRef") != expected["roleRef"]:
        # The role of a binding is immutable: kube-apiserver replaces the binding.
        await storage.delete(record.key, expect=record.modified)
        await put_new(storage, {record.key: made})
        return
    if complete(role, expected):
        await storage.put(record.key, encode_stored(role), expect=record.modified)


def complete(stored: Tree, expected: Tree) -> bool:
    """Add the missing parts to a stored role or binding. Returns whether it changed."""
    changed = False
    for name in ("labels", "annotations"):
        own: dict[str, str] = stored["metadata"].get(name) or {}
        wanted: dict[str, str] = expected["metadata"].get(name) or {}
        merged = wanted | own
        if merged != own:
            stored["metadata"][name] = merged
            changed = True
    for name, lacking in (
        ("rules", [] if expected.get("aggregationRule") else _missing_rules(stored, expected)),
        ("subjects", _lacking(stored.get("subjects"), expected.get("subjects"))),
    ):
        if lacking:
            stored[name] = [*(stored.get(name) or []), *lacking]
            changed = True
    selectors = _lacking(_selectors(stored), _selectors(expected))
    if selectors:
        stored["aggregationRule"] = {"clusterRoleSelectors": [*_selectors(stored), *selectors]}
    return changed or bool(selectors)


def _selectors(role: Tree) -> list[Tree]:
    return items(inner(role, "aggregationRule"), "clusterRoleSelectors")


def _lacking(stored: list[Tree] | None, expected: list[Tree] | None) -> list[Tree]:
    return [each for each in expected or [] if each not in (stored or [])]


def _missing_rules(stored: Tree, expected: Tree) -> list[Any]:
    """The missing permissions of a role, one rule for each, as kube-apiserver adds them."""
    owned = msgspec.convert(stored.get("rules") or [], tuple[Rule, ...])
    wanted = msgspec.convert(expected.get("rules") or [], tuple[Rule, ...])
    parts = [part for rule in wanted if missing(owned, [rule]) for part in _parts(rule)]
    return [copied(part) for part in parts if missing(owned, [part])]


def _parts(rule: Rule) -> list[Rule]:
    """A rule split into rules for one verb on one resource or path each."""
    names = [(name,) for name in rule.resource_names] or [()]
    on_resources = [
        Rule(verbs=(verb,), api_groups=(group,), resources=(resource,), resource_names=name)
        for group, resource, verb, name in product(rule.api_groups, rule.resources, rule.verbs, names)
    ]
    paths = product(rule.non_resource_urls, rule.verbs)
    return on_resources + [Rule(verbs=(verb,), non_resource_urls=(path,)) for path, verb in paths]
