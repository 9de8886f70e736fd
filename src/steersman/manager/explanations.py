"""What the manager has recorded about one key, for ``steersman explain`` and the debug page. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from steersman.cache import Informer
from steersman.controller import Blueprint, Controller, QueuePlace, Request
from steersman.debug import Explanation
from steersman.manager.readiness import ready_of, summary_of
from steersman.objects import Key, Kind


def explain(
    blueprints: Iterable[Blueprint],
    running: Iterable[Controller],
    kind_or_controller: str,
    key: Key,
    *,
    informers: Iterable[Informer[Any]] = (),
) -> list[Explanation]:
    """What each matching controller has recorded about a key. A controller matches by its name or its kind.

    A kind can be written as ``Site``, ``sites`` or ``site.web.example.com``, in any case.
    """
    wanted = kind_or_controller.lower()
    controllers = {controller.name: controller for controller in running}
    named = [blueprint for blueprint in blueprints if wanted in _names(blueprint)]
    informers = tuple(informers)
    return [
        msgspec.structs.replace(
            _explain(blueprint, controllers.get(blueprint.name), key),
            ready=ready_of(informers, blueprint.primary.gvk(), key, condition=summary_of(blueprint)),
        )
        for blueprint in named
    ]


def _names(blueprint: Blueprint) -> set[str]:
    gvk = blueprint.primary.gvk()
    names = {gvk.kind.lower()}
    if not isinstance(blueprint.primary, Kind):
        options = blueprint.primary.__resource__
        names |= {options.plural.lower(), options.singular.lower(), *options.short_names}
    grouped = {f"{name}.{gvk.group}".lower() for name in names} if gvk.group else set[str]()
    return {blueprint.name.lower(), str(gvk).lower()} | names | grouped


def _explain(blueprint: Blueprint, controller: Controller | None, key: Key) -> Explanation:
    request = Request(key)
    record = controller.explain(request) if controller is not None else None
    state, next_run = controller.place(request) if controller is not None else QueuePlace("idle", None)
    return Explanation(
        controller=blueprint.name,
        kind=str(blueprint.primary.gvk()),
        key=key,
        record=record,
        state=state,
        next_run=next_run,
    )
