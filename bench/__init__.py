"""Benchmarks: each compares with something bare, in one run, and says whether its bars hold. See `python -m bench`."""
