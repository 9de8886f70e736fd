"""Which watch follows each name. Pure.

Guarantees
- While there are at most ``limit`` scopes, each name has one of its own.
- Beyond it, the namespaces with the most names get one scope each, and at last one scope has all names.
- A scope that the server denies is never chosen. Then there may be more scopes than the limit.
- A name is moved only when the limit is exceeded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from steersman.cache.scopes import is_single, single_scope
from steersman.objects import Key

#: The scope of all namespaces.
EVERYWHERE = ""


def places(
    placed: Mapping[Key, str], added: Iterable[Key], *, limit: int, denied: Collection[str] = ()
) -> dict[Key, str]:
    """Return the scope of each added name, and of each name that moves; ``placed`` has the scopes of the others."""
    scopes = set(placed.values())
    moves: dict[Key, str] = {}
    for key in added:
        wide = next((name for name in (EVERYWHERE, key.namespace) if name in scopes and name not in denied), None)
        moves[key] = single_scope(key) if wide is None else wide
        scopes.add(moves[key])
    if len(scopes) <= limit:
        return moves
    after = {**placed, **moves}
    alone: dict[str, list[Key]] = {}
    for key, scope in after.items():
        if is_single(scope):
            alone.setdefault(key.namespace, []).append(key)
    for namespace, keys in sorted(alone.items(), key=lambda item: (-len(item[1]), item[0])):
        if len(scopes) <= limit:
            return moves
        if len(keys) > 1 and namespace not in denied:
            scopes = scopes.difference(map(single_scope, keys)) | {namespace}
            moves |= dict.fromkeys(keys, namespace)
    if len(scopes) > limit and EVERYWHERE not in denied:
        moves |= {key: EVERYWHERE for key, scope in {**after, **moves}.items() if scope != EVERYWHERE}
    return moves
