"""Values that a new Pod gets from its classes: its priority, and the needs of its runtime.

Guarantees
- A Pod with a missing PriorityClass or RuntimeClass is rejected with the server's message.
- The two system PriorityClasses of every cluster need not be stored.
"""

from __future__ import annotations

from steersman.apiserver.admission.attributes import Attributes, Operation, Plugin
from steersman.apiserver.documents import decode_stored
from steersman.apiserver.errors import Refused, forbidden
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.objects import GroupVersionKind

_POD = GroupVersionKind("", "v1", "Pod")
_PRIORITIES = ("scheduling.k8s.io", "priorityclasses")
_RUNTIMES = ("node.k8s.io", "runtimeclasses")
#: Classes that always exist.
_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_PREEMPTS = "PreemptLowerPriority"


class PodClasses(Plugin):
    """Looks up the classes of a new Pod."""

    operations: frozenset[Operation] = frozenset({"CREATE"})

    async def admit(self, attributes: Attributes) -> None:
        """Fill in the priority and the needs of the runtime."""
        if attributes.definition.gvk != _POD or attributes.subresource or attributes.obj is None:
            return
        spec: Tree = attributes.obj.setdefault("spec", {})
        await _priority(attributes, spec)
        await _runtime(attributes, spec)


def _refused(attributes: Attributes, why: str) -> Refused:
    return forbidden(attributes.definition.named, attributes.name, why)


async def _priority(attributes: Attributes, spec: Tree) -> None:
    name = spec.get("priorityClassName", "")
    if name:
        class_ = await _named_priority(attributes, name)
        if class_ is None:
            raise _refused(attributes, f"no PriorityClass with name {name} was found")
    else:
        class_ = await _default_priority(attributes)
        if class_.get("metadata"):
            spec["priorityClassName"] = class_["metadata"]["name"]
    value, policy = class_.get("value", 0), class_.get("preemptionPolicy", _PREEMPTS)
    if spec.get("priority", value) != value:
        raise _refused(
            attributes,
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority admission "
            f"controller computed {value} from the given PriorityClass name",
        )
    if spec.get("preemptionPolicy", policy) != policy:
        raise _refused(
            attributes,
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name",
        )
    spec["priority"], spec["preemptionPolicy"] = value, policy


async def _named_priority(attributes: Attributes, name: str) -> Tree | None:
    record = await attributes.context.read(*_PRIORITIES, "", name)
    if record is not None:
        return decode_stored(record)
    return {"value": _SYSTEM[name]} if name in _SYSTEM else None


async def _default_priority(attributes: Attributes) -> Tree:
    """The default PriorityClass: of several, the lowest."""
    page = await attributes.context.storage.list("/".join((*_PRIORITIES, "")))
    marked = [decode_stored(record) for record in page.records if b'"globalDefault":true' in record.value]
    nothing: Tree = {}
    return min(marked, key=lambda class_: class_.get("value", 0), default=nothing)


async def _runtime(attributes: Attributes, spec: Tree) -> None:
    name = spec.get("runtimeClassName")
    if name is None:
        if spec.get("overhead"):
            why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise _refused(attributes, why)
        return
    record = await attributes.context.read(*_RUNTIMES, "", name)
    if record is None:
        raise _refused(attributes, f'pod rejected: RuntimeClass "{name}" not found')
    class_ = decode_stored(record)
    overhead = inner(inner(class_, "overhead"), "podFixed")
    if overhead:
        if spec.get("overhead") not in (None, overhead):
            why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            raise _refused(attributes, why)
        spec["overhead"] = dict(overhead)
    _schedule(attributes, spec, inner(class_, "scheduling"))


def _schedule(attributes: Attributes, spec: Tree, scheduling: Tree) -> None:
    wanted, own = inner(scheduling, "nodeSelector"), inner(spec, "nodeSelector")
    for key, value in wanted.items():
        if own.get(key, value) != value:
            where = f"nodeSelector[{key}]"
            why = f"conflict: runtimeClass.scheduling.{where} = {value}; pod.spec.{where} = {own[key]}"
            raise _refused(attributes, why)
    if wanted:
        spec["nodeSelector"] = own | wanted
    added = [one for one in items(scheduling, "tolerations") if one not in items(spec, "tolerations")]
    if added:
        spec["tolerations"] = [*items(spec, "tolerations"), *added]
