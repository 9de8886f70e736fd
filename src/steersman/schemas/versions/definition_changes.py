"""Which changes of CustomResourceDefinitions break stored objects or clients. Pure.

Guarantees
- After a change without a break, the server accepts every stored object and every request of an old client as before,
  and no object loses a field. `tests/schemas/test_compatibility.py` compares this with kube-apiserver.
- Every change names its place, its reason and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from steersman.schemas.versions.definition_losses import lost_fields, schema_of
from steersman.schemas.versions.schema_changes import schema_changes

Tree = dict[str, Any]

_VERSION: Final = "keep it, and remove it only in a later version, after a conversion"
_OTHER_KIND: Final = "keep it: with another one it is another kind, to which you must move the objects yourself"
_KEEP: Final = "keep it"


@dataclass(frozen=True, slots=True)
class DefinitionChange:
    """One change of a definition: where, what, why it matters, and what to do."""

    #: The name of the definition, such as ``sites.example.com``.
    definition: str
    #: The version of the kind; empty if all are meant.
    version: str
    #: The field, such as ``spec.ports[].name``; empty if it concerns the whole definition or version.
    path: str
    what: str
    reason: str
    advice: str
    #: Whether stored objects or clients break; otherwise the change only needs attention.
    breaks: bool = True


def definition_changes(
    old: Iterable[Tree], new: Iterable[Tree], *, complete: bool = True, converted: bool = False
) -> list[DefinitionChange]:
    """The changes from ``old`` to ``new`` definitions that break something, or need attention.

    ``complete`` counts definitions that ``new`` lacks as removed. ``converted`` says that another program sets
    ``spec.conversion``.
    """
    before = {each["metadata"]["name"]: each for each in old}
    after = {each["metadata"]["name"]: each for each in new}
    added = [each for name, each in after.items() if name not in before]
    found: list[DefinitionChange] = []
    for name, definition in before.items():
        if name in after:
            changes = _Definition(name, definition, after[name], converted=converted)
            found += changes.all()
        elif moved := _moved(definition, added, across_groups=complete):
            what = f"named {moved} instead"
            found.append(
                DefinitionChange(
                    name, "", "", what, "clients use the old name, and objects are stored under it", _OTHER_KIND
                )
            )
        elif complete:
            reason = "clients use the kind; without its definition, the server deletes all of its objects"
            found.append(
                DefinitionChange(name, "", "", "definition removed", reason, "keep the class until no object is left")
            )
    return found


def _moved(definition: Tree, others: Iterable[Tree], *, across_groups: bool) -> str:
    """The name of the definition that a kind has moved to; empty if there is none.

    A cluster also has kinds of other programs, some with the same name in another group: these have not moved.
    """
    names = definition["spec"]["names"]
    for other in others:
        spec = other["spec"]
        same_group = spec["group"] == definition["spec"]["group"] and spec["names"]["kind"] == names["kind"]
        same_names = (spec["names"]["kind"], spec["names"]["plural"]) == (names["kind"], names["plural"])
        if same_group or (across_groups and same_names):
            return other["metadata"]["name"]
    return ""


class _Definition:
    """An old definition and the new one of the same name."""

    def __init__(self, name: str, old: Tree, new: Tree, *, converted: bool) -> None:
        self._name = name
        self._old: Tree = old["spec"]
        self._new: Tree = new["spec"]
        self._now: dict[str, Tree] = {version["name"]: version for version in self._old["versions"]}
        self._then: dict[str, Tree] = {each["name"]: each for each in self._new["versions"]}
        status: Tree = old.get("status") or {}
        stored: list[str] = status.get("storedVersions") or []
        #: The versions in which objects may be stored.
        self._stored = stored or [name for name, each in self._now.items() if each.get("storage")]
        self._converted = converted

    def all(self) -> Iterator[DefinitionChange]:
        yield from self._whole()
        yield from self._names()
        yield from self._versions()
        for name in self._now:
            if name in self._then:
                yield from self._version(name)

    def _change(
        self, what: str, reason: str, advice: str, *, version: str = "", path: str = "", breaks: bool = True
    ) -> DefinitionChange:
        return DefinitionChange(self._name, version, path, what, reason, advice, breaks)

    def _whole(self) -> Iterator[DefinitionChange]:
        old, new = self._old, self._new
        if old["scope"] != new["scope"]:
            what = f"scope {new['scope']} instead of {old['scope']}"
            yield self._change(what, "the server refuses it, and all paths of objects change", _OTHER_KIND)
        if old.get("preserveUnknownFields") and not new.get("preserveUnknownFields"):
            reason = "the server prunes fields that no schema declares, and stored objects lose them"
            yield self._change("preserveUnknownFields removed", reason, "declare all fields that objects have first")
        before, after = _strategy(old), _strategy(new)
        if (
            before == "Webhook"
            and after == "None"
            and not self._converted
            and len({*self._now, *self._then, *self._stored}) > 1
        ):
            reason = "the server changes only the apiVersion of an object and prunes what its version lacks"
            yield self._change(
                "conversion removed", reason, "name the module of the manager that converts the versions"
            )

    def _names(self) -> Iterator[DefinitionChange]:
        before, after = self._old["names"], self._new["names"]
        for name, usual in (("kind", ""), ("listKind", f"{before['kind']}List"), ("singular", before["kind"].lower())):
            one, other = before.get(name) or usual, after.get(name) or usual
            if one != other:
                reason = "clients and stored objects use the old name" if name == "kind" else "clients use the old name"
                yield self._change(f"{name} {other} instead of {one}", reason, _OTHER_KIND if name == "kind" else _KEEP)
        for name, use in (("shortNames", "short name"), ("categories", "category")):
            for lost in [each for each in before.get(name) or () if each not in (after.get(name) or ())]:
                yield self._change(
                    f"{use} {lost} removed", f"kubectl get {lost} of users no longer finds the kind", _KEEP
                )

    def _versions(self) -> Iterator[DefinitionChange]:
        for name in dict.fromkeys((*self._now, *self._stored)):
            if name in self._then:
                continue
            if name in self._stored:
                reason = "objects are stored in it: the server refuses a definition without it"
                advice = f"store objects in another version, run steersman migrate {self._name}, then remove it"
            else:
                reason, advice = "clients use it", "set served=False first, when no client uses it"
                if not self._now[name].get("served"):
                    continue
            yield self._change("version removed", reason, advice, version=name)
        before, after = _storage(self._now), _storage(self._then)
        if before != after and before in self._then:
            reason = f"objects stay stored in {before} until they are written"
            if after not in self._now:
                reason += f"; a rollback to a definition without {after} is refused once an object is written"
            advice = f"after the rollout, run steersman migrate {self._name}"
            yield self._change("now the storage version", reason, advice, version=after, breaks=False)

    def _version(self, name: str) -> Iterator[DefinitionChange]:
        old, new = self._now[name], self._then[name]
        if old.get("served") and not new.get("served"):
            yield self._change(
                "no longer served", "clients of this version fail", "serve it until no client uses it", version=name
            )
        if not old.get("served") and name not in self._stored:
            return  # no client and no object has this version
        changed = schema_changes(schema_of(old), schema_of(new))
        retyped = tuple(f"{each.path}{mark}" for each in changed if each.what.startswith("type ") for mark in ".[{")
        for path in lost_fields(schema_of(old), schema_of(new)):
            if not path.startswith(retyped or ("\0",)):
                place, _, what = path.partition(": ")
                reason = "the server prunes it: objects lose the value at their next write, and clients cannot read it"
                yield self._change(f"{what or 'field'} removed", reason, _VERSION, version=name, path=place)
        for each in changed:
            yield self._change(each.what, each.reason, each.advice, version=name, path=each.path)
        yield from self._subresources(name)
        selectable = [each["jsonPath"] for each in new.get("selectableFields") or ()]
        for field in old.get("selectableFields") or ():
            if field["jsonPath"] not in selectable:
                path = field["jsonPath"].removeprefix(".")
                yield self._change(
                    "no longer selectable", "lists and watches that select by it fail", _KEEP, version=name, path=path
                )

    def _subresources(self, name: str) -> Iterator[DefinitionChange]:
        before: Tree = self._now[name].get("subresources") or {}
        after: Tree = self._then[name].get("subresources") or {}
        had, has = before.get("status") is not None, after.get("status") is not None
        if had and not has:
            reason = "clients that write the status get 404, and other writes can change it"
            yield self._change("subresource status removed", reason, _KEEP, version=name)
        if has and not had:
            reason = "the server ignores the status in other writes: clients must write it to the subresource"
            yield self._change(
                "subresource status added", reason, "change the clients first, or add a version", version=name
            )
        scale = before.get("scale")
        if scale is not None and scale != after.get("scale"):
            what = "changed" if after.get("scale") else "removed"
            reason = "kubectl scale and autoscalers use it"
            yield self._change(f"subresource scale {what}", reason, _KEEP, version=name)


def _strategy(spec: Tree) -> str:
    conversion: Tree = spec.get("conversion") or {}
    return conversion.get("strategy") or "None"


def _storage(versions: dict[str, Tree]) -> str:
    return next((name for name, each in versions.items() if each.get("storage")), "")
