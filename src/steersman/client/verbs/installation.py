"""Installs the CustomResourceDefinitions of our own resources."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from steersman.client.bindings import no_kind
from steersman.client.results import Added, Modified
from steersman.client.verbs.writes import Writer
from steersman.errors import KindNotServed, NotEstablished
from steersman.objects import GroupKind, Kind, Object, Unstructured

CUSTOM_RESOURCE_DEFINITION = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")


#: The field manager of definitions installed by a client without one.
_INSTALLER = "steersman"


async def install(client: Writer, classes: Iterable[type[Object]], *, timeout: float, force: bool) -> None:  # noqa: ASYNC109
    """Apply the definitions of ``classes`` (several versions of a kind together) and wait until they are served."""
    from steersman.schemas import crd_for  # noqa: PLC0415 - only programs that install pay

    in_order = sorted(classes, key=_group_kind)
    names: list[str] = []
    for _, versions in groupby(in_order, key=_group_kind):
        # a client without a field manager still uses the same owner in every run
        manager = client.field_manager or _INSTALLER
        applied = await client.apply(Unstructured(crd_for(*versions)), force=force, field_manager=manager)
        names.append(applied.key.name)
    try:
        async with asyncio.timeout(timeout):
            for name in names:
                await _wait_until_established(client, name)
            for cls in in_order:
                await _wait_until_served(client, cls)
    except TimeoutError:
        raise NotEstablished(
            f"install {', '.join(names)}: not served after {timeout:g} s; see the conditions of `kubectl describe crd`"
        ) from None


def _group_kind(cls: type[Object]) -> GroupKind:
    if not isinstance(cls, type) or not hasattr(cls, "__resource__"):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise no_kind(cls)
    return cls.gvk().group_kind


async def _wait_until_established(client: Writer, name: str) -> None:
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


async def _wait_until_served(client: Writer, cls: type[Object]) -> None:
    """Wait for the server to serve the kind: each API server starts a moment after the definition is established."""
    while True:
        try:
            await client.list(cls, namespace="default", fields={"metadata.name": "-"})
        except KindNotServed:
            await asyncio.sleep(0.02)
        else:
            return
