"""What an `ApiServer` is told, and what to say where that cannot be meant."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from steersman import kinds as builtin
from steersman.apiserver.chain import Authorizer, Rbac
from steersman.apiserver.storage import JournaledStorage, MemoryStorage, Storage
from steersman.objects import GroupVersion
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
