"""What is known about one key, for ``steersman explain`` and the debug page. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.controller import Controller, ControllerPlan, Place, Request
from steersman.manager.statistics import Explanation
from steersman.objects import Key, Kind


def explain(
    plans: Iterable[ControllerPlan], running: Iterable[Controller], kind_or_controller: str, key: Key
) -> list[Explanation]:
    """What each controller that has this name, or reconciles this kind, knows about a key.

    A kind is written in any way that people write it: ``Site``, ``sites``, ``site.web.example.com``.
    """
    wanted = kind_or_controller.lower()
    controllers = {each.name: each for each in running}
    named = [plan for plan in plans if wanted in _names(plan)]
    return [_explain(plan, controllers.get(plan.name), key) for plan in named]


def _names(plan: ControllerPlan) -> set[str]:
    gvk = plan.primary.gvk()
    names = {gvk.kind.lower()}
    if not isinstance(plan.primary, Kind):
        options = plan.primary.__resource__
        names |= {options.plural.lower(), options.singular.lower(), *options.short_names}
    grouped = {f"{name}.{gvk.group}".lower() for name in names} if gvk.group else set[str]()
    return {plan.name.lower(), str(gvk).lower()} | names | grouped


def _explain(plan: ControllerPlan, controller: Controller | None, key: Key) -> Explanation:
    request = Request(key)
    record = controller.explain(request) if controller is not None else None
    state, next_run = controller.place(request) if controller is not None else Place("idle", None)
    return Explanation(
        controller=plan.name,
        kind=str(plan.primary.gvk()),
        key=key,
        record=record,
        state=state,
        next_run=next_run,
    )
