"""The admission plugin against privilege escalation: a user grants only permissions that the user holds.

Guarantees
- A Role or ClusterRole is written only by a user who holds all of its rules, or who may ``escalate`` it.
- A RoleBinding or ClusterRoleBinding is written only by a user who holds all rules of its role, or who may ``bind`` it.
- An aggregation rule selects any role, so only a user who may do everything writes one.
- The check covers create, update, patch and apply, dry runs included, and sees what all admission plugins made of the object.
- Members of ``system:masters`` pass; so does a change of finalizers and owner references alone, which garbage collection needs.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from steersman.apiserver.admission import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.chain.rbac import Rbac, RoleRef, Rule, listed
from steersman.apiserver.chain.rbac_coverage import TooManyCombinations, go_list, missing
from steersman.apiserver.errors import RequestRejected, bad_request, forbidden, not_found, unnamed
from steersman.apiserver.identity import MASTERS, Access, Authorizer
from steersman.apiserver.registry.collector_changes import is_collection, without_empty
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.storage import Storage
from steersman.golang import quoted
from steersman.schemas.names import path_segment

_GROUP = "rbac.authorization.k8s.io"
_ROLES = frozenset({"roles", "clusterroles"})
_BINDINGS = frozenset({"rolebindings", "clusterrolebindings"})
_REFERRED = {"Role": "roles", "ClusterRole": "clusterroles"}
_EVERYTHING = (Rule(verbs=("*",), api_groups=("*",), resources=("*",)), Rule(verbs=("*",), non_resource_urls=("*",)))


class EscalationPlugin(Plugin):
    """Rejects writes of roles and bindings that would grant more than the writer holds."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE", "UPDATE"})
    resources = frozenset((_GROUP, each) for each in _ROLES | _BINDINGS)

    def __init__(self, storage: Storage) -> None:
        self._rbac = Rbac(storage)

    async def admit(self, attributes: Attributes) -> None:
        """Check a role or a binding."""
        definition, request, obj = attributes.definition, attributes.request, attributes.obj
        authorizer = request.authorizer
        if obj is None or authorizer is None or MASTERS in request.user.groups:
            return
        if definition.resource in _ROLES:
            await self._check_role(attributes, obj, authorizer)
        else:
            await self._check_binding(attributes, obj, authorizer)

    async def _check_role(self, attributes: Attributes, obj: Tree, authorizer: Authorizer) -> None:
        info = attributes.request.info
        wanted = Access(
            user=attributes.request.user,
            verb="escalate",
            group=_GROUP,
            version="*",
            resource=info.resource,
            namespace=info.namespace,
            name=info.name,
        )
        if (await authorizer(wanted)).allowed or is_collection(obj, attributes.old):
            return
        try:
            rules = msgspec.convert(without_empty(obj.get("rules") or []), tuple[Rule, ...])
        except msgspec.ValidationError as error:
            # A later step could still turn it into rules.
            raise _refused(attributes, obj, f"its rules cannot be read: {error}") from None
        if problem := await self._escalation(attributes, rules):
            raise _refused(attributes, obj, problem)
        if not (_aggregates(obj) or _aggregates(attributes.old)):
            return
        if await self._escalation(attributes, _EVERYTHING):
            raise _refused(attributes, obj, "must have cluster-admin privileges to use the aggregationRule")

    async def _check_binding(self, attributes: Attributes, obj: Tree, authorizer: Authorizer) -> None:
        if is_collection(obj, attributes.old):
            return
        namespace, ref = attributes.request.info.namespace, _role_in(obj)
        resource = _REFERRED.get(ref.kind)
        if resource is None:
            raise unnamed(f"unsupported role reference kind: {quoted(ref.kind)}")
        wanted = Access(
            user=attributes.request.user,
            verb="bind",
            group=_GROUP,
            version="*",
            resource=resource,
            namespace=namespace,
            name=ref.name,
        )
        if (await authorizer(wanted)).allowed:
            return
        _check_reference(ref, namespace)
        rules = await self._rbac.role_rules(ref, namespace)
        if rules is None:
            # kube-apiserver names the resource of the request, not that of the role.
            raise not_found(attributes.definition.named, ref.name)
        if problem := await self._escalation(attributes, rules):
            raise _refused(attributes, obj, problem)

    async def _escalation(self, attributes: Attributes, rules: tuple[Rule, ...]) -> str:
        """The permissions of some rules that the writer lacks, as text; empty if the writer holds all."""
        user = attributes.request.user
        owned: list[Rule] = []
        problems: dict[str, None] = {}
        async for grant in self._rbac.grants(user, attributes.request.info.namespace):
            owned += grant.rules
            if grant.problem:
                problems[f'{attributes.definition.named} "{grant.missing}" not found'] = None
        try:
            lacking = missing(owned, rules)
        except TooManyCombinations as error:
            return str(error)
        if not lacking:
            return ""
        words = f"user {quoted(user.name)} (groups={go_list(user.groups)}) is attempting to grant RBAC permissions not currently held:\n"
        unresolved = f"; resolution errors: [{listed(list(problems))}]" if problems else ""
        return words + "\n".join(lacking) + unresolved


def _refused(attributes: Attributes, obj: Tree, why: str) -> RequestRejected:
    return forbidden(attributes.definition.named, obj["metadata"].get("name", ""), why)


def _role_in(obj: Tree) -> RoleRef:
    try:
        return msgspec.convert(obj.get("roleRef") or {}, RoleRef)
    except msgspec.ValidationError:
        return RoleRef()


def _check_reference(ref: RoleRef, namespace: str) -> None:
    """Reject a reference to a role that no server could look up."""
    if ref.kind == "Role" and not namespace:
        raise bad_request("Namespace parameter required.")
    if not ref.name:
        raise bad_request("Name parameter required.")
    if problems := path_segment(ref.name):
        raise bad_request(f"Name parameter invalid: {quoted(ref.name)}: {';'.join(problems)}")


def _aggregates(role: Tree | None) -> bool:
    rule: Any = (role or {}).get("aggregationRule")
    return isinstance(rule, dict) and bool(cast("Tree", rule).get("clusterRoleSelectors"))
