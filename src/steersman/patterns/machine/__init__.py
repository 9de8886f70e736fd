"""State machines as data: states, steps, the graph that they form, and the rules for conditions and finalizers.

Guarantees
- A mistake in a declaration raises `TypeError` where it is written and says what to write instead.
- Nothing here sends a request, except the functions of `finalizers`.
"""

from steersman.patterns.machine.definition import Machine
from steersman.patterns.machine.graph import MachineGraph, StateNode
from steersman.patterns.machine.steps import Failed, Goto, Next, Step, Wait

__all__ = ["Failed", "Goto", "Machine", "MachineGraph", "Next", "StateNode", "Step", "Wait"]
