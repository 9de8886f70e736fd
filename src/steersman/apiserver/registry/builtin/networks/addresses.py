"""IPAddresses and ServiceCIDRs: the addresses of Services, and the ranges that they come from."""

from __future__ import annotations

import re

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.formats import canonical_address, canonical_cidr, network
from steersman.apiserver.registry.builtin.types.internal_form import printed
from steersman.apiserver.registry.builtin.types.references import path_segment_problems
from steersman.apiserver.registry.builtin.types.trees import Tree, items, subtree
from steersman.apiserver.registry.strategy import CHANGED, WHOLE
from steersman.objects.field_problems import IMMUTABLE, FieldProblem, each, invalid, required
from steersman.schemas.names import dns_subdomain, path_segment

_CIDRS = "spec.cidrs"
_FAMILIES = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


class IPAddressStrategy(BuiltinStrategy):
    """How IPAddresses behave."""

    declared_fields = re.compile(r"spec\.parentRef(\.resource|\.name)?")

    def validate_name(self, name: str, *, prefix: bool = False) -> list[str]:
        del prefix
        return canonical_address(name)

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        parent = subtree(obj, "spec").get("parentRef")
        if parent is None:
            return [required("spec.parentRef")]
        group, namespace = parent.get("group", ""), parent.get("namespace", "")
        problems = each("spec.parentRef.group", group, dns_subdomain(group)) if group else []
        problems += path_segment_problems("spec.parentRef", parent, "resource", "name")
        return problems + each("spec.parentRef.namespace", namespace, path_segment(namespace))

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that the parent does not change."""
        problems = [WHOLE, *self.validate_create(obj), CHANGED]
        new, before = (subtree(one, "spec").get("parentRef") for one in (obj, old))
        if new != before:
            shown = printed(new, "*networking.ParentReference")
            problems.append(invalid("spec.parentRef", shown, IMMUTABLE))
        return problems


class ServiceCIDRStrategy(BuiltinStrategy):
    """How ServiceCIDRs behave."""

    status_keeps_metadata = True

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        given = items(subtree(obj, "spec"), "cidrs")
        if not given:
            return [required(_CIDRS, "at least one CIDR required")]
        if len(given) > 2:
            shown = printed({"cidrs": given}, "networking.ServiceCIDRSpec")
            return [invalid(_CIDRS, shown, "may only hold up to 2 values")]
        problems = [found for index, text in enumerate(given) for found in _cidr(index, text)]
        ranges = [network(text) for text in given]
        if len(ranges) == 2 and len({one.version for one in ranges if one is not None}) == 1 and None not in ranges:
            problems.append(invalid(_CIDRS, given, _FAMILIES))
        return problems

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that nothing changes, except for an added range of the other IP family."""
        new, before = items(subtree(obj, "spec"), "cidrs"), items(subtree(old, "spec"), "cidrs")
        if len(new) == len(before) or (len(new), len(before)) == (2, 1):
            problems = [
                invalid(f"{_CIDRS}[{index}]", new[index], IMMUTABLE)
                for index, text in enumerate(before)
                if new[index] != text
            ]
            return problems if len(new) == len(before) else problems + self.validate_create(obj)
        return [invalid(_CIDRS, new or None, IMMUTABLE)]


def _cidr(index: int, text: str) -> list[FieldProblem]:
    return each(f"{_CIDRS}[{index}]", text, canonical_cidr(text))
