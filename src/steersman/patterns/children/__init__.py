"""Children: the objects that an owner declares, how Steersman writes them, and how it deletes them.

Guarantees
- A child belongs to one owner by uid, never by name. Steersman deletes only children that its own field manager marked.
- A child that already matches its declaration costs no request.
"""

from steersman.patterns.children.kinds import (
    ChildIdentity as ChildIdentity,
    ChildKind as ChildKind,
    Children as Children,
    child as child,
)
from steersman.patterns.children.outputs import ChildOptions as ChildOptions, Output as Output, Outputs as Outputs
