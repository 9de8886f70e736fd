"""Checks of the arguments of `Manager` and of the blueprints added to it. Each error says what to write instead.

Two blueprints that would undo each other's work are rejected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from inspect import iscoroutinefunction, isfunction
from typing import Any, cast

from steersman.cache import KindOptions
from steersman.client import Client
from steersman.controller import Blueprint, ControllerBuilder, KindLike, Owners, SupportsBlueprint, check_kind
from steersman.errors import ConfigError
from steersman.manager.endpoints import HttpEndpoints
from steersman.manager.leader import LeaderElection
from steersman.objects import UNSET, GroupKind, kind_name

#: The length of a name: a field manager has at most 128 characters on a server, and those of its parts, such as
#: NAME/shared-for-HASH, are 36 longer.
_NAME_MAX = 92


def check_client(client: object) -> None:
    """Raise `TypeError` unless this is a client or None. A string was probably meant as the name."""
    if isinstance(client, str):
        raise TypeError(f"Manager({client!r}): the first argument is a client; write Manager(name={client!r})")
    if client is not None and not isinstance(client, Client):
        raise TypeError(
            f"Manager({client!r}): the first argument is a Client; leave it out, and run() connects by itself"
        )


def check_leader(leader: object, name: object) -> None:
    """Raise `TypeError` unless this is a `LeaderElection`, None or left out.

    True or a string was probably meant as the Lease's name.
    """
    if leader is None or leader is UNSET or isinstance(leader, LeaderElection):
        return
    lease = leader if isinstance(leader, str) and leader else name if isinstance(name, str) and name else "my-operator"
    if leader is False:
        raise TypeError("Manager(leader=False): write leader=None to run without leader election")
    raise TypeError(
        f'Manager(leader={leader!r}): name the Lease; write Manager(leader=LeaderElection("{lease}")) '
        "with from steersman import LeaderElection"
    )


def check_shards(shards: object, leader: object, namespaces: Sequence[str]) -> None:
    """Raise unless these are `Shards` or None, without a leader beside their coordinator and without chosen namespaces."""
    if shards is None:
        return
    from steersman.manager.shards.settings import Shards  # noqa: PLC0415 - few programs have shards

    if not isinstance(shards, Shards):
        raise TypeError(f'Manager(shards={shards!r}): write Manager(shards=Shards("my-operator"))')
    if isinstance(leader, LeaderElection):  # both are valid, but not together
        raise ValueError(  # noqa: TRY004
            f"Manager(leader={leader.name!r}, shards={shards.name!r}): the replicas of shards elect a coordinator with the Lease"
            f' {shards.name}; leave leader out, and to update from leader election keep the name: Shards("{leader.name}")'
        )
    if namespaces:
        raise ValueError(
            f"Manager(namespaces={list(namespaces)!r}, shards={shards.name!r}): replicas cannot share chosen namespaces yet, because"
            " each would cache all of them; leave namespaces out, or use LeaderElection"
        )


def check_endpoints(endpoints: object) -> None:
    """Raise `TypeError` unless these are `HttpEndpoints` or None. A number was probably meant as the port."""
    if endpoints is None or isinstance(endpoints, HttpEndpoints):
        return
    if endpoints is False:
        raise TypeError("Manager(endpoints=False): leave endpoints out to serve none")
    given = isinstance(endpoints, int) and not isinstance(endpoints, bool)
    write = f"HttpEndpoints(port={endpoints})" if given else "HttpEndpoints(port=8080)"
    raise TypeError(
        f"Manager(endpoints={endpoints!r}): write Manager(endpoints={write}) with from steersman import HttpEndpoints"
    )


def check_seconds(option: str, seconds: object) -> None:
    """Raise unless this is a non-negative number of seconds."""
    if isinstance(seconds, timedelta):
        raise TypeError(
            f"Manager({option}=...) needs a number of seconds; write Manager({option}={seconds.total_seconds():g})"
        )
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"Manager({option}={seconds!r}): pass a number of seconds, such as {option}=30")
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"Manager({option}={seconds!r}): pass a non-negative number of seconds")


def check_kinds(kinds: object, uncached: object) -> None:
    """Raise `TypeError` unless ``kinds`` maps kinds to `KindOptions` and ``uncached`` is a list of kinds."""
    if kinds is not None and not isinstance(kinds, Mapping):
        raise TypeError("Manager(kinds=...): write a dictionary such as kinds={Pod: KindOptions(labels=...)}")
    for kind, options in cast("Mapping[object, object]", kinds or {}).items():
        check_kind(kind, "Manager(kinds=...)")
        if not isinstance(options, KindOptions):
            name = getattr(kind, "__name__", kind)
            raise TypeError(f"Manager(kinds={{{name}: {options!r}}}): write {name}: KindOptions(...)")
    if isinstance(uncached, type | str) or not isinstance(uncached, Iterable):
        name = getattr(uncached, "__name__", uncached)
        raise TypeError(f"Manager(uncached={name}): pass a list: uncached=[{name}]")


def check_index(kind: object, name: str, function: object) -> None:
    """Raise `TypeError` unless this declares an index: a kind, and a function that returns its values at once."""
    check_kind(kind, "manager.index")
    if not callable(function):
        raise TypeError(f'manager.index: {function!r} is not a function; write index(Pod, "{name}", lambda pod: [...])')
    if iscoroutinefunction(function):
        raise TypeError(f'manager.index "{name}": an index cannot wait; write def, not async def')


def check_name(name: object) -> None:
    """Raise unless this is a name that a server accepts as a field manager."""
    if not isinstance(name, str):
        raise TypeError(f'Manager(name={name!r}): the name must be a string, such as name="site-operator"')
    if len(name) > _NAME_MAX or not name.isprintable():
        raise ValueError(
            f"Manager(name={name[:40]!r}...): the name is the beginning of field managers, and has at most {_NAME_MAX}"
            ' printable characters; write name="site-operator"'
        )


def checked_name(name: str) -> str:
    """The name of a manager whose objects on the server are named after it. Raises `ConfigError` if it is empty."""
    if not name:
        raise ConfigError(
            "the manager has webhooks but no name, which their registration objects need;"
            ' write Manager(name="site-operator")'
        )
    return name


def several(namespaces: Iterable[str]) -> tuple[str, ...]:
    """The namespaces as a tuple. Raises `TypeError` for a single string."""
    if isinstance(namespaces, str):
        raise TypeError(f"namespaces must be a collection of names: write namespaces=({namespaces!r},)")
    return tuple(namespaces)


def with_far_kinds(
    kinds: Mapping[Any, KindOptions], blueprints: Iterable[Blueprint], namespaces: tuple[str, ...]
) -> dict[Any, KindOptions]:
    """The options of kinds for a copy of a manager in fewer namespaces: it still reaches children in other ones."""
    reach = KindOptions(namespaces=namespaces)
    return {**{kind: reach for blueprint in blueprints for kind in blueprint.across_namespaces}, **kinds}


def blueprint_of(given: Blueprint | SupportsBlueprint, others: Iterable[Blueprint]) -> Blueprint:
    """The blueprint of an argument of `Manager.add`, checked against the blueprints already added."""
    if isinstance(given, Blueprint):
        blueprint = given
    elif isinstance(given, type):
        raise TypeError(f"manager.add({given.__name__}): this is a class; pass an instance: add({given.__name__}())")
    elif callable(getattr(given, "blueprint", None)):
        blueprint = given.blueprint()
    else:
        raise _no_controller(given)
    for other in others:
        if other.name != blueprint.name and other.primary.gvk().group_kind == blueprint.primary.gvk().group_kind:
            _refuse_fights(other, blueprint)
            _refuse_present_name(other, blueprint)
            _refuse_present_name(blueprint, other)
    return blueprint


def _no_controller(given: object) -> TypeError:
    if isfunction(given):
        name = given.__name__
        return TypeError(
            f"manager.add({name}): {name} is a plain function, which says neither what it reconciles nor what it makes; decorate"
            f" it with @generates(KIND, children=(...)) or @reconciles(KIND, children=(...)), or write"
            f" manager.controller(KIND).run_with({name})"
        )
    return TypeError(
        f"manager.add({given!r}): it is no controller; pass a function with @generates or @reconciles, a StateMachine or a"
        " webhook, or write manager.controller(KIND)...run_with(...)"
    )


def check_cached(blueprint: Blueprint, uncached: Iterable[KindLike]) -> None:
    """Raise `ValueError` if a controller watches a kind that the manager does not cache: no event would reach it."""
    left_out = {kind.gvk() for kind in uncached}
    for kind in blueprint.kinds():
        if kind.gvk() not in left_out:
            continue
        name = kind_name(kind)
        if kind.gvk() == blueprint.primary.gvk():
            what = f"reconciles {name}"
        elif kind.gvk().group_kind in _made(blueprint):
            what = f"has children of kind {name}"
        else:
            what = f"watches {name}"
        raise ValueError(
            f"controller {blueprint.name} {what}, but Manager(uncached=[{name}]) keeps {name} out of the cache, so no change of one"
            f" would reach it; remove {name} from uncached=, and to cache fewer of them write"
            f" kinds={{{name}: KindOptions(labels=Selector.of({{...}}))}}"
        )


def check_free(blueprint: Blueprint, blueprints: Mapping[str, Blueprint], leaving: Collection[str]) -> None:
    """Raise `ValueError` if the name of a new controller is taken."""
    name = blueprint.name
    if (other := blueprints.get(name)) is not None:
        kinds = f"both reconcile {kind_name(blueprint.primary)}"
        if kind_name(other.primary) != kind_name(blueprint.primary):
            kinds = f"reconcile {kind_name(other.primary)} and {kind_name(blueprint.primary)}"
        raise ValueError(
            f'duplicate controller name "{name}", of controllers that {kinds}: if it was added twice, remove one of the calls;'
            " otherwise pass name=... to one of them, as metrics and finalizers use it"
        )
    if name in leaving:
        raise ValueError(f'controller "{name}" is being removed; await manager.remove({name!r}) before adding it again')


def check_named(blueprints: Iterable[Blueprint], field_manager: str) -> None:
    """Raise `ConfigError` if a controller applies objects in a program without a name."""
    nameless = (
        []
        if field_manager
        else [blueprint.name for blueprint in blueprints if blueprint.writes or blueprint.conditions]
    )
    if nameless:
        raise ConfigError(
            f"the manager has no name, and controller {nameless[0]} applies objects: write"
            f' Manager(name="{nameless[0]}-operator"). The server records fields and children under this name, so choose one'
            " and keep it"
        )


def _refuse_fights(one: Blueprint, two: Blueprint) -> None:
    names, kind = f"controllers {one.name} and {two.name}", kind_name(one.primary)
    for condition in two.conditions:
        if condition in one.conditions:
            raise ValueError(
                f"{names} both set condition {condition} of a {kind}, and would overwrite each other forever;"
                f' give one of them its own condition, such as ready="BackupReady"'
            )
    if not (one.writes or two.writes):
        return  # neither prunes
    children = _made(one)
    for child in _made(two):
        if child in children:
            raise ValueError(
                f"{names} both create {child.kind} children for a {kind}, and each would prune the other's; create all of"
                " them in one controller, or give the second its own kind to reconcile"
            )


def _refuse_present_name(one: Blueprint, two: Blueprint) -> None:
    if one.name in two.formerly:
        raise ValueError(
            f'controller {two.name} has formerly=("{one.name}",), but controller {one.name} of the same manager also reconciles'
            f" {kind_name(one.primary)}, and would lose its conditions and its finalizer to it; remove {one.name} from formerly="
        )


def _made(blueprint: Blueprint) -> list[GroupKind]:
    """The kinds of children that a controller creates."""
    owned = [watch.kind for watch in blueprint.watches if not watch.through and isinstance(watch.mapper(), Owners)]
    return [kind.gvk().group_kind for kind in (*blueprint.writes, *owned)]


def check_complete(begun: Iterable[ControllerBuilder[Any]]) -> None:
    """Reject a controller without a reconciler: it would be left out without a word."""
    for controller in begun:
        if not controller.is_complete:
            raise RuntimeError(
                f"manager.controller({controller.kind_name}) has no reconciler; write .run_with(reconcile) after it"
            )
