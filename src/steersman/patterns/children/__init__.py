"""Children: the objects that an owner declares, how Steersman writes them, and how it deletes them.

Guarantees
- A child belongs to one owner by uid, never by name. Steersman deletes only children that its own field manager marked.
- A child that already matches its declaration costs no request.
"""

from steersman.patterns.children.kinds import ChildKind, Children, Identity, child
from steersman.patterns.children.outputs import ChildOptions, Output, Outputs

__all__ = ["ChildKind", "ChildOptions", "Children", "Identity", "Output", "Outputs", "child"]
