"""The options of an `ApiServer`, and their checks. Each error says what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict

from steersman import kinds as builtin
from steersman.apiserver.admission import AdmissionFunction, Plugin
from steersman.apiserver.chain import AuditHook, Rbac
from steersman.apiserver.context import Limits
from steersman.apiserver.custom_resources import Converter
from steersman.apiserver.identity import Authorizer, User
from steersman.apiserver.registry import Definition
from steersman.apiserver.request import ChainHandler, Route
from steersman.apiserver.storage import JournaledStorage, MemoryStorage, Storage
from steersman.objects import GroupVersion, Object
from steersman.objects.misuse import nearest


class ServerOptions(TypedDict, total=False):
    """The options of an `ApiServer`, which describes them; a `ControlPlane` takes them too. Each has a default."""

    kinds: Iterable[GroupVersion | str] | None
    resources: Iterable[type[Object]]
    conversions: Mapping[str, Converter] | None
    definitions: Iterable[Definition]
    storage: Storage | Path | str | None
    authorizer: Authorizer | Literal["rbac"]
    tokens: Mapping[str, User] | None
    audit: AuditHook | None
    chain: Sequence[ChainHandler] | None
    routes: Sequence[Route]
    admission: Sequence[Plugin | AdmissionFunction]
    limits: Limits | None
    history: int


_RBAC = GroupVersion("rbac.authorization.k8s.io", "v1")


def check_names(options: ServerOptions) -> None:
    """Raise TypeError for an unknown option."""
    known = ServerOptions.__annotations__
    for name in options.keys() - known.keys():
        near = nearest(name, known)
        raise TypeError(
            f"{name} is not an option of ApiServer; "
            + (f"did you mean {near}?" if near else f"available: {', '.join(known)}")
        )


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
