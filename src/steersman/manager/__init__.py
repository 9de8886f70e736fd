"""Controllers and webhooks as one program: start, stop, leadership, health. Not built yet: this room holds no code.

What it will guarantee:

- **Only the leader acts.** A deposed leader stops writing before its lease can be taken, and can lead again later in
  the same process.
- Caches are filled before the first reconcile, and a stop drains what is under way within its deadline.
- One `async with` owns every task; a part that fails ends the whole, with its reason, instead of limping on.
- Health and readiness say what is not ready and why.
"""
