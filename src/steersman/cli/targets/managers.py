"""Finds the manager that a command line names: a `Manager`, or a function that makes one from a client."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeAlias, cast

from steersman.cli.failure import Failure, Misuse
from steersman.cli.targets.modules import load_module, look_here_first, module_and_name
from steersman.client import Client
from steersman.manager import Manager
from steersman.objects import nearest

#: A function that makes a manager from a client.
Maker: TypeAlias = Callable[..., Any]


def find_manager(module: ModuleType, attribute: str) -> Manager | Maker:
    """The manager of a module, or a function that makes one from a client; without ``attribute``, its only manager."""
    managers = {name: value for name, value in vars(module).items() if isinstance(value, Manager)}
    if not attribute:
        return _only_manager(module.__name__, managers)
    candidate: Any = getattr(module, attribute, None)
    if isinstance(candidate, Manager):
        return candidate
    if inspect.isroutine(candidate):
        return cast("Maker", candidate)
    hint = f"; there is {', '.join(f'{module.__name__}:{name}' for name in managers)}" if managers else ""
    if candidate is None:
        # A manager first: most modules also import the class of that name.
        meant = nearest(attribute, managers) or nearest(
            attribute, (name for name in vars(module) if not name.startswith("_"))
        )
        hint = f"; did you mean {module.__name__}:{meant}?" if meant else hint
        raise Failure(f"{module.__name__} has no {attribute}{hint or '; write `manager = Manager(...)` in it'}")
    what = "a class" if isinstance(candidate, type) else f"of type {type(candidate).__name__}"
    raise Failure(
        f"{module.__name__}:{attribute} is {what}; name a Manager, or a function that takes a client and returns one{hint}"
    )


def declared_manager(target: str) -> Manager:
    """The manager that ``MODULE[:NAME]`` names, for commands that have no client."""
    module, attribute = module_and_name(target, "manager", nothing="its only manager")
    look_here_first()
    declared = find_manager(load_module(module), attribute)
    if not isinstance(declared, Manager):
        raise Failure(f"{target} makes its manager from a client, which is not available here; name a Manager")
    return declared


async def made_manager(maker: Maker, client: Client, target: str) -> Manager:
    """The manager that a function returns."""
    result: Any = maker(client) if inspect.signature(maker).parameters else maker()
    if inspect.isawaitable(result):
        result = await result
    if isinstance(result, Manager):
        return result
    raise Failure(f"{target} returned a {type(result).__name__}; it must return the Manager to run")


def _only_manager(module: str, managers: dict[str, Manager]) -> Manager:
    # One manager may have several names.
    distinct = list({id(manager): manager for manager in managers.values()}.values())
    if len(distinct) == 1:
        return distinct[0]
    if distinct:
        raise Misuse(f"{module} has several managers; name one: {', '.join(f'{module}:{name}' for name in managers)}")
    name = module.rpartition(".")[2].replace("_", "-")
    raise Failure(
        f'{module} has no manager; write `manager = Manager(name="{name}")` in it, '
        f"or name a function that takes a client and returns one: {module}:NAME"
    )
