"""The programs that the converge benchmark runs, each a process of its own. They do the same work, each in its framework's way."""
