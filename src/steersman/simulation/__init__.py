"""Simulation: find the bug before the cluster does.

The whole stack runs in one process under a virtual clock and a seed: the API server, its controllers, the operator and its
users. Every fault is tried at every request.

Guarantees
- The same seed, code and Python version give the same run, in any process.
- A fault is one that a real cluster can produce.
- A violation comes with the smallest schedule that shows it, as a file that replays it.
"""
