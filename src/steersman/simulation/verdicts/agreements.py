"""Values that differ from run to run, and belong together: a password in two Secrets, a certificate in a bundle.

No run is compared with another one in these values. Instead, those that contain one another in two runs without faults must do
so in every run.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterable
from typing import TypeAlias

from steersman.simulation.verdicts.states import Path, State, describe_key, value_at

#: The path of a value, and that of one that contains it.
Agreement: TypeAlias = tuple[Path, Path]

#: Shorter texts may contain one another by chance.
_LENGTH_MIN = 8
#: How many values of a state are compared with each other.
_MOST = 200


def agreements(one: State, other: State, unstable: frozenset[Path]) -> frozenset[Agreement]:
    """Which of the values that differ between two runs contain others, in both."""
    here, there = _texts(one, unstable), _texts(other, unstable)
    paths = [path for path in sorted(here) if path in there][:_MOST]
    found = {
        (inner, outer)
        for inner in paths
        if min(map(len, here[inner])) >= _LENGTH_MIN
        for outer in paths
        if inner != outer and _contains(here[outer], here[inner]) and _contains(there[outer], there[inner])
    }
    # Equal values contain each other: one direction says it.
    return frozenset(pair for pair in found if pair[::-1] not in found or pair[0] < pair[1])


def disagreements(state: State, pairs: frozenset[Agreement]) -> list[str]:
    """The values of a state that should contain others and do not, one line for each; never the values themselves."""
    texts = _texts(state, {path for pair in pairs for path in pair})
    return [
        f"{_described(outer)} does not contain the value of {_described(inner)}"
        for inner, outer in sorted(pairs)
        if inner in texts and outer in texts and not _contains(texts[outer], texts[inner])
    ]


def _texts(state: State, paths: Iterable[Path]) -> dict[Path, tuple[str, ...]]:
    """The texts at these paths, and what they are in base64."""
    values = {path: value_at(state, path) for path in paths}
    return {path: _forms(value) for path, value in values.items() if isinstance(value, str)}


def _forms(text: str) -> tuple[str, ...]:
    try:
        decoded = b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return (text,)
    return (text, decoded)


def _contains(outer: tuple[str, ...], inner: tuple[str, ...]) -> bool:
    return any(small in large for small in inner for large in outer)


def _described(path: Path) -> str:
    return f"{describe_key(path[0])}: {'.'.join(path[1:])}"
