"""Checks of a user: what must hold of the objects in the store, beyond what holds for every operator.

```python
checks = [
    always(lambda objects: len(objects.list(Lease)) <= 1, "at most one lease"),
    at_rest(lambda objects: all(site.status and site.status.ready for site in objects.list(Site)), "ready at the end"),
    sometimes(lambda objects: len(objects.list(Site)) > 1, "two sites at once"),
]
```

`simulate` takes them as ``checks=``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeVar

import msgspec

from steersman.objects import Key, Object, decode

ObjectT = TypeVar("ObjectT", bound=Object)


class Objects:
    """What the store holds at a moment, decoded when it is read."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self._contents = contents

    def get(self, kind: type[ObjectT], key: Key | str) -> ObjectT | None:
        """An object by its key (``namespace/name``, or the name alone), or None."""
        value = self._contents.get(f"{_prefix(kind)}{key}")
        return None if value is None else decode(kind, value)

    def list(self, kind: type[ObjectT], namespace: str = "") -> list[ObjectT]:
        """All objects of a kind, or those of one namespace."""
        prefix = _prefix(kind) + (f"{namespace}/" if namespace else "")
        values = [value for key, value in sorted(self._contents.items()) if key.startswith(prefix)]
        return [decode(kind, value) for value in values]


def _prefix(kind: type[Object]) -> str:
    resource = kind.__resource__
    return f"{resource.group or 'core'}/{resource.plural}/"


class StateCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A condition, and when it must hold."""

    when: Literal["always", "at_rest", "sometimes"]
    holds: Callable[[Objects], bool]
    name: str

    def failure(self, objects: Objects) -> str:
        """Why it does not hold; empty if it does."""
        try:
            return "" if self.holds(objects) else self.name
        except AssertionError as error:
            return f"{self.name}: {error}" if str(error) else self.name
        except Exception as error:  # noqa: BLE001 - a check that fails does not hold
            return f"{self.name}: {type(error).__name__}: {error}"


def always(holds: Callable[[Objects], bool], name: str = "") -> StateCheck:
    """A condition that must hold after every write."""
    return StateCheck(when="always", holds=holds, name=name or _name_of(holds))


def at_rest(holds: Callable[[Objects], bool], name: str = "") -> StateCheck:
    """A condition that must hold at each `ScenarioUser.settled`, and before and after the workload."""
    return StateCheck(when="at_rest", holds=holds, name=name or _name_of(holds))


def sometimes(holds: Callable[[Objects], bool], name: str = "") -> StateCheck:
    """A condition that must hold after at least one write in at least one run: it shows that the schedules reach it."""
    return StateCheck(when="sometimes", holds=holds, name=name or _name_of(holds))


def _name_of(holds: Callable[[Objects], bool]) -> str:
    name = getattr(holds, "__name__", "")
    return "the condition" if name in {"", "<lambda>"} else name
