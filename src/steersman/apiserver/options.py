"""What an `ApiServer` is told, and what to say where that cannot be meant."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from steersman import kinds as builtin
from steersman.apiserver.chain import Authorizer, Rbac
from steersman.apiserver.registry import Definition, custom_definition
from steersman.apiserver.storage import JournaledStorage, MemoryStorage, Storage
from steersman.objects import GroupVersion, Object
from steersman.objects.misuse import nearest

_RBAC = GroupVersion("rbac.authorization.k8s.io", "v1")


def group_versions(kinds: Iterable[GroupVersion | str] | None, *, rbac: bool = False) -> list[GroupVersion] | None:
    """The built-in group-versions that are meant; None for all of them. ``rbac``: those of roles anyway."""
    if kinds is None:
        return None
    if isinstance(kinds, str):
        raise TypeError(f"kinds is a list of group-versions: write kinds=[{kinds!r}]")
    known = {str(each): each for each in builtin.all_group_versions()}
    chosen: dict[GroupVersion, None] = {}
    for each in kinds:
        if str(each) not in known:
            near = nearest(str(each), known)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(sorted(known))}"
            raise ValueError(f"kinds: {str(each)!r} is no built-in group-version; {hint}")
        chosen[known[str(each)]] = None
    if rbac:
        chosen[_RBAC] = None
    return list(chosen)


def served_resources(resources: Iterable[type[Object]]) -> list[Definition]:
    """The definitions of resource classes; no two of one name, and none of Kubernetes' own kinds."""
    if isinstance(resources, type):
        raise TypeError(f"resources is a list of classes: write resources=[{resources.__name__}]")
    found: dict[tuple[str, str], type[Object]] = {}
    definitions: list[Definition] = []
    for cls in resources:
        _refuse_builtin(cls)
        definition = custom_definition(cls)
        group, resource = definition.gvk.group, definition.resource
        before = found.get((group, resource))
        if before is cls:
            continue
        if before is not None:
            versions = f"{before.gvk().version} and {definition.gvk.version}"
            why = (
                f"{before.__qualname__} and {cls.__qualname__} are both {resource}.{group}"
                if before.gvk().version == definition.gvk.version
                else f"{resource}.{group} is given as {versions}: several versions of a kind are not served yet"
            )
            raise ValueError(f"resources: {why}; leave one of them out")
        found[group, resource] = cls
        definitions.append(definition)
    return definitions


def _refuse_builtin(cls: type[Object]) -> None:
    if not hasattr(cls, "__resource__"):
        return
    own = cls.gvk().group_version
    if own in builtin.all_group_versions():
        raise ValueError(
            f"resources: {cls.__qualname__} is a kind of Kubernetes itself, which kinds=[{str(own)!r}] serves"
        )


def chosen_authorizer(authorizer: Authorizer | Literal["rbac"], storage: Storage) -> Authorizer:
    """The authorizer that is meant."""
    if authorizer == "rbac":
        return Rbac(storage)
    if not callable(authorizer):
        raise TypeError(f'authorizer is "rbac" or a function of an Access, not {authorizer!r}')
    return authorizer


def opened(storage: Storage | Path | str | None) -> tuple[Storage, MemoryStorage | None]:
    """The store that is meant, and the same once more if the server itself has to begin and end it."""
    if storage is not None and not isinstance(storage, (str, Path)):
        return storage, None
    own = MemoryStorage() if storage is None else JournaledStorage(storage)
    return own, own
