"""One evaluation of an expression: its variables, its cost and its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from steersman.cel.values import Aborted, CelError, CostExceeded

#: The cost limit of one expression.
EXPRESSION_MAX: Final = 1_000_000


class Frame:
    """One evaluation: the variables, and the cost so far."""

    __slots__ = ("cost", "old", "slots", "this")

    def __init__(self, this: Any, old: Any, slots: int) -> None:
        self.this = this
        self.old = old
        self.slots: list[Any] = [None] * slots
        self.cost = 0


Step = Callable[[Frame], Any]


class Program:
    """A compiled expression."""

    __slots__ = ("_slots", "_step")

    def __init__(self, step: Step, slots: int) -> None:
        self._step = step
        self._slots = slots

    def run(self, this: Any, old: Any = None) -> tuple[Any, int]:
        """The value, or the error as a value, and the cost. Raises `CostExceeded`."""
        return self._run(Frame(this, old, self._slots))

    def run_with(self, values: list[Any]) -> tuple[Any, int]:
        """Like `run`, with the values of the variables that the program was compiled for."""
        frame = Frame(None, None, self._slots)
        frame.slots[: len(values)] = values
        return self._run(frame)

    def _run(self, frame: Frame) -> tuple[Any, int]:
        try:
            value = self._step(frame)
        except CelError as error:
            value = error
        except Aborted as aborted:
            value = CelError(str(aborted))
        except RecursionError:
            value = CelError("the expression or the value is nested too deeply")
        if frame.cost > EXPRESSION_MAX:
            raise CostExceeded(frame.cost)
        return value, frame.cost
