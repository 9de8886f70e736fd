"""Random values that are valid nearly everywhere, and text of every strangeness."""

from __future__ import annotations

from collections.abc import Callable
from random import Random  # noqa: TID251 - seeded by the test, which says with what
from typing import Any

Tree = dict[str, Any]

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
STRANGE = [
    "",
    " ",
    "ü",
    "日本語",
    "🚢",
    '"quoted"',
    "back\\slash",
    "line\nbreak\ttab",
    "<a&b>",
    "null",
    "0",
    "\u2028",
    "é" * 40,
]


def word(rng: Random) -> str:
    """A name that is valid nearly everywhere."""
    return f"{rng.choice(WORDS)}-{rng.randrange(100_000)}"


def text(rng: Random) -> str:
    """Any text."""
    return rng.choice(STRANGE) + rng.choice(WORDS) + rng.choice(STRANGE)


def quantity(rng: Random) -> str:
    """An amount, in one of the forms that servers accept."""
    number = rng.randrange(1, 5000)
    return rng.choice(
        [f"{number}", f"{number}m", f"{number}Mi", f"{number}k", f"{number / 8:g}", f"{number}e3", f"{number}Gi"]
    )


def some(rng: Random, make: Callable[[Random], Any], low: int = 0, high: int = 3) -> list[Any]:
    """A list of random length."""
    return [make(rng) for _ in range(rng.randint(low, high))]


def strings(rng: Random, high: int = 3) -> dict[str, str]:
    """A map of valid label names to valid label values."""
    return {
        rng.choice([word(rng), f"example.com/{word(rng)}"]): rng.choice(["", word(rng)])
        for _ in range(rng.randint(0, high))
    }


def maybe(rng: Random, **fields: Any) -> Tree:
    """Each field with even chances; what is callable is called if it is wanted."""
    return {name: value(rng) if callable(value) else value for name, value in fields.items() if rng.random() < 0.5}


def metadata(rng: Random, name: str) -> Tree:
    """The metadata of an object."""
    annotations = {f"example.com/{word(rng)}": text(rng) for _ in range(rng.randint(0, 3))}
    return {"name": name, "labels": {"round": "trip"} | strings(rng), "annotations": annotations} | maybe(
        rng, finalizers=lambda rng: sorted({f"example.com/{word(rng)}" for _ in range(rng.randint(0, 2))})
    )
