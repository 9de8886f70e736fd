"""``python -m steersman`` is the command ``steersman``, for wherever the script is not on the path."""

from __future__ import annotations

import sys

from steersman.cli import main

if __name__ == "__main__":
    sys.exit(main())
