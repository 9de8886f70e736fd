"""Random shops in both versions, with fields that one version lacks and fields that no type declares."""

from __future__ import annotations

import copy
from random import Random  # noqa: TID251 - seeded
from typing import Any

from samples.shops import old_shop, shop


def random_value(random: Random, depth: int = 0) -> Any:
    kind = random.randrange(9 if depth < 3 else 6)
    if kind == 6:
        return {random.choice("abc"): random_value(random, depth + 1) for _ in range(random.randrange(3))}
    if kind >= 7:
        return [random_value(random, depth + 1) for _ in range(random.randrange(3))]
    return random.choice([None, True, random.randrange(5), random.random(), "text", ""])


def random_fields(random: Random) -> dict[str, Any]:
    return {f"x{random.randrange(4)}": random_value(random) for _ in range(random.randrange(3))}


def chosen(random: Random, **fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if random.random() < 0.6} | random_fields(random)


def random_shop(random: Random) -> dict[str, Any]:
    items = [
        {"name": random.choice("abc"), "price": random.randrange(9), **chosen(random, tax=1)}
        for _ in range(random.randrange(4))
    ]
    spec = chosen(random, image="i", replicas=random.randrange(7), items=items, protected=True)
    status = {"status": chosen(random, visitors=random.randrange(9))} if random.random() < 0.5 else {}
    return copy.deepcopy(shop(**spec) | random_fields(random) | status)


def random_old_shop(random: Random) -> dict[str, Any]:
    items = [
        {"name": random.choice("abc"), "price": random.choice(("1", "01")), **random_fields(random)}
        for _ in range(random.randrange(4))
    ]
    spec = chosen(random, size=random.choice(("small", "large", "huge")), items=items, color="red")
    return copy.deepcopy(old_shop(**spec) | random_fields(random))
