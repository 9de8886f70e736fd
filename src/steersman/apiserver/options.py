"""The options of an `ApiServer`, and their checks. Each error says what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict

from steersman import kinds as builtin
from steersman.apiserver.admission import AdmissionFunction, Plugin
from steersman.apiserver.chain import AuditHook
from steersman.apiserver.context import Limits
from steersman.apiserver.custom_resources import Converter, CustomSubresource, Validator
from steersman.apiserver.handlers import PathHandler
from steersman.apiserver.identity import Authorizer, User
from steersman.apiserver.registry import Definition, builtin_definitions
from steersman.apiserver.request import ChainHandler, Route
from steersman.apiserver.storage import MemoryStorage, Storage
from steersman.apiserver.webhooks import ServiceResolver, WebhookCaller
from steersman.objects import GroupVersion, GroupVersionKind, Object, nearest


class ServerOptions(TypedDict, total=False):
    """The options of an `ApiServer`, which describes them; a `ControlPlane` takes them too. Each has a default."""

    kinds: Iterable[GroupVersion | GroupVersionKind | str] | None
    resources: Iterable[type[Object]]
    conversions: Mapping[str, Converter] | None
    validators: Mapping[type[Object], Validator]
    subresources: Iterable[CustomSubresource]
    definitions: Iterable[Definition]
    storage: Storage | Path | str | None
    authorizer: Authorizer | Literal["rbac"]
    tokens: Mapping[str, User] | None
    audit: AuditHook | None
    chain: Sequence[ChainHandler] | None
    routes: Sequence[Route]
    paths: Mapping[str, PathHandler]
    admission: Sequence[Plugin | AdmissionFunction]
    enable_admission_plugins: Iterable[str]
    disable_admission_plugins: Iterable[str]
    webhook_resolver: ServiceResolver | None
    webhook_caller: WebhookCaller | None
    limits: Limits | None
    history: int
    history_bytes: int
    feature_gates: Mapping[str, bool]


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


def builtin_kinds(kinds: Iterable[GroupVersion | GroupVersionKind | str] | None, *, rbac: bool) -> list[Definition]:
    """The definitions of the chosen built-in kinds; of all for None. ``rbac`` always includes those of roles."""
    if kinds is None:
        return builtin_definitions()
    if isinstance(kinds, str):
        raise TypeError(f"kinds must be a list of group-versions or kinds: write kinds=[{kinds!r}]")
    chosen = _chosen(kinds)
    if rbac:
        chosen[_RBAC] = set()

    def is_served(kind: GroupVersionKind) -> bool:
        names = chosen[kind.group_version]
        return not names or kind.kind in names

    served = builtin_definitions(chosen, is_served=is_served)
    for group_version, names in chosen.items():
        for missing in names - {each.gvk.kind for each in served if each.gvk.group_version == group_version}:
            raise ValueError(f"kinds: {group_version} has no kind {missing!r}")
    return served


def _chosen(kinds: Iterable[GroupVersion | GroupVersionKind | str]) -> dict[GroupVersion, set[str]]:
    """The chosen kinds of each group-version; empty for all."""
    known = {str(version): version for version in builtin.all_group_versions()}
    chosen: dict[GroupVersion, set[str]] = {}
    for each in kinds:
        group_version, _, kind = str(each).partition(" ")
        found = known.get(group_version)
        if found is None:
            near = nearest(group_version, known)
            hint = f"did you mean {near}?" if near else f"available: {', '.join(sorted(known))}"
            raise ValueError(f"kinds: {group_version!r} is not a built-in group-version; {hint}")
        if not kind:
            chosen[found] = set()
        elif chosen.get(found, {kind}):
            chosen.setdefault(found, set()).add(kind)
    return chosen


def chosen_authorizer(authorizer: Authorizer | Literal["rbac"], storage: Storage) -> Authorizer:
    """The authorizer for an option."""
    if authorizer == "rbac":
        from steersman.apiserver.chain import Rbac  # noqa: PLC0415 - only needed for this option

        return Rbac(storage)
    if not callable(authorizer):
        raise TypeError(f'authorizer must be "rbac" or a function of an Access (got {authorizer!r})')
    return authorizer


def opened(storage: Storage | Path | str | None, history_bytes: int) -> tuple[Storage, MemoryStorage | None]:
    """The store for an option, and the same store again if the server itself must open and close it."""
    if storage is not None and not isinstance(storage, (str, Path)):
        return storage, None
    if storage is None:
        own = MemoryStorage(history_bytes=history_bytes)
    else:
        from steersman.apiserver.storage import JournaledStorage  # noqa: PLC0415 - see the package

        own = JournaledStorage(storage, history_bytes=history_bytes)
    return own, own
