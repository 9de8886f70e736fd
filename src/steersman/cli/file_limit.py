"""The limit on open files: a server or a manager needs a file descriptor per connection."""

from __future__ import annotations

import contextlib


def raise_open_files_limit() -> None:
    """Raise the soft limit on open files to the hard limit, as Go servers do at start."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems report an infinite hard limit but accept only less.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
