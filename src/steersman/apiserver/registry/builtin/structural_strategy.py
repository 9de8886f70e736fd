"""Kinds with structural checks and common defaults, but without validation rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items


def _device_requests(spec: Tree) -> None:
    for request in items(inner(spec, "devices"), "requests"):
        options = items(request, "firstAvailable")
        for option in [*options, request["exactly"]] if "exactly" in request else options:
            mode = option["allocationMode"] = option.get("allocationMode") or "ExactCount"
            if mode == "ExactCount":
                option["count"] = option.get("count") or 1
            for toleration in items(option, "tolerations"):
                toleration["operator"] = toleration.get("operator") or "Equal"


def _resource_claim(obj: Tree) -> None:
    _device_requests(obj["spec"])


def _claim_template(obj: Tree) -> None:
    _device_requests(inner(obj["spec"], "spec"))


_FILLS: Mapping[str, Callable[[Tree], None]] = {
    "ResourceClaim": _resource_claim,
    "ResourceClaimTemplate": _claim_template,
}


class StructuralStrategy(BuiltinStrategy):
    """How kinds without validation rules behave."""

    status_keeps_metadata = True

    def fill(self, obj: Tree) -> None:
        fill = _FILLS.get(self.kind.kind)
        if fill is not None:
            fill(obj)
