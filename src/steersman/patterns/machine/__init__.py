"""State machines as data: states, steps, the graph that they form, and the rules for conditions and finalizers.

Guarantees
- A mistake in a declaration raises `TypeError` where it is written and says what to write instead.
- Nothing here sends a request, except the functions of `finalizers`.
"""

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names

# Imported on first use: finalizers need no state machine.
if TYPE_CHECKING:
    from steersman.patterns.machine.definition import Machine as Machine
    from steersman.patterns.machine.graph import MachineGraph as MachineGraph, StateNode as StateNode
    from steersman.patterns.machine.steps import (
        Failed as Failed,
        Goto as Goto,
        Next as Next,
        Step as Step,
        Wait as Wait,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.patterns.machine.definition": ["Machine"],
            "steersman.patterns.machine.graph": ["MachineGraph", "StateNode"],
            "steersman.patterns.machine.steps": ["Failed", "Goto", "Next", "Step", "Wait"],
        },
    )
