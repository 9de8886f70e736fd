"""RBAC: what the stored Roles and bindings allow.

Guarantees
- A decision uses what is stored at that moment: a binding applies to the next request after its write.
- Rules only ever allow. A binding to a missing role allows nothing, and a rejection names it.
- Members of ``system:masters`` may do everything, whatever is stored.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import NamedTuple, TypeVar

import msgspec

from steersman.apiserver.identity import MASTERS, Access, Decision, User
from steersman.apiserver.storage import Record, Storage

_GROUP = "rbac.authorization.k8s.io"
_ACCOUNT = "system:serviceaccount:"
#: How many decoded roles, and how many bindings, are cached.
_CACHED_MAX = 10_000


class Rule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A rule of a role."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")


class Subject(msgspec.Struct, frozen=True):
    """A subject of a binding."""

    kind: str = ""
    name: str = ""
    namespace: str = ""


class RoleRef(msgspec.Struct, frozen=True):
    """The role that a binding grants."""

    kind: str = ""
    name: str = ""


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Role(msgspec.Struct, frozen=True):
    rules: tuple[Rule, ...] | None = ()


class _Binding(msgspec.Struct, frozen=True, rename="camel"):
    metadata: _Metadata
    role_ref: RoleRef
    subjects: tuple[Subject, ...] | None = ()


_NO_BINDING = _Binding(_Metadata(), RoleRef())


class Grant(NamedTuple):
    """Rules that a user has, and their source; or why they are missing."""

    rules: tuple[Rule, ...]
    by: str
    problem: str = ""
    #: The name of the missing role.
    missing: str = ""


class _Granted(NamedTuple):
    """The bindings under one prefix, indexed by their subjects."""

    #: The revisions of the bindings, which identify this snapshot.
    versions: list[int]
    bindings: list[_Binding]
    #: The positions of bindings and of their subjects, by the kind and name of the subject.
    places: dict[tuple[str, str], list[tuple[int, int]]]


_T = TypeVar("_T")
_decode_role = msgspec.json.Decoder(_Role).decode
_decode_binding = msgspec.json.Decoder(_Binding).decode


class Rbac:
    """An authorizer that evaluates the Roles and bindings in a store; ``ApiServer(authorizer="rbac")`` has one."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        #: The decoded value of a key, with its revision.
        self._roles: dict[str, tuple[int, _Role]] = {}
        self._bindings: dict[str, tuple[int, _Binding]] = {}
        self._granted: dict[str, _Granted] = {}

    async def __call__(self, access: Access) -> Decision:
        """Decide whether a rule allows an access."""
        if MASTERS in access.user.groups:
            return Decision(True)
        problems: dict[str, None] = {}
        async with aclosing(self.grants(access.user, access.namespace if access.is_resource else "")) as grants:
            async for grant in grants:
                if grant.problem:
                    problems[grant.problem] = None
                elif any(allows(rule, access) for rule in grant.rules):
                    return Decision(True, f"RBAC: allowed by {grant.by}")
        return Decision(False, f"RBAC: {listed(list(problems))}" if problems else "")

    async def grants(self, user: User, namespace: str) -> AsyncGenerator[Grant]:
        """The grants of a user: from cluster-wide bindings, then from those in a namespace."""
        prefixes = [f"{_GROUP}/clusterrolebindings/"]
        if namespace:
            prefixes.append(f"{_GROUP}/rolebindings/{namespace}/")
        for prefix in prefixes:
            granted = self._indexed(prefix, (await self._storage.list(prefix)).records)
            named = [("User", user.name), *(("Group", group) for group in user.groups)]
            # Of several matching subjects of a binding, the first applies.
            found = dict(sorted((place for name in named for place in granted.places.get(name, ())), reverse=True))
            for number, place in reversed(found.items()):
                binding = granted.bindings[number]
                yield await self._grant(binding, (binding.subjects or ())[place])

    def _indexed(self, prefix: str, records: list[Record]) -> _Granted:
        """The bindings of some records, indexed once per change."""
        versions = [record.modified for record in records]
        known = self._granted.get(prefix)
        if known is not None and known.versions == versions:
            return known
        if len(self._granted) >= _CACHED_MAX:
            self._granted.clear()
        made = self._granted[prefix] = _Granted(versions, [], {})
        for record in records:
            if "/" in record.key.removeprefix(prefix):
                # A namespaced custom resource with the same group and name grants no cluster-wide permissions.
                continue
            binding = self._read(self._bindings, record, _decode_binding, _NO_BINDING)
            for place, subject in enumerate(binding.subjects or ()):
                if name := _user_or_group(subject, binding.metadata.namespace):
                    made.places.setdefault(name, []).append((len(made.bindings), place))
            made.bindings.append(binding)
        return made

    async def role_rules(self, ref: RoleRef, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of the role that a binding in a namespace refers to; None if the role is missing."""
        key = (
            f"{_GROUP}/clusterroles/{ref.name}"
            if ref.kind == "ClusterRole"
            else f"{_GROUP}/roles/{namespace}/{ref.name}"
        )
        record, _ = await self._storage.get(key)
        return None if record is None else self._read(self._roles, record, _decode_role, _Role()).rules or ()

    async def _grant(self, binding: _Binding, subject: Subject) -> Grant:
        ref, own = binding.role_ref, binding.metadata
        rules = await self.role_rules(ref, own.namespace)
        if rules is None:
            return Grant((), "", f'{ref.kind.lower()}.{_GROUP} "{ref.name}" not found', ref.name)
        kind, name = (
            ("RoleBinding", f"{own.name}/{own.namespace}") if own.namespace else ("ClusterRoleBinding", own.name)
        )
        whom = subject.name
        if subject.kind == "ServiceAccount":
            whom = f"{subject.name}/{subject.namespace or own.namespace}"
        return Grant(rules, f'{kind} "{name}" of {ref.kind} "{ref.name}" to {subject.kind} "{whom}"')

    @staticmethod
    def _read(cache: dict[str, tuple[int, _T]], record: Record, decode: Callable[[bytes], _T], nothing: _T) -> _T:
        known = cache.get(record.key)
        if known is not None and known[0] == record.modified:
            return known[1]
        if len(cache) >= _CACHED_MAX:
            cache.clear()
        try:
            value = decode(record.value)
        except msgspec.DecodeError:
            # An unreadable object allows nothing.
            value = nothing
        cache[record.key] = (record.modified, value)
        return value


def listed(problems: Sequence[str]) -> str:
    """Several problems as one, as Go lists them."""
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"


def _user_or_group(subject: Subject, namespace: str) -> tuple[str, str] | None:
    """The user or group that a subject of a binding in a namespace names."""
    if subject.kind in {"User", "Group"}:
        return subject.kind, subject.name
    owner = subject.namespace or namespace
    return ("User", f"{_ACCOUNT}{owner}:{subject.name}") if owner and subject.kind == "ServiceAccount" else None


def allows(rule: Rule, access: Access) -> bool:
    """Whether a rule covers an access."""
    if not ("*" in rule.verbs or access.verb in rule.verbs):
        return False
    if not access.is_resource:
        return any(covers_path(url, access.path) for url in rule.non_resource_urls)
    return (
        ("*" in rule.api_groups or access.group in rule.api_groups)
        and _names_resource(rule, access)
        and (not rule.resource_names or access.name in rule.resource_names)
    )


def _names_resource(rule: Rule, access: Access) -> bool:
    if "*" in rule.resources:
        return True
    if not access.subresource:
        return access.resource in rule.resources
    return f"{access.resource}/{access.subresource}" in rule.resources or f"*/{access.subresource}" in rule.resources


def covers_path(url: str, path: str) -> bool:
    """Whether a URL of a rule, which may end in a wildcard, covers a path."""
    return url in {"*", path} or (url.endswith("*") and path.startswith(url.rstrip("*")))
