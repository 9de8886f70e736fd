"""Benchmarks: each compares with a bare baseline in the same run and checks its bars. See `python -m bench`."""
