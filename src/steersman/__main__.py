"""The command ``steersman``, also as ``python -m steersman``, for wherever the script is not on the path."""

from __future__ import annotations

import sys


def main() -> int:
    """Run a command; returns the exit code of the process."""
    try:
        from steersman.cli import main as run  # noqa: PLC0415 - Ctrl-C may come while it is imported
    except KeyboardInterrupt:
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
