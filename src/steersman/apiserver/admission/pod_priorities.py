"""Sets the priority of Pods from their PriorityClass, and allows at most one default class.

Guarantees
- The plugin rejects a Pod whose PriorityClass is missing.
- The two system PriorityClasses of every cluster need not be stored.
"""

from __future__ import annotations

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.documents import decode_stored
from steersman.apiserver.registry.builtin.cluster.priority_class import SYSTEM_PRIORITIES
from steersman.apiserver.registry.builtin.types.trees import Tree, inner

_CLASSES = ("scheduling.k8s.io", "priorityclasses")
_PREEMPTS = "PreemptLowerPriority"


class PodPriorities(Plugin):
    """The plugin Priority."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE", "UPDATE", "DELETE"})
    resources = frozenset({("", "pods"), _CLASSES})

    async def admit(self, attributes: Attributes) -> None:
        """Set the priority of a new Pod; an update keeps it."""
        obj, old = attributes.obj, attributes.old
        if _is_class(attributes):
            _keep_system_classes(attributes)
            return
        if attributes.subresource or obj is None:
            return
        spec: Tree = obj.setdefault("spec", {})
        if old is None:
            await _fill(attributes, spec)
            return
        for name in ("priority", "preemptionPolicy"):
            if name in inner(old, "spec"):
                spec.setdefault(name, old["spec"][name])

    async def validate(self, attributes: Attributes) -> None:
        """Check that no other class is the default."""
        obj = attributes.obj
        if obj is not None and obj.get("globalDefault") and _is_class(attributes):
            name = inner(await _default(attributes), "metadata").get("name")
            if name is not None and (attributes.operation == "CREATE" or name != attributes.name):
                raise attributes.refused(
                    f"PriorityClass {name} is already marked as default. Only one default can exist"
                )


def _is_class(attributes: Attributes) -> bool:
    return attributes.definition.resource == _CLASSES[1]


def _keep_system_classes(attributes: Attributes) -> None:
    if attributes.operation == "DELETE" and attributes.name in SYSTEM_PRIORITIES:
        raise attributes.refused("this is a system priority class and cannot be deleted")


async def _fill(attributes: Attributes, spec: Tree) -> None:
    name = spec.get("priorityClassName", "")
    if name:
        class_ = await _named(attributes, name)
        if class_ is None:
            raise attributes.refused(f"no PriorityClass with name {name} was found")
    else:
        class_ = await _default(attributes)
        if class_.get("metadata"):
            spec["priorityClassName"] = class_["metadata"]["name"]
    value, policy = class_.get("value", 0), class_.get("preemptionPolicy", _PREEMPTS)
    if spec.get("priority", value) != value:
        raise attributes.refused(
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority admission "
            f"controller computed {value} from the given PriorityClass name",
        )
    if spec.get("preemptionPolicy", policy) != policy:
        raise attributes.refused(
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name",
        )
    spec["priority"], spec["preemptionPolicy"] = value, policy


async def _named(attributes: Attributes, name: str) -> Tree | None:
    record = await attributes.context.read(*_CLASSES, "", name)
    if record is not None:
        return decode_stored(record)
    return {"value": SYSTEM_PRIORITIES[name]} if name in SYSTEM_PRIORITIES else None


async def _default(attributes: Attributes) -> Tree:
    """The default PriorityClass; of several, the one with the lowest value."""
    page = await attributes.context.storage.list("/".join((*_CLASSES, "")))
    marked = [decode_stored(record) for record in page.records if b'"globalDefault":true' in record.value]
    nothing: Tree = {}
    return min(marked, key=lambda class_: class_.get("value", 0), default=nothing)
