"""Comprehensions at run time, and their variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from steersman.cel.execution import EXPRESSION_MAX, Frame, Step
from steersman.cel.syntax.nodes import Call, Fold, Node
from steersman.cel.values import CelError, CostExceeded, Growing, Listing, Mapped, map_find, map_keys, no_overload

#: The server's names for values that cannot be iterated.
_KINDS: dict[type, str] = {str: "String", int: "Int", float: "Double", bool: "Bool", bytes: "Bytes", type(None): "Null"}


class Folding:
    """Compiles folds: every variable has its own slot in the frame."""

    def __init__(self) -> None:
        self.slots = 0
        self._scopes: list[dict[str, int]] = []

    def plan(self, node: Node) -> Step:
        """The closure of one node."""
        raise NotImplementedError

    def slot_of(self, name: str) -> int | None:
        """The slot of a variable; None if it does not belong to a fold."""
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def declare(self, names: Sequence[str]) -> None:
        """Give variables of the whole expression the first slots."""
        self._enter(*names)

    def _enter(self, *names: str) -> list[int]:
        places = list(range(self.slots, self.slots + len(names)))
        self.slots += len(names)
        self._scopes.append(dict(zip(names, places, strict=True)))
        return places

    def fold(self, node: Fold) -> Step:
        """The closure of a fold."""
        if node.macro == "bind":
            return self._bind(node)
        if node.macro in {"all", "exists"}:
            return self._quantifier(node)
        return self._gather(node)

    def _bind(self, node: Fold) -> Step:
        value = self.plan(node.init)
        (place,) = self._enter(node.accumulator)
        result = self.plan(node.result)
        self._scopes.pop()

        def bind(frame: Frame) -> Any:
            try:
                frame.slots[place] = value(frame)
            except CelError as error:
                frame.slots[place] = error
            return result(frame)

        return bind

    def _range(self, node: Fold) -> Callable[[Frame], list[tuple[Any, Any]]]:
        over = self.plan(node.range)
        double = bool(node.second)

        def pairs(frame: Frame) -> list[tuple[Any, Any]]:
            value = over(frame)
            if isinstance(value, list | Listing):
                items = cast("list[Any]", value)
                return list(enumerate(items)) if double else [(item, None) for item in items]
            if isinstance(value, dict | Mapped):
                if not double:
                    return [(key, None) for key in map_keys(value)]
                return [(key, map_find(value, key).get()) for key in map_keys(value)]
            kind = f"types.{_KINDS.get(value.__class__, value.__class__.__name__)}"
            if double:
                raise CelError(f"unsupported comprehension range type: {kind}")
            raise CelError(f"got '{kind}', expected iterable type")

        return pairs

    def _quantifier(self, node: Fold) -> Step:
        pairs = self._range(node)
        first, second = self._enter(node.first, node.second or "#")
        predicate = self.plan(cast("Call", node.step).args[1])
        self._scopes.pop()
        stops = node.macro == "exists"
        again = 3 if stops else 2

        def quantifier(frame: Frame) -> Any:
            error: CelError | None = None
            items = pairs(frame)
            slots = frame.slots
            last = len(items) - 1
            for at, (one, two) in enumerate(items):
                slots[first] = one
                slots[second] = two
                frame.cost += again + 1
                try:
                    held = predicate(frame)
                except CelError as raised:
                    error = error or raised
                    continue
                if held is stops:
                    frame.cost += 1 + (again if at != last else 0)
                    return stops
                if held is not (not stops):
                    error = error or no_overload()
                if frame.cost > EXPRESSION_MAX:
                    raise CostExceeded(frame.cost)
            frame.cost += 1
            if error is not None:
                raise error
            return not stops

        return quantifier

    def _gather(self, node: Fold) -> Step:
        pairs = self._range(node)
        init = self.plan(node.init)
        (gathered,) = self._enter(node.accumulator)
        first, second = self._enter(node.first, node.second or "#")
        step = self.plan(node.step)
        self._scopes.pop()
        result = self.plan(node.result)
        self._scopes.pop()

        def gather(frame: Frame) -> Any:
            slots = frame.slots
            items = pairs(frame)
            begun = init(frame)
            slots[gathered] = (
                Growing()
                if isinstance(begun, list)
                else dict(cast("dict[Any, Any]", begun))
                if isinstance(begun, dict)
                else begun
            )
            for one, two in items:
                slots[first] = one
                slots[second] = two
                try:
                    slots[gathered] = step(frame)
                except CelError as error:
                    slots[gathered] = error
                if frame.cost > EXPRESSION_MAX:
                    raise CostExceeded(frame.cost)
            made = result(frame)
            return list(cast("list[Any]", made)) if isinstance(made, Growing) else made

        return gather
