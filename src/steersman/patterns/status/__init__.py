"""The status of an object: its conditions, and the one write of a reconcile.

Guarantees
- A reconcile writes the status at most once, and not at all if nothing changed.
- Fields and conditions of other writers stay as they are.
"""
