"""Values that change as time passes: a token that is replaced, a certificate that is renewed.

Their contents differ from run to run, so no comparison of states sees that one stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from steersman.simulation.verdicts.states import METADATA, OBSERVED, TIME, Path, State, leaf_changes, value_at

#: They say when a value changed, or how often.
_SKIPPED = frozenset({*METADATA, *OBSERVED, "lastTransitionTime"})


def changes(states: Sequence[Mapping[str, bytes]]) -> tuple[frozenset[Path], ...]:
    """The values that differ between each state of a store and the next one, of objects that both have."""
    return tuple(frozenset(_changed(before, after)) for before, after in pairwise(states))


def _changed(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Iterator[Path]:
    for key, value in after.items():
        old = before.get(key)
        if old is not None and old != value:
            yield from ((key, *path) for path in leaf_changes(key, old, value) if _SKIPPED.isdisjoint(path))


def renewals(
    states: Sequence[State],
    changed: Sequence[frozenset[Path]],
    again: Sequence[frozenset[Path]],
    unstable: frozenset[Path],
) -> tuple[frozenset[Path], ...]:
    """The changes that two runs without faults share, of objects in which nothing changes that a comparison sees."""
    return tuple(
        _renewed(before, after, here, there, unstable)
        for (before, after), here, there in zip(pairwise(states), changed, again, strict=False)
    )


def _renewed(
    before: State, after: State, here: frozenset[Path], there: frozenset[Path], unstable: frozenset[Path]
) -> frozenset[Path]:
    def is_unseen(path: Path) -> bool:
        value = value_at(after, path)
        is_time = isinstance(value, str) and TIME in value and value == value_at(before, path)
        return path in unstable or is_time

    seen = {path[0] for path in here if not is_unseen(path)}
    return frozenset(path for path in here & there if path[0] not in seen)
