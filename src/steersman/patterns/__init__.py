"""Ready shapes of controllers: outputs, readiness, finalizers, state machines, external effects.

Not built yet: this room holds no code.

What it will guarantee:

- A resource's children are declared as a whole: what is missing is applied, what is no longer declared is pruned, and
  only what is provably ours.
- **Deletion is a state.** A finalizer is set before the outside world is touched and removed only after clean-up;
  another controller's finalizer is never lost.
- A state machine stores no current state: every pass starts at the first state and finds out from the world.
- An external effect happens exactly once where the outside can be asked for it by key, at least once otherwise.
"""
