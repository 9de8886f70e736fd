"""Checks of the options of an `ApiServer`. Each error says what to write instead."""

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
    """The built-in group-versions to serve; None for all. ``rbac`` always includes those of roles."""
    if kinds is None:
        return None
    if isinstance(kinds, str):
        raise TypeError(f"kinds must be a list of group-versions: write kinds=[{kinds!r}]")
    known = {str(each): each for each in builtin.all_group_versions()}
    chosen: dict[GroupVersion, None] = {}
    for each in kinds:
        if str(each) not in known:
            near = nearest(str(each), known)
            hint = f"did you mean {near}?" if near else f"available: {', '.join(sorted(known))}"
            raise ValueError(f"kinds: {str(each)!r} is not a built-in group-version; {hint}")
        chosen[known[str(each)]] = None
    if rbac:
        chosen[_RBAC] = None
    return list(chosen)


def chosen_authorizer(authorizer: Authorizer | Literal["rbac"], storage: Storage) -> Authorizer:
    """The authorizer for an option."""
    if authorizer == "rbac":
        return Rbac(storage)
    if not callable(authorizer):
        raise TypeError(f'authorizer must be "rbac" or a function of an Access (got {authorizer!r})')
    return authorizer


def opened(storage: Storage | Path | str | None) -> tuple[Storage, MemoryStorage | None]:
    """The store for an option, and the same store again if the server itself must open and close it."""
    if storage is not None and not isinstance(storage, (str, Path)):
        return storage, None
    own = MemoryStorage() if storage is None else JournaledStorage(storage)
    return own, own
