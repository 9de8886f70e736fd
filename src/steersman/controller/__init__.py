"""Reconcile loops: from a key to a converged world. Not built yet: this room holds no code.

What it will guarantee:

- **Level, not edge.** Reconcile gets a key and reads state; missed, merged and repeated events are harmless.
- One key is reconciled by one worker at a time, many keys at once; a key added while it is worked on runs once more.
- No key is lost and none runs hot: errors back off per key, and a converged world makes no reconciles.
- Every reconcile knows what caused it.
"""
