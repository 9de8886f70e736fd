"""Rule coverage: which permissions of some rules are missing from others.

Guarantees
- The comparison is kube-apiserver's: wildcards, subresources, resource names and path prefixes cover what they cover there.
- The missing permissions are worded as kube-apiserver words them.
- The work is bounded: rules with more than `COMBINATIONS_MAX` combinations are never spelled out, and at most
  `COMPARISONS_MAX` pairs of rules are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

from steersman.apiserver.chain.rbac import Rule, covers_path
from steersman.golang import quoted

#: How many combinations of group, resource, name and verb are compared one by one.
COMBINATIONS_MAX = 50_000
#: How many times a rule, or one of its combinations, is compared with a rule of the user.
COMPARISONS_MAX = 2_000_000


class TooManyCombinations(ValueError):
    """The rules name more combinations than the server compares."""


class _Target(NamedTuple):
    """What one verb of a rule applies to: a path, or a resource with at most one name."""

    group: str = ""
    resource: str = ""
    name: str | None = None
    path: str | None = None

    def __str__(self) -> str:
        if self.path is not None:
            return f"NonResourceURLs:{go_list((self.path,))}"
        return f"APIGroups:{go_list((self.group,))}, Resources:{go_list((self.resource,))}"


def missing(owned: Sequence[Rule], wanted: Iterable[Rule]) -> list[str]:
    """The permissions of ``wanted`` that ``owned`` lacks, one sorted description for each target."""
    lacking: dict[_Target, list[str]] = {}
    of_paths: set[str] = set()
    # The widest rules first: they cover most.
    owned = sorted(dict.fromkeys(owned), key=lambda rule: not ("*" in rule.verbs and "*" in rule.resources))
    budget, comparisons = COMBINATIONS_MAX, COMPARISONS_MAX
    for rule in wanted:
        cover = next((number for number, each in enumerate(owned, 1) if _covers_whole(each, rule)), 0)
        combinations = 0 if cover else _combinations(rule)
        budget -= combinations
        if budget < 0:
            words = "the rules have more than {} combinations of group, resource, name and verb: use wildcards or fewer rules"
            raise TooManyCombinations(words.format(COMBINATIONS_MAX))
        comparisons -= cover or len(owned) * (1 + combinations)
        if comparisons < 0:
            words = "comparing the rules with the {} rules of the user takes too long: use wildcards or fewer rules"
            raise TooManyCombinations(words.format(len(owned)))
        if cover:
            continue
        for target in _targets(rule):
            verbs = _verbs_on(owned, target)
            absent = [] if "*" in verbs else [verb for verb in rule.verbs if verb not in verbs]
            if target.path is not None:
                # kube-apiserver lists the verbs of paths one by one.
                of_paths |= {f"{{{target}, Verbs:{go_list((verb,))}}}" for verb in absent}
            elif absent:
                lacking.setdefault(target, []).extend(absent)
    return sorted({_described(target, verbs) for target, verbs in lacking.items()} | of_paths)


def go_list(texts: Sequence[str]) -> str:
    """Texts as Go prints a slice of quoted strings."""
    return f"[{' '.join(map(quoted, texts))}]"


def _described(target: _Target, verbs: list[str]) -> str:
    named = "" if target.name is None else f", ResourceNames:{go_list((target.name,))}"
    return f"{{{target}{named}, Verbs:{go_list(verbs)}}}"


def _combinations(rule: Rule) -> int:
    on_resources = len(rule.api_groups) * len(rule.resources) * (len(rule.resource_names) or 1)
    return (on_resources + len(rule.non_resource_urls)) * len(rule.verbs)


def _targets(rule: Rule) -> Iterable[_Target]:
    for group, resource, name in product(rule.api_groups, rule.resources, rule.resource_names or (None,)):
        yield _Target(group, resource, name)
    for path in rule.non_resource_urls:
        yield _Target(path=path)


def _verbs_on(owned: Sequence[Rule], target: _Target) -> set[str]:
    verbs: set[str] = set()
    for rule in owned:
        if _covers(rule, target):
            verbs.update(rule.verbs)
    return verbs


def _covers(rule: Rule, target: _Target) -> bool:
    if target.path is not None:
        return not rule.resource_names and any(covers_path(url, target.path) for url in rule.non_resource_urls)
    if rule.resource_names and target.name not in rule.resource_names:
        return False
    if "*" not in rule.api_groups and target.group not in rule.api_groups:
        return False
    return _covers_resource(rule, target.resource)


def _covers_resource(rule: Rule, resource: str) -> bool:
    if "*" in rule.resources or resource in rule.resources:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in rule.resources


def _covers_whole(owner: Rule, rule: Rule) -> bool:
    """Whether one rule covers another without looking at combinations."""
    if not (("*" in owner.verbs) or set(rule.verbs) <= set(owner.verbs)):
        return False
    if owner.resource_names and not (rule.resource_names and set(rule.resource_names) <= set(owner.resource_names)):
        return False
    if not ("*" in owner.api_groups or set(rule.api_groups) <= set(owner.api_groups)):
        return False
    if not ("*" in owner.resources or set(rule.resources) <= set(owner.resources)):
        return False
    return "*" in owner.non_resource_urls or set(rule.non_resource_urls) <= set(owner.non_resource_urls)
