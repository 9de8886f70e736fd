"""The programs of the converge benchmark, each a separate process, doing the same work in its framework's way."""
