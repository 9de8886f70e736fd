"""Adds the overhead, node selector and tolerations of the RuntimeClass to new Pods."""

from __future__ import annotations

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.documents import decode_stored
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items


class PodRuntimes(Plugin):
    """The plugin RuntimeClass. It rejects a Pod whose class is missing."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE"})
    resources = frozenset({("", "pods")})

    async def admit(self, attributes: Attributes) -> None:
        """Add the requirements of the RuntimeClass."""
        if not attributes.subresource and attributes.obj is not None:
            await _runtime(attributes, attributes.obj.setdefault("spec", {}))


async def _runtime(attributes: Attributes, spec: Tree) -> None:
    name = spec.get("runtimeClassName")
    if name is None:
        if spec.get("overhead"):
            why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise attributes.refused(why)
        return
    record = await attributes.context.read("node.k8s.io", "runtimeclasses", "", name)
    if record is None:
        raise attributes.refused(f'pod rejected: RuntimeClass "{name}" not found')
    class_ = decode_stored(record)
    overhead = inner(inner(class_, "overhead"), "podFixed")
    if overhead:
        if spec.get("overhead") not in (None, overhead):
            why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            raise attributes.refused(why)
        spec["overhead"] = dict(overhead)
    _schedule(attributes, spec, inner(class_, "scheduling"))


def _schedule(attributes: Attributes, spec: Tree, scheduling: Tree) -> None:
    wanted, own = inner(scheduling, "nodeSelector"), inner(spec, "nodeSelector")
    for key, value in wanted.items():
        if own.get(key, value) != value:
            where = f"nodeSelector[{key}]"
            why = f"conflict: runtimeClass.scheduling.{where} = {value}; pod.spec.{where} = {own[key]}"
            raise attributes.refused(why)
    if wanted:
        spec["nodeSelector"] = own | wanted
    added = [one for one in items(scheduling, "tolerations") if one not in items(spec, "tolerations")]
    if added:
        spec["tolerations"] = [*items(spec, "tolerations"), *added]
