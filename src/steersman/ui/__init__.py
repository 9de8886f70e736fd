"""Terminal and dashboard over the developer control plane. Not built yet: this room holds no code.

What it will guarantee:

- It is a client like any other: it reads and writes objects and reaches into no other room's state.
- What it shows is never older than the last event it received, and it says so when the connection is gone.
"""
