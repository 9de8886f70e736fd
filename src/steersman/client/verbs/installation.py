"""Installs the CustomResourceDefinitions of our own resources.

Guarantees
- An installation adds: it removes no version, no field and no stored version of an installed definition, unless
  ``replace`` asks for it. It decides on the definition that it then changes, also if other programs install, too.
- With a conversion, the server never serves two versions without it: the definition has it before its second version.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from steersman.client.bindings import no_kind
from steersman.client.results import Added, Modified
from steersman.client.stages.prepared_apply import NO_VERSION
from steersman.client.verbs.verbs import Verbs
from steersman.errors import Conflict, KindNotServed, NotEstablished, WouldRemove
from steersman.objects import GroupKind, Key, Kind, Object, Unstructured, resource_version_of, tree_of

Tree = dict[str, Any]

CUSTOM_RESOURCE_DEFINITION = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
#: The field manager of definitions installed by a client without one.
_INSTALLER = "steersman"
#: Programs that install the same definition at once change it a few times, and the server writes its status.
_ATTEMPTS = 10


async def install(
    client: Verbs,
    classes: Iterable[type[Object]],
    *,
    timeout: float,  # noqa: ASYNC109
    force: bool,
    replace: bool,
    conversion: Mapping[str, Any] | None,
) -> None:
    """Apply the definitions of ``classes`` (several versions of a kind together) and wait until they are served."""
    from steersman.schemas import crd_for  # noqa: PLC0415 - only programs that install pay

    in_order = sorted(classes, key=_group_kind)
    names: list[str] = []
    awaited: list[type[Object]] = []
    for _, group in groupby(in_order, key=_group_kind):
        versions = list(group)
        tree = crd_for(*versions)
        await _apply(client, tree, conversion, force=force, replace=replace)
        names.append(tree["metadata"]["name"])
        # A server serves all versions of a kind together, and warns of each read of a deprecated one.
        awaited += [cls for cls in versions if not cls.__resource__.deprecated] or versions
    try:
        async with asyncio.timeout(timeout):
            for name in names:
                await _wait_until_established(client, name)
            for cls in awaited:
                await _wait_until_served(client, cls)
    except TimeoutError:
        raise NotEstablished(
            f"install {', '.join(names)}: not served after {timeout:g} s; see the conditions of `kubectl describe crd`"
        ) from None


async def _apply(
    client: Verbs, tree: Tree, conversion: Mapping[str, Any] | None, *, force: bool, replace: bool
) -> None:
    """Apply a definition to exactly the version of the installed one that was compared with it."""
    name: str = tree["metadata"]["name"]
    # a client without a field manager still uses the same owner in every run
    manager = client.field_manager or _INSTALLER
    for attempt in range(_ATTEMPTS):
        installed = None if replace and conversion is None else await client.find(CUSTOM_RESOURCE_DEFINITION, name)
        if not replace and installed is not None:
            _refuse_removal(tree_of(installed), tree)
        try:
            if conversion is not None:
                installed = await _with_conversion(client, installed, tree, conversion, force=force, manager=manager)
            wanted = tree if replace else _bound(tree, installed)
            await client.apply(Unstructured(wanted), force=force, field_manager=manager)
        except Conflict as error:
            if error.field_conflicts or attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def _refuse_removal(installed: Tree, tree: Tree) -> None:
    """Raise `WouldRemove` if a definition lacks parts of the installed one."""
    from steersman.schemas import removed_parts  # noqa: PLC0415 - only needed if a definition is installed already

    if removed := removed_parts(installed, tree):
        raise WouldRemove(
            f"install {tree['metadata']['name']}: this would remove {'; '.join(removed)} from the installed definition, and"
            " objects would lose data. Install all versions together, with all their fields; or, if these parts are needed"
            f" no more, write install({tree['spec']['names']['kind']}, replace=True)"
        )


async def _with_conversion(
    client: Verbs,
    installed: Unstructured | None,
    tree: Tree,
    conversion: Mapping[str, Any],
    *,
    force: bool,
    manager: str,
) -> Unstructured:
    """The installed definition, after it got a conversion if it had none; a new one has only its stored version."""
    if installed is None:
        stored = [version for version in tree["spec"]["versions"] if version["storage"]]
        first = _bound(tree | {"spec": tree["spec"] | {"versions": stored}}, None)
        installed = await client.apply(Unstructured(first), force=force, field_manager=manager)
    if installed.get("spec", "conversion", "strategy") == "Webhook":
        return installed  # the running webhook replaces it, if it has another address
    installed["spec"]["conversion"] = dict(conversion)
    return await client.update(installed)


def _bound(tree: Tree, installed: Unstructured | None) -> Tree:
    """A definition that the server accepts only for this version of the installed one; None: only if there is none."""
    version = resource_version_of(installed) if installed is not None else NO_VERSION
    return tree | {"metadata": tree["metadata"] | {"resourceVersion": version}}


def _group_kind(cls: type[Object]) -> GroupKind:
    if not isinstance(cls, type) or not hasattr(cls, "__resource__"):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise no_kind(cls)
    return cls.gvk().group_kind


async def _wait_until_established(client: Verbs, name: str) -> None:
    fields = {"metadata.name": name}
    async with client.watch(CUSTOM_RESOURCE_DEFINITION, fields=fields, initial_events=True) as events:
        async for event in events:
            if isinstance(event, (Added, Modified)):
                conditions: list[dict[str, Any]] = event.object.get("status", "conditions") or []
                states = {condition.get("type"): condition for condition in conditions}
                if states.get("Established", {}).get("status") == "True":
                    return
                refused = states.get("NamesAccepted", {})
                if refused.get("status") == "False":
                    raise NotEstablished(f"install {name}: {refused.get('message')}; another definition uses the name")


async def _wait_until_served(client: Verbs, cls: type[Object]) -> None:
    """Wait for the server to serve the kind: each API server starts a moment after the definition is established."""
    namespaced = cls.__resource__.namespaced
    while True:
        try:
            # A list would need the conversion of all objects, which may not work yet.
            await client.find(cls, Key("default" if namespaced else "", "-"))
        except KindNotServed:
            await asyncio.sleep(0.02)
        else:
            return
