"""The plugin LimitRanger: sets default resources on Pods, and checks Pods and PersistentVolumeClaims.

Guarantees
- Without a LimitRange in the namespace, a Pod costs two searches in the store's index, and other kinds none.
- Many containers are compared with many limits in a worker thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.documents import decode_stored
from steersman.apiserver.registry.builtin.pods.resources import aggregate
from steersman.apiserver.registry.builtin.types.resource_names import COMPUTE
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata, subtree
from steersman.objects import Quantity

_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_PODS: Final = "pods"
#: Larger amounts are compared in whole units, others in thousandths.
_MILLI_MAX: Final = (2**63 - 1) // 1000
_NOTHING: Final = Quantity(0)


class LimitRanges(Plugin):
    """Applies the LimitRanges of a namespace."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE", "UPDATE"})
    resources = frozenset({("", "pods"), ("", "persistentvolumeclaims")})

    async def admit(self, attributes: Attributes) -> None:
        """Set the missing requests and limits of a Pod's containers."""
        if attributes.definition.resource == _PODS and attributes.obj is not None:
            for limits in await _stored(attributes):
                _fill(attributes.obj, limits.items)

    async def validate(self, attributes: Attributes) -> None:
        """Reject a Pod or a claim outside the limits."""
        for limits in await _stored(attributes):
            assert attributes.obj is not None
            problems = await attributes.context.workers.run(
                partial(_distinct_problems, attributes.definition.resource, attributes.obj, limits.items),
                size=attributes.request.size + limits.size,
            )
            if problems:
                raise attributes.refused(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")


class _Limits(NamedTuple):
    """The limits of a LimitRange, and its size in bytes."""

    items: list[Tree]
    size: int


async def _stored(attributes: Attributes) -> list[_Limits]:
    """The limits of each LimitRange that applies to a write."""
    definition, old = attributes.definition, attributes.old
    # Only a resize changes the resources of a Pod's containers.
    of_pod = definition.resource == _PODS and attributes.operation == "UPDATE"
    if attributes.subresource != ("resize" if of_pod else ""):
        return []
    if old is not None and "deletionTimestamp" in old["metadata"]:
        return []
    page = await attributes.context.storage.list(f"core/limitranges/{attributes.namespace}/")
    return [
        _Limits(items(subtree(decode_stored(record), "spec"), "limits"), len(record.value)) for record in page.records
    ]


def _fill(pod: Tree, limits: list[Tree]) -> None:
    own = [limit for limit in limits if limit.get("type") == "Container"]
    defaults: dict[str, dict[str, str]] = {"requests": {}, "limits": {}}
    for each in own:
        defaults["requests"] |= inner(each, "defaultRequest")
        defaults["limits"] |= inner(each, "default")
    changes: list[str] = []
    spec = subtree(pod, "spec")
    for sort, field in (("container", "containers"), ("init container", "initContainers")):
        for container in items(spec, field):
            changes += _filled(container, defaults, f"{sort} {container.get('name', '')}")
    if changes:
        metadata(pod)["annotations"] = inner(metadata(pod), "annotations") | {
            _ANNOTATION: f"LimitRanger plugin set: {'; '.join(changes)}"
        }


def _filled(container: Tree, defaults: Mapping[str, Mapping[str, str]], whose: str) -> list[str]:
    """Set the missing resources of a container. Returns a description of each change."""
    changes: list[str] = []
    resources: Tree = dict(inner(container, "resources"))
    for field, word in (("requests", "request"), ("limits", "limit")):
        given = inner(resources, field)
        added = {name: amount for name, amount in defaults[field].items() if name not in given}
        if added:
            resources[field] = given | added
            changes.append(f"{', '.join(sorted(added))} {word} for {whose}")
    if changes:
        container["resources"] = resources
    return changes


def _distinct_problems(resource: str, obj: Tree, limits: list[Tree]) -> list[str]:
    return list(dict.fromkeys(_problems(resource, obj, limits)))


def _problems(resource: str, obj: Tree, limits: list[Tree]) -> Iterable[str]:
    spec = subtree(obj, "spec")
    for limit in limits:
        match resource, limit.get("type"):
            case "pods", "Container":
                for container in (*items(spec, "containers"), *items(spec, "initContainers")):
                    yield from _outside(limit, *_amounts(inner(container, "resources")))
            case "pods", "Pod":
                yield from _outside(limit, *_total(spec))
            case "persistentvolumeclaims", "PersistentVolumeClaim":
                requests, _ = _amounts(inner(spec, "resources"))
                yield from _too_small(limit, requests, {})
                yield from _too_large_request(limit, requests)
            case _:
                pass


def _amounts(resources: Tree) -> tuple[dict[str, Quantity], dict[str, Quantity]]:
    """The requests and the limits."""
    requests, limits = (
        {name: Quantity(amount) for name, amount in inner(resources, field).items()} for field in ("requests", "limits")
    )
    return requests, limits


def _total(spec: Tree) -> tuple[dict[str, Quantity], dict[str, Quantity]]:
    """The requests and the limits of a Pod: its own, or those of its containers."""
    requests, limits = _amounts({field: aggregate(spec, field) for field in ("requests", "limits")})
    own_requests, own_limits = _amounts(inner(spec, "resources"))
    return (
        requests | {name: own_requests[name] for name in COMPUTE & own_requests.keys()},
        limits | {name: own_limits[name] for name in COMPUTE & own_limits.keys()},
    )


def _outside(limit: Tree, requests: dict[str, Quantity], limits: dict[str, Quantity]) -> Iterable[str]:
    yield from _too_small(limit, requests, limits)
    yield from _too_large(limit, requests, limits)
    yield from _too_far_apart(limit, requests, limits)


def _compared(*amounts: Quantity | None) -> list[int]:
    """Amounts in the same unit: in thousandths, unless one is too large for that."""
    known = [_NOTHING if amount is None else amount for amount in amounts]
    in_thousandths = all(amount.value() <= _MILLI_MAX for amount in known)
    return [amount.milli_value() if in_thousandths else amount.value() for amount in known]


def _too_small(limit: Tree, requests: dict[str, Quantity], limits: dict[str, Quantity]) -> Iterable[str]:
    for name, text in sorted(inner(limit, "min").items()):
        least, request, most = Quantity(text), requests.get(name), limits.get(name)
        asked, allowed, enforced = _compared(request, most, least)
        rule = f"minimum {name} usage per {limit['type']} is {least.printed()}"
        if request is None:
            yield f"{rule}.  No request is specified"
        elif asked < enforced:
            yield f"{rule}, but request is {request.printed()}"
        elif most is not None and allowed < enforced:
            yield f"{rule}, but limit is {most.printed()}"


def _too_large_request(limit: Tree, requests: dict[str, Quantity]) -> Iterable[str]:
    for name, text in sorted(inner(limit, "max").items()):
        most, request = Quantity(text), requests.get(name)
        asked, enforced = _compared(request, most)
        rule = f"maximum {name} usage per {limit['type']} is {most.printed()}"
        if request is None:
            yield f"{rule}.  No request is specified"
        elif asked > enforced:
            yield f"{rule}, but request is {request.printed()}"


def _too_large(limit: Tree, requests: dict[str, Quantity], limits: dict[str, Quantity]) -> Iterable[str]:
    for name, text in sorted(inner(limit, "max").items()):
        highest, request, most = Quantity(text), requests.get(name), limits.get(name)
        asked, allowed, enforced = _compared(request, most, highest)
        rule = f"maximum {name} usage per {limit['type']} is {highest.printed()}"
        if most is None:
            yield f"{rule}.  No limit is specified"
        elif allowed > enforced:
            yield f"{rule}, but limit is {most.printed()}"
        elif request is not None and asked > enforced:
            yield f"{rule}, but request is {request.printed()}"


def _too_far_apart(limit: Tree, requests: dict[str, Quantity], limits: dict[str, Quantity]) -> Iterable[str]:
    for name, text in sorted(inner(limit, "maxLimitRequestRatio").items()):
        highest = Quantity(text)
        asked, allowed, _ = _compared(requests.get(name), limits.get(name), highest)
        rule = f"{name} max limit to request ratio per {limit['type']} is {highest.printed()}"
        if not asked:
            yield f"{rule}, but no request is specified or request is 0"
        elif not allowed:
            yield f"{rule}, but no limit is specified or limit is 0"
        else:
            ratio = allowed / asked
            exact = highest.value() <= _MILLI_MAX
            if (ratio * 1000 if exact else ratio) > (highest.milli_value() if exact else highest.value()):
                yield f"{rule}, but provided ratio is {ratio:f}"
